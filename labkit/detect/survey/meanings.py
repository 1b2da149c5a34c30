"""What the measures of a survey are."""

MEANINGS = {
    "*_spread": "how much less time the best of its repeats took than the median",
    "matmul_*": "products of large matrices in this format",
    "copy": "copies within memory, bytes read and written",
    "link_latency": "α: what a message costs however small it is",
    "link_bandwidth": "β: how fast bytes go from one rank to the next",
    "link_residual_max": "the largest error of the fit, as a share of the measured time",
    "storage_sequential": "reading a file in order",
    "storage_random": "reading a small piece anywhere in a file",
    "storage_cache": "how the page cache was kept out, so that the disk is measured",
    "launch": "how long ranks take to start and meet",
}
