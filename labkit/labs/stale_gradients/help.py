"""Where to begin in the exercise on the learning rate, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
def my_lr(workers, sharpness):
    # the limit of synchronous training: repair it
    return 0.8 * 2 / sharpness


lab.check(my_lr)
""",
    hints=(
        "How many versions old is a gradient, on average, when W workers push as they please? That is the "
        "delay of the formula.",
        "Without momentum, lr times the curvature must stay below 2 sin(pi / (2 (2 delay + 1))).",
        "Take a fixed share of that limit, 0.8 of it, and divide by the sharpness.",
    ),
    solution="""\
import math

def my_lr(workers, sharpness):
    delay = workers - 1
    return 0.8 * 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / sharpness
""",
    note="For many workers this is about 0.8 pi / (2 workers sharpness): twice the workers, half the learning "
    "rate. What have you gained?",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
