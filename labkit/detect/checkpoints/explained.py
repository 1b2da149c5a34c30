"""More of the questions about what is in a checkpoint."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Checkpoints and restarts", 7
AT_A_CRASH = True

_SAVE_THE_REST = """\
  torch.save(
      {
          "model": model.state_dict(),
          "optimizer": optimizer.state_dict(),
+         "schedule": schedule.state_dict(),
+         "scaler": scaler.state_dict(),
      },
      path,
  )
"""

EXPLAINED = {
    "checkpoint-files": Explained(
        "Ranks that write one file at once tear it. A file that is written over the last one leaves neither where the "
        "process dies meanwhile. A checkpoint without the schedule or the scaler restores the weights and starts these "
        "anew.",
        """\
- torch.save(state, path)
+ if dist.get_rank() == 0:
+     torch.save(state, f"{path}.part")
+     os.replace(f"{path}.part", path)
+ dist.barrier()
""",
        "labkit watches torch.save: the path, what is there already, and which states are in what is saved, by the keys "
        "that torch gives them.",
        "What other libraries write is not seen. A schedule that a program keeps as numbers of its own is not recognised.",
        lab="crash-recovery",
    ),
}

FIXES = {"scheduler-not-saved": _SAVE_THE_REST, "scaler-not-saved": _SAVE_THE_REST}
FIXES["written-over-the-last-one"] = """\
- torch.save(state, path)
+ torch.save(state, f"{path}.part")
+ os.replace(f"{path}.part", path)
"""
