"""What the questions about crashes and checkpoints say."""

from __future__ import annotations

from ..catalogue import Reason

_KILL_A_RANK = (
    "kill a rank on purpose (Fault(kind='kill', rank=0, step=…)) and let the launcher start again",
    "kill a rank on purpose and let the launcher start again; rank 0 then writes rank-00000.attempt1.jsonl, with "
    "Probe(…, attempt=1) and probe.resume_at(step)",
)
"""In a run of a lab, and in a script."""

_A_PLACE_FOR_EACH = (
    "give each rank's own state a place of its own: a key for each rank in a checkpoint that all write together "
    "(torch.distributed.checkpoint), or a path for each rank; and have one rank write what all share"
)
_RESTORE_ALL = (
    "save and restore all state; random generators per rank, and after iter(loader), which draws a number "
    "(labkit.workloads.resumable)"
)
_RESTORE_THESE = (
    "save and restore {states:and}; random generators per rank, and after iter(loader), which draws a number "
    "(labkit.workloads.resumable)"
)

LOCAL_DISK = {
    "no-saves-recorded": Reason("the program recorded no saves", "record each with probe.event('save', of_step=…, path=…)"),
    "checkpoint-lost-with-its-node": Reason(
        "{ranks:all rank/ranks} had saved, and after the restart found nothing: the checkpoint went with the node's disk, "
        "and the run cannot go on from what the other ranks have",
        "write checkpoints to storage that every node sees and that outlives each of them; a copy on the node's own disk "
        "helps to restart quickly, but is never the only one",
    ),
    "no-restart-after-a-save": Reason(
        "no rank was started again after a save",
        "kill a rank after the first save, with its node's disk (Fault(kind='lose-node', …))",
        "start again on another node after the first save, and record what was loaded: probe.event('load', …)",
    ),
    "paths-apart-and-no-node-lost": Reason(
        "each rank keeps its checkpoints at a path of its own, and no node was lost: this run does not show whether they "
        "outlive a node",
        "lose a node on purpose (Fault(kind='lose-node', …)), or keep checkpoints on shared storage",
        "start again on another node on purpose, or keep checkpoints on shared storage",
    ),
    "every-rank-found-its-checkpoint": Reason("after each restart every rank found what had been saved"),
}

LOST_WORK = {
    "never-crashed": Reason("the run was not interrupted, so nothing was lost", *_KILL_A_RANK),
    "no-step-after-the-crash": Reason(
        "no attempt reached its first step after the crash, so nothing can be said about lost steps", *_KILL_A_RANK
    ),
    "newest-checkpoint-not-used": Reason(
        "a checkpoint of {saved:plural step/steps} was complete, and after the crash the run began again at step "
        "{resumed_at}: the checkpoint was lost with its node, or not used",
        "write checkpoints to storage that outlives the node and that every rank can read, and have one rank decide for all "
        "which of them to load",
    ),
    "nothing-was-saved": Reason(
        "the crash sent the run back to step {resumed_at}: {lost:plural step/steps} done again, because nothing had been "
        "saved",
        "save model, optimizer, scheduler, scaler, random generators and place in the data at regular intervals; write to "
        "another name and rename when the save is complete (labkit.workloads.checkpoint.Checkpointer)",
    ),
    "crash-before-the-first-checkpoint": Reason(
        "the crash came before the first checkpoint was complete, so {lost:plural step/steps} had to be done again",
        "let the crash come after a checkpoint, or save sooner",
    ),
    "back-to-the-newest-checkpoint": Reason(
        "each crash sent the run back to its newest checkpoint: {lost:plural step/steps} done again"
    ),
}

SINGLE_PATH = {
    "no-saves-to-compare": Reason(
        "the program recorded no saves", "record each with probe.event('save', of_step=…, path=…, alone=True, digest=…)"
    ),
    "one-rank-shares-no-path": Reason("with one rank there is nobody to share a path with", "run with 2 ranks or more"),
    "no-path-shared": Reason("no two ranks write whole checkpoints to one path"),
    "contents-not-recorded": Reason(
        "{writers} ranks write to one path ({path}); whether the contents differ is not recorded",
        "record a digest of what each writes; " + _A_PLACE_FOR_EACH,
    ),
    "equal-content-to-one-path": Reason(
        "{writers} ranks write equal content to one path: no harm so far, but two may write at once, and once ranks have "
        "state of their own, only one of them keeps it",
        "have one rank write it",
    ),
    "ranks-overwrite-each-other": Reason(
        "{writers} ranks write different state to one path, and the last writer's stays: the file can be read, and all "
        "other ranks resume with state that is not theirs",
        _A_PLACE_FOR_EACH,
    ),
}

