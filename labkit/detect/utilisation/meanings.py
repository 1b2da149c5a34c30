"""What the measures of utilisation are."""

MEANINGS = {
    "step_time_s": "how long a step takes, from one to the next",
    "ceiling": "the fastest products of this device, which an MFU is a share of",
    "tokens_per_s": "tokens that are trained on in a second, all ranks",
    "flops_per_token_6n": "arithmetic of a token by 6 × parameters",
    "flops_per_token_attention": "arithmetic of a token with attention's products",
    "flops_per_token_counted": "arithmetic of a token as a counter of operations saw it",
    "mfu_6n": "useful arithmetic by 6 × parameters, as a share of the ceiling",
    "mfu_attention": "useful arithmetic with attention's products, as a share of the ceiling",
    "mfu_causal": "useful arithmetic without what a causal mask hides, as a share of the ceiling",
    "mfu_counted": "arithmetic as a counter of operations saw it, as a share of the ceiling",
    "hfu": "all arithmetic that was done, repeated too, as a share of the ceiling",
    "busy_share": "how much of the time the cores were at work",
    "queued_share": "how much of the time ranks were ready and another program had the core",
    "data_share": "how much of a step waits for data",
    "speed_of_tuned": "how many times as fast the tuned program is",
}
