"""Where to begin in the exercise on six figures, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
from labkit.labs.mfu.exercise import MISTAKES


def my_answers(case):
    # return (the mistake, the right MFU as a fraction): here every claim is called twice too small
    return MISTAKES[0], case.claimed * case.sparse_flops / case.dense_flops


lab.check(my_answers)
""",
    hints=(
        "Work out the right MFU first: 6 x active weights x tokens a second, over devices x the dense peak. "
        "Which weights take part in no product?",
        "Active weights are all weights, less the embedding, less the experts that are idle. Tokens a second "
        "are micro-batches x tokens over the time of a step.",
        "For each mistake work out by which factor it changes the right figure. Then find the factor that is "
        "nearest to claimed / right.",
    ),
    solution="""\
from labkit.labs.mfu.exercise import MISTAKES


def my_answers(case):
    active = case.weights - case.embedding - case.idle_experts
    tokens_per_s = case.micro_batches * case.tokens / case.step_s
    right = 6 * active * tokens_per_s / (case.devices * case.dense_flops)
    makes = [  # in the order of MISTAKES: how many times the right figure
        case.dense_flops / case.sparse_flops,
        case.devices,
        8 / 6 if case.recomputed else 1,
        1 + case.idle_experts / active,
        1 + case.embedding / active,
        1 / case.micro_batches,
    ]
    found = min(range(6), key=lambda k: abs(case.claimed / (makes[k] * right) - 1))
    return MISTAKES[found], right
""",
    note="A sparse peak doubles the denominator; accumulation that is forgotten makes a step look as many "
    "times too slow as it has micro-batches.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