CHECKPOINT_INTERVAL = {
    "no-save-timed": Reason(
        "the program recorded no save with the time that it took",
        "record each with probe.event('save', of_step=…, stall_s=…)",
    ),
    "too-few-saves": Reason(
        "too few saves to measure their interval and their cost", "run until {enough} checkpoints are written"
    ),
    "time-between-failures-not-known": Reason(
        "the mean time between failures is not known, and without it no interval is right or wrong",
        "take it from the cluster's history, or from published counts, and say it (--set mtbf_s=…)",
        "take it from the cluster's history, or from published counts, and say it: probe.declare(mtbf_s=…)",
    ),
    "saves-too-seldom": Reason(
        "a checkpoint every {interval:.3g} s of computation is too seldom: repeating what crashes undo costs {gain:.0%} of "
        "all time more than with the best interval",
        "save about every {better:.3g} s: √(2 × cost of a save × mean time between failures)",
    ),
    "saves-too-often": Reason(
        "a checkpoint every {interval:.3g} s of computation is too often: saves cost {gain:.0%} of all time more than "
        "with the best interval",
        "save about every {better:.3g} s: √(2 × cost of a save × mean time between failures)",
    ),
    "no-interval-much-better": Reason("another interval would gain less than {least:.0%} of the time"),
    "cost-of-a-save-varies": Reason(
        "the cost of a save varies too much to tell whether another interval would be better",
        "measure more saves, on a quiet machine",
    ),
}

RESUME_DEPARTS = {
    "never-resumed": Reason("the run was not interrupted and resumed", *_KILL_A_RANK),
    # no run beside it
    "no-uninterrupted-run": Reason(
        "there is no uninterrupted run to compare with, and the program records no hashes of its state",
        "run the same without a crash, as the record's 'uninterrupted' run",
        "record a hash of each state when it is saved and when it is back: probe.event('state', when='saved' or 'resumed', "
        "of_step=…, weights=…, optimizer=…)",
    ),
    "states-are-as-saved": Reason("after the resume, every state whose hash the program recorded is what was saved"),
    "states-are-not-as-saved": Reason("after the resume the state of {states:and} is not what was saved", _RESTORE_THESE),
    # beside the uninterrupted run
    "program-does-not-repeat-itself": Reason(
        "the runs differ from step {step} on, before the crash: the program does not repeat itself to the bit",
        "seed every generator, use deterministic algorithms and equal threads, and run both again",
    ),
    "states-lost-and-departs-at-once": Reason(
        "the loss departs from the uninterrupted run's at step {step}, at once: {states:and} did not come back",
        _RESTORE_THESE,
    ),
    "states-lost-and-departs-after-one-step": Reason(
        "the loss departs from the uninterrupted run's at step {step}, one step after the resume: {states:and} did not come "
        "back",
        _RESTORE_THESE,
    ),
    "states-lost-and-departs-later": Reason(
        "the loss departs from the uninterrupted run's at step {step}, {later:plural step/steps} after the resume: "
        "{states:and} did not come back",
        _RESTORE_THESE,
    ),
    "departs-at-once": Reason(
        "the loss departs from the uninterrupted run's at step {step}, at once: weights, data or random numbers are not "
        "those of the run before the crash",
        _RESTORE_ALL,
    ),
    "departs-after-one-step": Reason(
        "the loss departs from the uninterrupted run's at step {step}, one step after the resume: the first update "
        "differs, because of the optimizer's state, its learning rate or the scale of the loss",
        _RESTORE_ALL,
    ),
    "departs-later": Reason(
        "the loss departs from the uninterrupted run's at step {step}, {later:plural step/steps} after the resume: a later "
        "update differs, because a schedule counts from the resume or sums have another order",
        _RESTORE_ALL,
    ),
    "states-lost-and-not-yet-seen": Reason(
        "no loss differs within this run, but {states:and} did not come back, and that will show later", _RESTORE_THESE
    ),
    "last-update-departs": Reason(
        "the losses are equal, but the final weights are not: the last update differs", _RESTORE_ALL
    ),
    "began-again-and-repeats": Reason("it began again at the first step and repeats the uninterrupted run to the bit"),
    "resumed-to-the-bit": Reason("every loss, and the final weights, are the uninterrupted run's to the bit"),
    # beside one of another number of ranks
    "shared-states-lost": Reason(
        "{states:and} did not come back on {ranks:plural rank/ranks}, though all ranks share that state", _RESTORE_THESE
    ),
    "no-step-in-common": Reason(
        "the two runs have no step in common for which all ranks record a loss",
        "record loss_local and batch_samples in both",
    ),
    "losses-agree-but-for-rounding": Reason(
        "on {before:plural rank/ranks} and on {ranks} the losses agree, apart from the order of sums"
    ),
    "losses-differ-by-more-than-rounding": Reason(
        "on {before:plural rank/ranks} and on {ranks} the losses differ by up to {gap:.1e}: more than the order of sums "
        "explains",
        "restore all state that the ranks share, and keep the global batch and the order of the data when the number of "
        "ranks changes",
    ),
    "random-numbers-may-explain-it": Reason(
        "on {before:plural rank/ranks} and on {ranks} the losses differ by up to {gap:.1e}: random numbers that each rank "
        "draws for itself (dropout, augmentation) explain that as well, and another number of ranks cannot repeat them",
        "run without them: --set dropout=0 --set augment=false",
        "run without dropout and augmentation, and say so: probe.declare(rank_draws=False)",
    ),
}

REASONS = LOCAL_DISK | LOST_WORK | SINGLE_PATH | CHECKPOINT_INTERVAL | RESUME_DEPARTS
