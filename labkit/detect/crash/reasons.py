"""What the questions about crashes and checkpoints say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    "no-saves-recorded": Reason("the program recorded no saves", "record each with probe.event('save', of_step=…, path=…)"),
    # local-disk
    "checkpoint-lost-with-its-node": Reason(
        "{ranks:all rank/ranks} had saved, and after the restart found nothing: the checkpoint went with the node's disk, "
        "and one rank's loss is everybody's",
        "write checkpoints to storage that every node sees and that outlives each of them; a copy on the node's own disk is "
        "for a quick restart, never the only one",
    ),
    "no-restart-after-a-save": Reason(
        "no rank was started again after a save",
        "kill a rank after the first save, with its node's disk (Fault(kind='lose-node', …))",
        "start again on another node after the first save, and record what is loaded: probe.event('load', …)",
    ),
    "paths-apart-and-no-node-lost": Reason(
        "each rank keeps its checkpoints at a path of its own, and no node was lost: whether they outlive a node this run "
        "does not show",
        "lose a node on purpose (Fault(kind='lose-node', …)), or keep checkpoints on shared storage",
        "start again on another node on purpose, or keep checkpoints on shared storage",
    ),
    "every-rank-found-its-checkpoint": Reason("after each restart every rank found what had been saved"),
}
