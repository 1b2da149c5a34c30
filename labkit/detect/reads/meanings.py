"""What the measures of reading are."""

MEANINGS = {
    "samples_per_epoch": "reads of all ranks together, in an epoch",
    "unique_samples": "different samples that any rank read",
    "coverage": "how much of the data set was read",
    "copies_max": "how often the most read sample was read, in an epoch",
    "padding": "repeats that give all ranks equally many samples",
    "unique_share_of_global_batch": "how much of a batch of all ranks is not a copy",
    "order_repeats": "whether each epoch reads in the same order",
    "rank_overlap": "what a rank read and another read too",
    "val_leak": "validation samples that were trained on",
    "comm_share": "how much of a step ranks communicate or wait for each other",
    "weights_gap_to_single": "how far the final weights are from those of one process",
    "weights_equal_single": "whether they are equal to those of one process, bit by bit",
}
