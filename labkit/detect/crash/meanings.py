"""What the measures of crashes and saves are."""

MEANINGS = {
    "restarts": "how often all ranks were started again",
    "lost_steps": "steps that had to be done again",
    "restart_s": "how long a restart took",
    "resumed_at": "where training went on after the last restart",
    "saves": "checkpoints that were written",
    "save_stall_ms": "how long training waits for a save (median)",
    "save_write_ms": "how long a save takes until it is complete",
    "save_bytes": "size of the largest checkpoint",
    "failed_saves": "saves that failed",
    "departs_at": "the first step whose loss differs from a run without a crash",
    "weights_equal_uninterrupted": "whether its final weights equal those of a run without a crash, to the bit",
    "loss_gap_largest": "largest distance of the loss from that of a run without a crash",
    "weights_gap": "distance of the final weights from those of a run without a crash",
    "goodput": "share of the time spent on steps that count",
    "time_lost": "share of the time spent on steps that a crash undid",
    "time_saving": "share of the time in which training waits for saves",
    "time_restarting": "share of the time spent on restarts",
    "time_between": "share of the time between steps: all the rest",
}
