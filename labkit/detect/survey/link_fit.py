"""Can the link be predicted from its latency and its bandwidth?

The line 2(W-1)·α + 2(W-1)/W · n/β fits one algorithm on one kind of link. Libraries switch algorithms by size, and a busy
machine shifts single sizes; both leave a residual. What the repeats' own scatter explains is noise, the rest is not.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Source
from ...theory.ceilings import MIN_SIZES, LinkFit, timing
from ..catalogue import said
from ..under_load import is_heavy
from ..verdict import Verdict, answering
from .repeats import link_fit, link_repeats

NAME = "link-fit"
QUESTION = "Do one latency and one bandwidth predict an all-reduce here?"
TIMED = True
_answer = answering(NAME, QUESTION)

GOOD = 0.5
"""A prediction that is off by less than this still tells a link that is the limit from one that is not."""


def detect(record: Record) -> Verdict:
    """Judge the record's link, if it has one."""
    run = record.runs.get(Role.LINK)
    if run is None:
        return _answer("not_applicable", "no-link-measured")
    if run.world_size < 2:
        return _answer("not_applicable", "one-rank-has-no-link")
    fit, repeats = link_fit(record), link_repeats(run)
    if fit is None:
        return _answer("inconclusive", "too-few-message-sizes", sizes=len(repeats), least=MIN_SIZES)
    worst = int(abs(fit.residuals).argmax())
    size, off = int(fit.sizes[worst]), float(fit.residuals[worst])
    scatter = timing(repeats[size]).spread
    evidence = _evidence(fit, size, off, scatter, record.link_source)
    if fit.bytes_per_s is None:
        return _answer("inconclusive", "no-bandwidth-resolved", evidence)
    if abs(off) <= GOOD:
        return _answer("clear", "fit-is-near", evidence, off=abs(off), good=GOOD)
    told = said("fit-says-more" if off > 0 else "fit-says-less", size=size, off=abs(off))
    if scatter >= 0.5 * abs(off) or is_heavy(run):
        return _answer("inconclusive", "noise-can-hide-the-line", evidence, told=told, scatter=scatter)
    return _answer("found", "no-single-line", evidence, told=told, scatter=scatter)


def _evidence(fit: LinkFit, size: int, off: float, scatter: float, source: Source | None) -> dict[str, Quantity]:
    return {
        "latency": Quantity(fit.alpha_s * 1e6, "µs a step", source),
        "bandwidth": Quantity(fit.bytes_per_s / 1e9, "GB/s", source) if fit.bytes_per_s else Quantity("not resolved"),
        "residual_max": Quantity(abs(off), "x the measured time", source),
        "at_message": Quantity(size, "bytes"),
        "scatter_there": Quantity(scatter, "of the median repeat", source),
        "sizes": Quantity(len(fit.sizes), "messages"),
    }
