"""What the questions about checkpoints say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # checkpoint-files
    "nothing-saved-with-torch-save": Reason(
        "the script saved nothing with torch.save while it was watched",
        "run the script under `labkit doctor` for so many steps that it saves",
    ),
    "ranks-save-to-one-path": Reason(
        "{ranks:all rank/ranks} save to the same file: what one writes, another tears",
        "save on rank 0 alone (dist.get_rank() == 0, not local_rank == 0 of each node), or give each rank a file of its own",
    ),
    "scheduler-not-saved": Reason(
        "a checkpoint holds the optimizer and not the learning-rate scheduler that the script steps: after a resume the "
        "schedule starts anew",
        "save scheduler.state_dict() beside the optimizer's, and load both",
    ),
    "scaler-not-saved": Reason(
        "a checkpoint holds the optimizer and not the gradient scaler: after a resume the scale is searched anew, and steps "
        "are skipped",
        "save scaler.state_dict() beside the optimizer's, and load both",
    ),
    "written-over-the-last-one": Reason(
        "{times:plural time/times} a checkpoint was written straight over the last one: a process that dies meanwhile "
        "leaves neither",
        "write to another name in the same folder, then os.replace() it into place",
    ),
    "checkpoints-are-whole": Reason("one rank writes each file, and what trains is in it"),
}
