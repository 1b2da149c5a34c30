"""What the measures of staleness are."""

MEANINGS = {
    "pushes": "gradients that the server applied",
    "staleness_mean": "mean number of updates between computing a gradient and applying it",
    "staleness_max": "the same, for the oldest gradient",
    "mean_staleness_as_derived": "whether the mean is what the formula says",
    "samples_per_s": "samples that are read in a second, all ranks",
    "throughput_over_sync": "samples a second, as a multiple of the synchronous run's",
    "loss_final": "the loss at the end, on all data",
    "loss_final_sync": "the loss at the end of the synchronous run, on all data",
    "learning_rate": "the learning rate that was used",
    "sharpness_max": "the largest curvature on the way",
    "lr_over_limit": "the learning rate over the largest stable one at this staleness",
    "weights_gap_to_single": "how far the final weights are from those of one process",
    "weights_equal_single": "whether they are equal to those of one process, bit by bit",
    "arrival_repeats": "whether gradients arrive in the same order in a second run",
    "weights_repeat": "whether a second run gives the same weights, bit by bit",
    "staleness_of_slowest": "staleness of the slowest rank's gradients, the mean",
    "staleness_of_others": "staleness of the other ranks' gradients, the mean",
    "gradients_of_slowest": "gradients that came from the rank with the fewest",
    "gradients_of_fastest": "gradients that came from the rank with the most",
}
