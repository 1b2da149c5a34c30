"""Check a learner's prediction of an all-reduce: with other numbers than the lesson's, and naming the usual slips."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...record.ceilings import all_reduce_s, crossover_bytes

CASES = (
    (4 * 7_000_000_000, 64, 12e-6, 25e9),
    (2 * 1_300_000_000, 8, 5e-6, 300e9),
    (4 * 60_000, 2, 180e-6, 1.1e9),
    (1024, 32, 30e-6, 12.5e9),
    (4 * 25_000_000, 3, 250e-6, 0.9e9),
)
"""(gradient bytes, ranks, α in seconds, β in bytes a second)."""

CLOSE = 1e-6


def check(prediction: Callable[..., Any], lab: Any) -> list[str]:
    """What is still wrong with `prediction`, in sentences; an empty list when nothing is.

    It runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    try:
        answers = lab.try_out(ask, prediction)
    except LabkitError as error:
        return [f"the function did not finish: {error}"]
    if isinstance(answers, str):
        return [answers]
    times = [_time_slip(*case, answer[0]) for case, answer in zip(CASES, answers, strict=True)]
    sizes = [_size_slip(*case[1:], answer[1]) for case, answer in zip(CASES, answers, strict=True)]
    return [text for text in (_first(times), _first(sizes)) if text]


def _first(texts: list[str]) -> str:
    """The first that names its cause, else the first: one sentence for each of the two numbers is enough."""
    wrong = [text for text in texts if text]
    return next((text for text in wrong if "; " in text), next(iter(wrong), ""))


def ask(context: RankContext) -> list[tuple[float, float]] | str:
    """The learner's answers for every case, or a sentence about their form. *Called on* one rank, without a group."""
    answers = []
    for case in CASES:
        answer = context.config(*case)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            return f"return two numbers, (seconds, bytes); the function returned {shown(answer)}"
        try:
            answers.append((float(answer[0]), float(answer[1])))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return f"return two numbers, (seconds, bytes); the function returned {shown(answer)}"
    return answers


def _time_slip(num_bytes: int, world_size: int, alpha_s: float, bytes_per_s: float, given: float) -> str:
    right = all_reduce_s(num_bytes, world_size, alpha_s, bytes_per_s)
    if math.isclose(given, right, rel_tol=CLOSE):
        return ""
    steps, whole = 2 * (world_size - 1), num_bytes / bytes_per_s
    slips = {
        steps / world_size * whole: "the latency is missing: each of the 2(W-1) steps of the ring pays α once",
        steps * alpha_s: "the bytes are missing",
        alpha_s + whole: "the ring first sums, then spreads the sums: 2(W-1) steps, each with a latency and n/W bytes",
        alpha_s + steps / world_size * whole: "α is paid once; it is paid in each of the 2(W-1) steps of the ring",
        right / 2: "half of the ring is missing: a reduce-scatter, then an all-gather, W-1 steps each",
        steps * alpha_s + whole: "a rank does not send the message once: it sends 2(W-1)/W times the message",
        steps * alpha_s + 2 * whole: "2·n/β is the limit for many ranks; on W ranks it is 2(W-1)/W·n/β",
        steps * (alpha_s + whole): "each step moves n/W bytes, not all n",
        world_size * alpha_s + steps / world_size * whole: "the ring has 2(W-1) steps, not W",
        steps * alpha_s + 8 * steps / world_size * whole: "the bandwidth is in bytes a second already, not in bits",
    }
    why = next((text for value, text in slips.items() if math.isclose(given, value, rel_tol=CLOSE)), "")
    told = f"seconds for {num_bytes:,} bytes on {world_size} ranks: {given:.6g}, should be {right:.6g}"
    return f"{told}; {why}" if why else told


def _size_slip(world_size: int, alpha_s: float, bytes_per_s: float, given: float) -> str:
    right = crossover_bytes(world_size, alpha_s, bytes_per_s)
    if math.isclose(given, right, rel_tol=CLOSE):
        return ""
    slips = {
        alpha_s * bytes_per_s: "set 2(W-1)·α equal to 2(W-1)/W·n/β and solve for n: a W remains",
        2 * (world_size - 1) * alpha_s * bytes_per_s: "2(W-1) stands on both sides and cancels",
    }
    why = next((text for value, text in slips.items() if math.isclose(given, value, rel_tol=CLOSE)), "")
    told = f"size at which both cost the same on {world_size} ranks: {given:,.0f} bytes, should be {right:,.0f}"
    return f"{told}; {why}" if why else told
