"""Does the counter of FLOPs see what the formula counts?

torch's counter knows the operations that it was told of. Fused attention on a CPU is not among them, so it misses all
of attention; an input layer has no input gradient, so a small network does less than 6 FLOPs a weight.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import declares_flops, flops_by_convention

NAME = "flop-convention"
QUESTION = "Do counted and computed FLOPs agree?"
_answer = answering(NAME, QUESTION)

AGREE = 0.01


def detect(record: Record) -> Verdict:
    """Compare the counter's FLOPs a token with 6N + 12·L·h·s."""
    run = record.run
    if not run.fact("counted_flops_per_token"):
        return _answer("not_applicable", "no-flops-counted")
    if not declares_flops(run):
        return _answer("not_applicable", "no-flops-declared")
    flops = flops_by_convention(run)
    ratio = flops["counted"] / flops["attention"]
    evidence = {
        "counted": Quantity(flops["counted"] / 1e6, "MFLOP a token"),
        "formula": Quantity(flops["attention"] / 1e6, "MFLOP a token, 6N + 12·L·h·s"),
        "counted_to_formula": Quantity(ratio, ""),
    }
    if abs(ratio - 1) <= AGREE:
        return _answer("clear", "counter-sees-what-the-formula-counts", evidence)
    without = flops["6n"] / flops["attention"]
    if abs(ratio - without) <= AGREE:
        return _answer("found", "counter-misses-attention", evidence, ratio=ratio)
    return _answer("found", "counter-and-formula-differ", evidence, ratio=ratio)
