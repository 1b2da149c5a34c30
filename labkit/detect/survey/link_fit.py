"""Can the link be predicted from its latency and its bandwidth?

The line 2(W-1)·α + 2(W-1)/W · n/β fits one algorithm on one kind of link. Libraries switch algorithms by size, and a busy
machine shifts single sizes; both leave a residual. What the repeats' own scatter explains is noise, the rest is not.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ...theory.ceilings import MIN_SIZES, timing
from ..under_load import is_heavy
from ..verdict import Verdict, answering
from .repeats import link_fit, link_repeats

NAME = "link-fit"
QUESTION = "Can an all-reduce be predicted from one latency and one bandwidth here?"
TIMED = True
_answer = answering(NAME, QUESTION)

GOOD = 0.5
"""A prediction that is off by less than this still tells a link that is the limit from one that is not."""


def detect(record: Record) -> Verdict:
    """Judge the record's link, if it has one."""
    run = record.runs.get(Role.LINK)
    if run is None:
        return _answer("not_applicable", cause="the record has no measurement of a link", fix="run `labkit run start-here`")
    if run.world_size < 2:
        return _answer(
            "not_applicable", cause="one rank has no link: it sends nothing", fix="measure with --ranks 2 or more"
        )
    fit, repeats = link_fit(record), link_repeats(run)
    if fit is None:
        return _answer(
            "inconclusive",
            cause=f"{len(repeats)} message size(s) were measured, and a fit of two numbers needs {MIN_SIZES} or more",
            fix="measure up to a larger message, as with --set max_message_mib=16",
        )
    worst = int(abs(fit.residuals).argmax())
    size, off = int(fit.sizes[worst]), float(fit.residuals[worst])
    source = record.link_source
    scatter = timing(repeats[size]).spread
    evidence = {
        "latency": Quantity(fit.alpha_s * 1e6, "µs a step", source),
        "bandwidth": Quantity(fit.bytes_per_s / 1e9, "GB/s", source) if fit.bytes_per_s else Quantity("not resolved"),
        "residual_max": Quantity(abs(off), "x the measured time", source),
        "at_message": Quantity(size, "bytes"),
        "scatter_there": Quantity(scatter, "of the median repeat", source),
        "sizes": Quantity(len(fit.sizes), "messages"),
    }
    side = "more" if off > 0 else "less"
    told = f"for {size:,} bytes the fit says {abs(off):.0%} {side} than was measured"
    if fit.bytes_per_s is None:
        return _answer(
            "inconclusive",
            evidence,
            cause="no message was large enough to show a bandwidth",
            fix="measure up to a larger message, as with --set max_message_mib=64",
        )
    if abs(off) <= GOOD:
        return _answer(
            "clear",
            evidence,
            cause=f"the fit is off by {abs(off):.0%} at most, and {GOOD:.0%} would still tell which links are the limit",
        )
    if scatter >= 0.5 * abs(off) or is_heavy(run):
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{told}, and repeats of that size scatter by {scatter:.0%}: noise can hide the line",
            fix="end what else runs here, give more time (--set budget_s=30), and measure again",
        )
    return _answer(
        "found",
        evidence,
        cause=f"{told}, while its repeats scatter by {scatter:.0%} only: the link follows no single line",
        fix="read times off the measured curve between its points, and do not extrapolate from the fit",
    )
