"""What the measures of staleness are."""

MEANINGS = {
    "pushes": "gradients that the server applied",
    "staleness_mean": "by how many versions a gradient is too old, the mean",
    "staleness_max": "by how many versions the oldest was too old",
    "mean_staleness_as_derived": "whether the mean is what the formula says",
    "samples_per_s": "samples that are read in a second, all ranks",
    "throughput_over_sync": "how many times the samples a second of the synchronous run",
    "loss_final": "the loss at the end, on all data",
    "loss_final_sync": "the loss at the end of the synchronous run, on all data",
    "learning_rate": "the learning rate that was used",
    "sharpness_max": "the largest curvature that training met",
    "lr_over_limit": "the learning rate over the largest stable one at this staleness",
    "weights_gap_to_single": "how far the final weights are from those of one process",
    "weights_equal_single": "whether they are equal to those of one process, bit by bit",
    "arrival_repeats": "whether gradients arrive in the same order in a second run",
    "weights_repeat": "whether a second run gives the same weights, bit by bit",
    "staleness_of_slowest": "by how many versions the slowest rank's gradients are too old",
    "staleness_of_others": "by how many versions the other ranks' gradients are too old",
    "gradients_of_slowest": "gradients that came from the rank with the fewest",
    "gradients_of_fastest": "gradients that came from the rank with the most",
}
