"""Are gradients clipped while they still carry the scale?

A scaler multiplies the loss, and so every gradient, by a large number. Clipped then, and divided by the scale afterwards,
their norm is max_norm / scale: 65,536 times too small with the usual scale. SGD stands still; Adam hides it.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import scaling, updates_of

NAME = "clip-before-unscale"
QUESTION = "Are gradients clipped while they still carry the scale?"
_answer = answering(NAME, QUESTION)

ENOUGH = 3
SMALLEST_SCALE = 4.0
"""With a scale near 1 both orders are the same."""

TOLERANCE = 0.01
USUAL = 0.9


def detect(record: Record) -> Verdict:
    """Compare the norm that the optimizer takes with clip_norm / scale, by update."""
    run = record.run
    if run.fact("watched_by") == "doctor":
        return _of_calls(run)
    clip_norm = run.fact("clip_norm", 0.0)
    if not isinstance(clip_norm, (int, float)) or not clip_norm > 0:
        return _answer("not_applicable", "no-clipping-declared")
    if scaling(run) is None:
        return _answer("not_applicable", "no-scaler-in-use")
    kept = _norms_and_scales(run)
    if len(kept) < ENOUGH:
        return _answer("inconclusive", "too-few-scaled-norms", seen=len(kept), smallest=SMALLEST_SCALE)
    norms, scales = np.array(kept).T
    if float((norms > clip_norm * (1 + TOLERANCE)).mean()) > 1 - USUAL:
        evidence = {"grad_norm": Quantity(float(np.median(norms)), "median"), "clip_norm": Quantity(float(clip_norm))}
        return _answer("inconclusive", "norms-are-those-before-clipping", evidence)
    return _judge(run, norms, scales, clip_norm)


def _of_calls(run: Run) -> Verdict:
    """Where the calls themselves were watched: whether the scale was still in the gradients when they were clipped."""
    steps = run.ranks[0].steps
    clips = sum(step.counts.get("clips", 0) for step in steps)
    scaled = sum(step.counts.get("clips_while_scaled", 0) for step in steps)
    if scaling(run) is None:
        return _answer("not_applicable", "no-scaler-in-use")
    if not clips:
        return _answer("not_applicable", "nothing-is-clipped")
    evidence = {"clips": Quantity(clips), "while_scaled": Quantity(scaled, "of them")}
    if scaled >= ENOUGH and scaled * 2 > clips:
        events = [event for event in run.ranks[0].events if event.name == "precision_use"]
        where = [str(e.fields["where"]) for e in events if e.fields["what"] == "clipped while scaled"]
        return _answer("found", "clipped-before-unscale-was-called", evidence, where=next(iter(where), None), clips=scaled)
    return _answer("clear", "clipped-after-unscaling", evidence)


def _judge(run: Run, norms: np.ndarray, scales: np.ndarray, clip_norm: float) -> Verdict:
    share = norms * scales / clip_norm  # 1 where the scaled gradients were clipped
    at_the_wrong_norm = float((np.abs(share - 1) < TOLERANCE).mean())
    norm, scale = float(np.median(norms)), float(np.median(scales))
    evidence = {
        "norm_at_the_update": Quantity(norm, "median"),
        "clip_norm": Quantity(float(clip_norm)),
        "scale": Quantity(scale, "median"),
        "norm_is_clip_norm_over_scale": Quantity(at_the_wrong_norm, "of updates"),
    }
    if at_the_wrong_norm >= USUAL:
        where = str(run.fact("loop_where", "")) or None
        return _answer("found", "clipped-while-scaled", evidence, where=where, norm=norm, clip_norm=clip_norm, scale=scale)
    if float((share > 1 + TOLERANCE).mean()) >= USUAL:
        return _answer("clear", "clipped-after-unscaling", evidence)
    return _answer("inconclusive", "gradients-too-small-to-clip", evidence)


def _norms_and_scales(run: Run) -> list[tuple[float, float]]:
    """By update: the norm that the optimizer took and the scale then, where both are of use."""
    steps = [step for step in updates_of(run) if {"grad_norm", "scale"} <= step.scalars.keys()]
    pairs = [(step.scalar("grad_norm"), step.scalar("scale")) for step in steps]
    return [(norm, scale) for norm, scale in pairs if scale >= SMALLEST_SCALE and np.isfinite(norm) and norm > 0]
