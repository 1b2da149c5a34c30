"""What the measures of the input are."""

MEANINGS = {
    "data_time": "how long a step waits for its batch",
    "compute_time": "how long it computes",
    "data_share": "how much of a step waits for data",
    "first_batch_of_epoch": "how long an epoch's first batch takes",
    "samples_per_s": "samples that are read in a second, all ranks",
    "dummy_batch_ratio": "how many times as fast the run is on one ready batch",
    "without_workers_ratio": "how many times as fast the run is without workers",
    "speed_up": "how many times as fast as one rank all ranks together are",
    "fetch_share_alone": "share of a step that one rank alone waits for data",
    "serial_share_fitted": "share of the work that ranks do one after the other, by Amdahl's law",
    "ranks_inside_the_lock": "ranks that prepared data at the same time",
    "store_rate_per_rank": "what a rank gets from the shared store",
    "prepared_first_epoch": "samples that were decoded in the first epoch",
    "prepared_later": "samples that were decoded again in a later epoch",
    "store_bytes_first_epoch": "what was read from the store in the first epoch",
    "store_bytes_later": "what was read from it again in a later epoch",
}
