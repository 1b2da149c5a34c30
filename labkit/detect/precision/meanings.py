"""What the measures of precision are."""

MEANINGS = {
    "updates": "steps in which the weights were updated",
    "final_loss": "the loss at the end",
    "final_loss_fp32": "the loss at the end, in fp32",
    "zero_gradients": "elements of gradients that are exactly 0",
    "zero_gradients_fp32": "elements of gradients that are exactly 0, in fp32",
    "lost_updates": "updates that are too small to change a weight",
    "lost_updates_fp32": "updates that are too small to change a weight, in fp32",
    "first_nonfinite_step": "the first step with a NaN or an infinity, and in what",
    "weights_bytes": "memory of the weights",
    "gradients_bytes": "memory of the gradients",
    "optimizer_bytes": "memory of the optimizer's state",
    "weights_gap_to_fp32": "how far the final weights are from those in fp32",
    "weights_equal_fp32": "whether they are equal to those in fp32, bit by bit",
    "step_time": "how long a step takes, the median",
    "step_time_fp32": "how long a step takes in fp32, the median",
    "step_time_ratio_to_fp32": "how many times as long as in fp32 a step takes",
    "skipped_steps": "steps that the loss scaler left out",
    "final_scale": "the factor of the loss at the end",
    "loss_stands_still": "whether the loss of one batch stays the same to the bit",
}
