"""Check a learner's bucket size: on models and links that are drawn and computed, then on the link at hand, measured.

What decides is a model of buckets that queue (labkit.theory.overlap_model): exact, so noise cannot decide. On the link at
hand the gradients and the link are measured, and the answer for them is judged by the same model. Where the model says that
it is not the best, the sizes run in turn, and the answer is called wrong only where the clock agrees.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...detect.overlap.summary import model_of, sweep_of
from ...errors import LabkitError, shown
from ...record.schema import Record
from ...theory.overlap_model import MIB, Gradients, Link, Predicted, best_cap, evenly, predict
from ..checking import CannotTell, Question, ask, log_uniform
from ..opened import OpenedLab

CLOSE = 1.05
"""Of the best step: within this the size is right."""

NUM_CASES = 16
TELLING = 1.15
"""In a case that is asked, one bucket or one a gradient takes at least so many times the best: a guess shows."""

MEASURED: dict[str, int] = {"layers": 6, "width": 256, "batch": 2048}
"""An eighth of the lab's own gradients, on a fourth of its link: quick, and communication is a large part of the step."""

MEASURED_LINK = "100mbit"
TOO_NOISY = 0.25
"""Where repeats of one size differ by more than this share, the clock says nothing."""


@dataclass(frozen=True)
class Case:
    """One model on one link.

    Attributes:
        name: in words.
        gradients, link: as the function is given them.
    """

    name: str
    gradients: Gradients
    link: Link

    @property
    def parts(self) -> tuple[Gradients, Link]:
        return self.gradients, self.link


def drawn_cases(draw: random.Random) -> list[Case]:
    """Deep and shallow models, even ones and such with one large part, on quick and slow links, on few and many ranks.

    In a third of them one bucket for all is bad, in a third one a gradient is, in a third both. In each, cutting all
    gradients into equal parts, as many as are best, is good enough.
    """
    cases: list[Case] = []
    while len(cases) < NUM_CASES:
        case = _any_case(draw)
        one, each = (predict(case.gradients, case.link, cap).step_s for cap in (case.gradients.total_bytes, 1))
        best = best_cap(case.gradients, case.link)[1].step_s
        wanted = {0: (one,), 1: (each,), 2: (one, each)}[len(cases) % 3]
        parts = min(_predicted(*case.parts, case.gradients.total_bytes * 1.01 / MIB / k).step_s for k in range(1, 60))
        if all(step >= TELLING * best for step in wanted) and parts <= 1.03 * best:
            cases.append(case)
    return cases


def _any_case(draw: random.Random) -> Case:
    number = round(log_uniform(draw, 4, 150))
    largest = log_uniform(draw, 1e5, 2e7)
    shape = draw.choice(("equal layers", "layers of all sizes", "a large part at the end", "a large part at the beginning"))
    sizes = [round(largest)] * number
    if shape == "layers of all sizes":
        sizes = [round(largest * draw.uniform(0.05, 1)) for _ in range(number)]
    elif shape == "a large part at the end":
        sizes[-1] = round(sum(sizes) * draw.uniform(0.3, 1.5))
    elif shape == "a large part at the beginning":
        sizes[0] = round(sum(sizes) * draw.uniform(0.3, 1.5))
    ranks = draw.choice((2, 3, 4, 8, draw.randint(5, 64)))
    link = Link(ranks, log_uniform(draw, 1e-5, 2e-2), log_uniform(draw, 2e7, 1e10))
    backward_s = link.seconds(sum(sizes)) * draw.uniform(0.4, 2.5)
    gradients = evenly(sizes, forward_s=backward_s * draw.uniform(0.3, 0.6), backward_s=backward_s)
    name = (
        f"{number} gradients, {shape}, {sum(sizes) / MIB:.3g} MiB in all, a backward pass of {1e3 * backward_s:.3g} ms, "
        f"{ranks} ranks, {1e3 * link.alpha_s:.3g} ms, {(link.bytes_per_s or 0) * 8e-6:.3g} Mbit/s"
    )
    return Case(name, gradients, link)


