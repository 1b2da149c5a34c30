"""What the measures of sharding are. Of a comparison each has the name of its strategy before it."""

_COMPARED = {
    "kept_after_backward": "state that is kept after a backward pass",
    "peak": "the most state that was alive at once",
    "dispatched": "what a rank handed to collectives, in the paper's unit",
    "on_the_wire": "what left a rank on the network, in the paper's unit",
    "step_time": "how long a step takes, the median",
    "step_time_fast": "how long a step takes where no link is slow, the median",
    "loss_gap": "largest distance of the loss from that of one process",
}

MEANINGS = {
    **_COMPARED,
    **{f"*_{name}": said for name, said in reversed(_COMPARED.items())},
    "parameters": "of the model",
    "kept_by_the_paper": "state that the stage keeps, by the paper's formula",
    "own_account_missed_by": "what the strategy's own account of its state leaves out",
    "room": "memory that is available for the state",
    "fits": "whether the peak fits into that memory",
    "sent_by_the_paper": "what a rank sends, by the paper's formula",
    "collectives": "messages in a step",
    "over_the_link": "what left a host in a step",
    "loss_follows_single": "whether the loss equals that of one process, up to rounding",
    "optimizer_knows": "parameters of the model that the optimizer updates",
    "weights_moved": "the largest change of any weight",
    "grad_norm_lowest": "the smallest norm that a rank clipped by",
    "grad_norm_highest": "the largest norm that a rank clipped by",
    "initial_weights": "how many different sets of weights the ranks began with",
}
