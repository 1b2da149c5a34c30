"""Check a learner's prediction of an all-reduce: with other numbers than the lesson's, and naming the usual slips."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...errors import LabkitError, shown
from ..checking import Question, ask, log_uniform
from ..opened import OpenedLab

Case = tuple[int, int, float, float]
"""(gradient bytes, ranks, α in seconds, β in bytes a second)."""

NUM_CASES = 40
CLOSE = 1e-6


def drawn_cases(draw: random.Random) -> list[Case]:
    """Messages from one byte to a terabyte, on two ranks and on thousands: odd numbers, and fewer bytes than ranks, too."""
    ranks = [2, 3, 4, draw.choice((5, 7, 11, 13, 97)), 64, 2 * draw.randint(3, 500) + 1]
    ranks += [round(log_uniform(draw, 2, 5000)) for _ in range(NUM_CASES - len(ranks))]
    return [
        (round(log_uniform(draw, 1, 1e12)), world_size, log_uniform(draw, 1e-7, 1e-2), log_uniform(draw, 1e7, 1e12))
        for world_size in ranks
    ]


def check(prediction: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with `prediction`, in sentences; an empty list when nothing is.

    It runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    draw = random.Random(seed)
    cases = drawn_cases(draw)
    try:
        answers = ask(prediction, [Question(_said(case), case) for case in cases], lab, draw)
    except LabkitError as error:
        return [f"the function did not finish: {error}"]
    pairs = []
    for case, answer in zip(cases, answers, strict=True):
        pair = _two_numbers(answer)
        if pair is None:
            return [f"for {_said(case)}: return two numbers, (seconds, bytes); the function returned {shown(answer)}"]
        pairs.append(pair)
    times = [_time_slip(*case, pair[0]) for case, pair in zip(cases, pairs, strict=True)]
    sizes = [_size_slip(*case[1:], pair[1]) for case, pair in zip(cases, pairs, strict=True)]
    return [text for text in (_first(times), _first(sizes)) if text]


def _said(case: Case) -> str:
    num_bytes, world_size, alpha_s, bytes_per_s = case
    return f"{num_bytes:,} bytes on {world_size} ranks, α = {alpha_s:.3g} s, β = {bytes_per_s:.3g} bytes/s"


def _two_numbers(answer: Any) -> tuple[float, float] | None:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return None
    try:
        return float(answer[0]), float(answer[1])
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _first(texts: list[str]) -> str:
    """One sentence for each of the two numbers is enough: the first with the cause that explains most cases, else the first.

    Where latency or bytes hardly count, several slips give one number, so a single case may name the wrong one.
    """
    wrong = [text for text in texts if text]
    causes = Counter(text.partition("; ")[2] for text in wrong if "; " in text)
    return next((text for text in wrong if causes and text.endswith(causes.most_common(1)[0][0])), next(iter(wrong), ""))


def _time_slip(num_bytes: int, world_size: int, alpha_s: float, bytes_per_s: float, given: float) -> str:
    # step by step around the ring: the sums travel, then the results
    right = 2 * math.fsum([alpha_s + num_bytes / world_size / bytes_per_s] * (world_size - 1))
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
    told = f"seconds for {_said((num_bytes, world_size, alpha_s, bytes_per_s))}: {given:.6g}, should be {right:.6g}"
    return f"{told}; {why}" if why else told


def _size_slip(world_size: int, alpha_s: float, bytes_per_s: float, given: float) -> str:
    right = alpha_s * bytes_per_s * world_size  # where the W-th part of a message takes as long as the latency
    if math.isclose(given, right, rel_tol=CLOSE):
        return ""
    slips = {
        alpha_s * bytes_per_s: "set 2(W-1)·α equal to 2(W-1)/W·n/β and solve for n: a W remains",
        2 * (world_size - 1) * alpha_s * bytes_per_s: "2(W-1) stands on both sides and cancels",
    }
    why = next((text for value, text in slips.items() if math.isclose(given, value, rel_tol=CLOSE)), "")
    told = (
        f"size at which both cost the same on {world_size} ranks, α = {alpha_s:.3g} s, β = {bytes_per_s:.3g} bytes/s: "
        f"{given:,.0f} bytes, should be {right:,.0f}"
    )
    return f"{told}; {why}" if why else told
