"""What the measures of crashes and saves are."""

MEANINGS = {
    "restarts": "how often all ranks were started again",
    "lost_steps": "steps that had to be done again",
    "restart_s": "how long a restart took",
    "resumed_at": "where training went on after the last restart",
    "saves": "checkpoints that were written",
    "save_stall_ms": "how long training waits for a save, the median",
    "save_write_ms": "how long a save takes until it is complete",
    "save_bytes": "size of the largest checkpoint",
    "failed_saves": "saves that failed",
    "departs_at": "the first step that differs from a run without a crash",
    "weights_equal_uninterrupted": "whether it ends as the run without a crash does, bit by bit",
    "loss_gap_largest": "how far the loss is from the run without a crash, the most",
    "weights_gap": "how far the final weights are from those of the run without a crash",
    "goodput": "how much of the time is steps that count",
    "time_lost": "how much of the time is steps that a crash threw away",
    "time_saving": "how much of the time is saves",
    "time_restarting": "how much of the time is restarts",
    "time_between": "what remains between them",
}
