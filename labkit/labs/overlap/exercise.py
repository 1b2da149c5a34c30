"""Check a learner's bucket size: first on links and models that are computed, then on the link at hand, measured.

The computed part is a model of buckets that queue (labkit.record.overlap_model): exact, so noise cannot decide. The
measured part runs the learner's size in turn with those of a sweep, and speaks up only where noise cannot explain what it
sees.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...record.overlap_model import MIB, Gradients, Link, best_cap, evenly, predict
from ...record.summary_overlap import model_of, sweep_of

CLOSE = 1.05
"""Of the best step: within this the size is right."""

LAYERS = tuple([1_050_624] * 12)

MEASURED: dict[str, Any] = {"layers": 6, "width": 256, "batch": 2048}
"""An eighth of the lab's own gradients, on a fourth of its link: quick, and communication is a large part of the step."""

MEASURED_LINK = "100mbit"


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


CASES = (
    Case("12 layers, 400 Mbit/s, 0.1 ms", evenly(LAYERS, forward_s=0.15, backward_s=0.28), Link(2, 1e-4, 50e6)),
    Case("12 layers, 400 Mbit/s, 20 ms", evenly(LAYERS, forward_s=0.15, backward_s=0.28), Link(2, 20e-3, 50e6)),
    Case(
        "200 small layers, 1 Gbit/s, 2 ms, 8 ranks",
        evenly([66_048] * 200, forward_s=0.05, backward_s=0.1),
        Link(8, 2e-3, 125e6),
    ),
    Case(
        "a large embedding at the end, 4 ranks",
        evenly([2**20] * 16 + [16 * 2**20], forward_s=0.2, backward_s=0.4),
        Link(4, 1e-3, 125e6),
    ),
)


def check(function: Callable[..., Any], lab: Any) -> list[str]:
    """What is still wrong with a learner's `my_bucket_mb`, in sentences; an empty list when nothing is."""
    for case in CASES:
        found = _check_case(function, case, lab)
        if found:
            return [f"{case.name} (simulated): {found}"]
    return _check_measured(function, lab)


def _check_case(function: Callable[..., Any], case: Case, lab: Any) -> str | None:
    try:
        answer = lab.try_out(call, (function, case.gradients, case.link))
    except LabkitError as error:
        return f"the function did not finish: {error}"
    wrong = refuse(answer)
    if wrong:
        return wrong
    _, best = best_cap(case.gradients, case.link)
    yours = predict(case.gradients, case.link, max(1.0, float(answer) * MIB))
    if yours.step_s <= CLOSE * best.step_s:
        return None
    why = (
        "a few large buckets leave when the backward pass is nearly over"
        if yours.buckets < best.buckets
        else "many small buckets each pay the link's latency"
    )
    return (
        f"{float(answer):.3g} MiB makes {yours.buckets} buckets and a step of {yours.step_s * 1e3:.0f} ms; "
        f"{best.step_s * 1e3:.0f} ms can be had with {best.buckets}: {why}"
    )


def call(context: RankContext) -> Any:
    """Call the learner's function, in a process of its own. *Called on* one rank, without a group."""
    function, gradients, link = context.config
    return function(gradients, link)


def refuse(answer: Any) -> str | None:
    """Why an answer is no bucket size, or None."""
    number = isinstance(answer, (int, float)) and not isinstance(answer, bool)
    if not number or not 0 < answer <= sys.float_info.max:
        return f"the function returned {shown(answer)}; return a number of MiB above 0, such as 1.0"
    return None


def _check_measured(function: Callable[..., Any], lab: Any) -> list[str]:
    """Measure the learner's size in turn with the model's best and with one bucket, on two hosts with a slow link."""
    how = {"ranks": 2, "hosts": 2, "link": MEASURED_LINK, **MEASURED}
    parts = model_of(lab.run("fixed", steps=4, **how))
    assert parts is not None  # its parts are measured too
    try:
        answer = lab.try_out(call, (function, *parts))
    except LabkitError as error:
        return [f"on this machine's link (measured): the function did not finish: {error}"]
    wrong = refuse(answer)
    if wrong:
        return [f"on this machine's link (measured): {wrong}"]
    yours, best = (float(f"{min(1e5, size):.6g}") for size in (answer, best_cap(*parts)[0]))
    total = parts[0].total_bytes / MIB
    beside = lab.run("bucket-sweep", steps=8, sweep_mb=f"{yours!r},{best!r},{2 * total:.6g}", **how)
    return _judge(beside, yours)


def _judge(record: Any, yours: float) -> list[str]:
    tried = sweep_of(record)
    own = next(one for one in tried if one.cap_mib == yours)
    best = min(tried, key=lambda one: one.median_s)
    noise = max(float(one.step_s.max() - one.step_s.min()) for one in (own, best)) / best.median_s
    if own.buckets == best.buckets or own.median_s <= (CLOSE + noise) * best.median_s:
        return []
    return [
        f"on this machine, {MEASURED_LINK} (measured): {yours:.3g} MiB makes a step of {own.median_s * 1e3:.0f} ms, and "
        f"{best.buckets} buckets one of {best.median_s * 1e3:.0f} ms"
    ]