def check(function: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with a learner's `my_bucket_mb`, in sentences; an empty list when nothing is.

    Raises:
        CannotTell: on the link at hand the model says no, and the clock says nothing.
    """
    draw = random.Random(seed)
    cases = drawn_cases(draw)
    try:
        answers = ask(function, [Question(case.name, case.parts) for case in cases], lab, draw)
    except LabkitError as error:
        return [f"simulated: the function did not finish: {error}"]
    for case, answer in zip(cases, answers, strict=True):
        found = refuse(answer) or _beside_the_best(*case.parts, float(answer))
        if found:
            return [f"{case.name} (simulated): {found}"]
    return _check_measured(function, lab, draw)


def _beside_the_best(gradients: Gradients, link: Link, answer: float) -> str | None:
    _, best = best_cap(gradients, link)
    yours = _predicted(gradients, link, answer)
    if yours.step_s <= CLOSE * best.step_s:
        return None
    why = (
        "a few large buckets leave when the backward pass is nearly over"
        if yours.buckets < best.buckets
        else "many small buckets each pay the link's latency"
    )
    return (
        f"{answer:.3g} MiB makes {yours.buckets} buckets and a step of {yours.step_s * 1e3:.3g} ms; "
        f"{best.step_s * 1e3:.3g} ms can be had with {best.buckets}: {why}"
    )


def _predicted(gradients: Gradients, link: Link, mib: float) -> Predicted:
    return predict(gradients, link, max(1.0, mib * MIB))


def refuse(answer: Any) -> str | None:
    """Why an answer is no bucket size, or None."""
    number = isinstance(answer, (int, float, np.integer, np.floating)) and not isinstance(answer, bool)
    if not number or not 0 < answer <= sys.float_info.max:
        return f"the function returned {shown(answer)}; return a number of MiB above 0, such as 1.0"
    return None


def _check_measured(function: Callable[..., Any], lab: OpenedLab, draw: random.Random) -> list[str]:
    """Judge the size for gradients and a link that were measured, on two hosts with a slow link."""
    where = "on this machine's link (measured)"
    how = {"ranks": 2, "hosts": 2, "link": MEASURED_LINK, **MEASURED}
    parts = model_of(lab.run("fixed", steps=4, **how))
    assert parts is not None  # its parts are measured too
    try:
        (answer,) = ask(function, [Question(where, parts)], lab, draw)
    except LabkitError as error:
        return [f"{where}: the function did not finish: {error}"]
    wrong = refuse(answer)
    if wrong:
        return [f"{where}: {wrong}"]
    found = _beside_the_best(*parts, float(answer))
    if found is None:
        return []
    yours, best = (float(f"{min(1e5, size):.6g}") for size in (float(answer), best_cap(*parts)[0]))
    total = parts[0].total_bytes / MIB
    beside = lab.run("bucket-sweep", steps=8, sweep_mb=f"{yours!r},{best!r},{2 * total:.6g}", **how)
    return _judge(beside, yours, f"by the model of this machine's link {found}")


def _judge(record: Record, yours: float, by_the_model: str) -> list[str]:
    """The clock's word on what the model says: it agrees, it does not, or its noise leaves it open."""
    tried = sweep_of(record)
    own = next(one for one in tried if one.cap_mib == yours)
    best = min(tried, key=lambda one: one.median_s)
    noise = max(float(one.step_s.max() - one.step_s.min()) for one in (own, best)) / best.median_s
    if own.buckets == best.buckets:
        return []
    measured = f"{own.median_s * 1e3:.3g} ms a step, and {best.median_s * 1e3:.3g} ms with {best.buckets} buckets"
    if own.median_s > (CLOSE + noise) * best.median_s:
        return [f"on this machine, {MEASURED_LINK} (measured): {yours:.3g} MiB takes {measured}; {by_the_model}"]
    if noise > TOO_NOISY:
        raise CannotTell(
            f"{by_the_model}; measured it is {measured}, and repeats of one size differ by {noise:.0%}. Check again when "
            "other programs are done"
        )
    return []
