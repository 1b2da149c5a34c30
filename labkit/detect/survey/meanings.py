"""What the measures of a survey are."""

MEANINGS = {
    "*_spread": "how much less time the best of its repeats took than the median",
    "matmul_*": "products of large matrices in this format",
    "copy": "copies within memory, bytes read and written",
    "link_latency": "α: what a message costs however small it is",
    "link_bandwidth": "β: how fast bytes go from one rank to the next",
    "link_residual_max": "by how much α and β miss a measured time, the most",
    "storage_sequential": "reading a file in order",
    "storage_random": "reading a small piece anywhere in a file",
    "storage_cache": "how memory was kept from answering in place of the disk",
    "launch": "how long ranks take to start and meet",
}
