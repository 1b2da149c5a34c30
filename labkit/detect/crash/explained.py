"""More of the questions about crashes and what is left after them."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Checkpoints and restarts", 7
AT_A_CRASH = True

EXPLAINED = {
    "lost-work": Explained(
        "A crash undoes the work since the newest checkpoint. If nothing was saved, or if the checkpoint is not "
        "used, it undoes everything. The launcher starts again, and the log looks like any other.",
        """\
- start = 0
+ newest = newest_checkpoint(folder)
+ start = load(newest) if newest else 0
  for step in range(start, steps):
      train(step)
+     if step % 200 == 0:
+         save(folder, step)
""",
        "labkit compares the step at which each attempt begins with the newest complete save before it.",
        "A run that was never interrupted cannot show this.",
        needs="a run that was interrupted and went on",
    ),
    "resume-departs": Explained(
        "Weights are only part of what training needs. Momentum, the learning-rate schedule, random generators and the "
        "place in the data belong to it as well. A resume without one of them raises no error; the loss jumps, or the "
        "run ends with other weights.",
        """\
  torch.save(
      {
          "model": model.state_dict(),
+         "optimizer": optimizer.state_dict(),
+         "schedule": schedule.state_dict(),
+         "generator": torch.get_rng_state(),
+         "epoch": epoch,
+         "batch": batch,
      },
      path,
  )
""",
        "labkit compares the hash of each state when it is saved and when it is back, and the losses with those of a run "
        "that nothing interrupted.",
        "A program that does not repeat itself to the bit differs anyway; if the runs differ before the crash, the answer "
        "is inconclusive. Another number of ranks changes the order of sums.",
        needs="a run that was interrupted and went on",
    ),
    "single-path": Explained(
        "If all ranks save to one path, the last one wins. The file can be read, but it is one rank's state: after a "
        "restart the others go on with state that is not theirs.",
        """\
- torch.save(state, "checkpoint.pt")
+ torch.save(state, f"checkpoint-rank{dist.get_rank()}.pt")
""",
        "labkit compares the paths of all saves, and hashes of what each rank writes.",
        "Equal content to one path does no harm yet; the answer is inconclusive.",
        needs="saves that the script records",
    ),
    "local-disk": Explained(
        "A checkpoint on a node's own disk is lost with the node. The ranks of the other nodes have theirs, but the run "
        "cannot resume from a part.",
        """\
- folder = pathlib.Path("/local/checkpoints")
+ folder = pathlib.Path("/shared/checkpoints")
""",
        "labkit checks whether each rank finds, after a restart, what it had saved.",
        "A run in which no node was lost does not show whether checkpoints outlive one.",
        needs="a run that was interrupted and went on",
    ),
    "checkpoint-interval": Explained(
        "A save stops the training for a while; a crash undoes what came since the last one. The best interval lies "
        "between: about √(2 × cost of a save × mean time between failures).",
        """\
  for step in range(steps):
      train(step)
-     if step % 10 == 0:
+     if step % 200 == 0:
          save(step)
""",
        "labkit times the saves and the steps between them, and takes the mean time between failures that you declare.",
        "A guessed time between failures gives a guessed interval. An asynchronous save costs less than its duration.",
        needs="timed saves, and the time between failures",
    ),
}
