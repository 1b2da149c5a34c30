"""Where to begin in the exercise on predicting an all-reduce, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
def my_prediction(num_bytes, world_size, alpha_s, bytes_per_s):
    # each rank sends its message once: is that all?
    seconds = alpha_s + num_bytes / bytes_per_s
    return seconds, alpha_s * bytes_per_s


lab.check(my_prediction)
""",
    hints=(
        "A ring has two halves. After the first, each rank holds the finished sum of one chunk. After the second, "
        "each rank has all sums. Each half has W - 1 steps.",
        "In each step a rank sends a W-th of the message: alpha_s + num_bytes / world_size / bytes_per_s seconds.",
        "Latency and bandwidth cost the same when alpha_s = num_bytes / world_size / bytes_per_s. Solve it "
        "for num_bytes: the number of steps cancels.",
    ),
    solution="""\
def my_prediction(num_bytes, world_size, alpha_s, bytes_per_s):
    steps = 2 * (world_size - 1)
    seconds = steps * alpha_s + steps / world_size * num_bytes / bytes_per_s
    return seconds, world_size * alpha_s * bytes_per_s
""",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
