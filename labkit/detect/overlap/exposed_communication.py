"""Do ranks wait for communication that could have been hidden?

Judged by spans within each step: what of the collectives lies outside all computing. Only a backward pass can hide a
reduction, so no more can be asked than the shorter of the two; and the last bucket always sets out when all is computed.
Where communication is a few percent of the step, there is nothing to gain here and nothing to learn about another link.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run, Source
from ...theory.overlap_model import MIB, first_try_mib
from ..catalogue import Said, said
from ..spread import FLOOR_S, median_interval
from ..under_load import is_heavy, pressure
from ..verdict import Verdict, answering
from .measures import Buckets, Exposure, buckets, computing_is_known, exposure, is_sweep

NAME = "exposed-communication"
QUESTION = "Do ranks wait for communication that the backward pass could hide?"
TIMED = True
_answer = answering(NAME, QUESTION)

FEW = 0.05
"""Communication under this share of the step gains too little, whatever becomes of it, to be told from noise."""

WORTH = 0.08
"""Share of the step that could be saved, below which it is not worth a change."""

HALF = 0.5
"""Hidden, of what could be hidden: less is found, more is clear."""

ENOUGH_STEPS = 3

LATENCY_BYTES = 2**16
"""Gradients of less than this take a latency to send, and hardly more, on any link that one trains over."""


def detect(record: Record) -> Verdict:
    """Judge the measured steps of the run under study."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-sends-to-nobody")
    if is_sweep(run):
        return _answer("not_applicable", "several-bucket-sizes-were-tried")
    if not computing_is_known(run):
        return _answer("not_applicable", "computing-not-told-from-waiting")
    seen = exposure(run)
    if seen is None:
        return _answer("not_applicable", "no-collective-timed")
    if not seen.backward_s.any():
        return _answer("not_applicable", "no-backward-pass-timed")
    return _judge(run, seen, record.link_source)


def _judge(run: Run, seen: Exposure, source: Source | None) -> Verdict:
    hideable = np.minimum(seen.comm_s, seen.backward_s)
    hidden = np.clip((seen.comm_s - seen.exposed_s) / np.maximum(hideable, 1e-12), 0, 1)  # behind the forward pass too
    avoidable = np.maximum(0, seen.exposed_s - np.maximum(0, seen.comm_s - seen.backward_s)) / seen.step_s
    share, saved = float(np.median(seen.comm_s / seen.step_s)), float(np.median(avoidable))
    evidence = _evidence(run, seen, hidden, avoidable, source)
    where = str(run.fact("wrap_where", "")) or None
    if share < FEW:
        return _answer("inconclusive", "communication-too-short-to-notice", evidence, share=share)
    if len(hidden) < ENOUGH_STEPS:
        enough = ENOUGH_STEPS + 2
        return _answer("inconclusive", "too-few-steps-to-see-them-differ", evidence, steps=len(hidden), enough=enough)
    (low, high), (least, most) = median_interval(hidden), median_interval(avoidable)
    # what others take of the cores makes steps longer, and so a share of them smaller, but not what is waited for
    little = most * pressure(run) < WORTH and not is_heavy(run)
    if little or low >= HALF:
        return _answer("clear", "communication-is-hidden", evidence, hidden=float(np.median(hidden)), saved=saved)
    if least >= WORTH and high < HALF and float(np.median(avoidable * seen.step_s)) > FLOOR_S:
        return _found(run, seen, hidden, evidence, where, saved)
    return _answer("inconclusive", "noise-hides-what-is-hidden", evidence, low=low, high=high, least=least, most=most)


def _found(
    run: Run, seen: Exposure, hidden: np.ndarray, evidence: dict[str, Quantity], where: str | None, waste: float
) -> Verdict:
    """By how gradients are reduced: after the backward pass, in one bucket, in several."""
    made, exposed_ms = buckets(run), float(np.median(seen.exposed_s)) * 1e3
    if made is None:
        return _answer("found", "reduced-after-the-backward-pass", evidence, where=where, waste=waste, exposed_ms=exposed_ms)
    if len(made.num_bytes) == 1:
        return _answer(
            "found",
            "one-bucket-holds-all",
            evidence,
            where=where,
            waste=waste,
            exposed_ms=exposed_ms,
            gradient_bytes=int(made.num_bytes.sum()),
            remedy=_remedy(made),
        )
    return _answer(
        "found",
        "large-bucket-comes-late",
        evidence,
        where=where,
        waste=waste,
        exposed_ms=exposed_ms,
        hidden=float(np.median(hidden)),
        buckets=len(made.num_bytes),
        largest=float(made.num_bytes.max() / made.num_bytes.sum()),
        remedy=_remedy(made),
    )


def _remedy(made: Buckets) -> Said:
    """What to do about buckets."""
    total = float(made.num_bytes.sum())
    if total < LATENCY_BYTES:
        return said("compute-more-in-a-step")
    start = first_try_mib(total)
    return (
        said("try-other-buckets") if made.num_bytes.max() <= start * MIB else said("make-buckets-smaller", start_mib=start)
    )


def _evidence(
    run: Run, seen: Exposure, hidden: np.ndarray, avoidable: np.ndarray, source: Source | None
) -> dict[str, Quantity]:
    made = buckets(run)
    found = {
        "step": Quantity(float(np.median(seen.step_s)) * 1e3, "ms", source),
        "computing": Quantity(float(np.median(seen.compute_s)) * 1e3, "ms"),
        "communication": Quantity(float(np.median(seen.comm_s)) * 1e3, "ms, union of the collectives", source),
        "exposed": Quantity(float(np.median(seen.exposed_s)) * 1e3, "ms", source),
        "hidden": Quantity(float(np.median(hidden)), "of what the backward pass can hide", source),
        "avoidable": Quantity(float(np.median(avoidable)), "of the step", source),
        "steps": Quantity(len(seen.step_s), "measured"),
    }
    return found if made is None else found | {"collectives": Quantity(len(made.num_bytes), "a reduction")}
