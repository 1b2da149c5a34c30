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
    clip_norm = run.fact("clip_norm", 0.0)
    if not isinstance(clip_norm, (int, float)) or not clip_norm > 0:
        return _answer(
            "not_applicable",
            cause="the program declares no clipping",
            fix="declare it with probe.declare(clip_norm=...), where it clips",
        )
    if scaling(run) is None:
        return _answer("not_applicable", cause="no gradient scaler is used, so gradients carry no scale")
    kept = _norms_and_scales(run)
    if len(kept) < ENOUGH:
        return _answer(
            "inconclusive",
            cause=f"only {len(kept)} updates with a norm and a scale of {SMALLEST_SCALE:g} or more were seen",
            fix="run more steps; a scale near 1 hides the order",
        )
    norms, scales = np.array(kept).T
    if float((norms > clip_norm * (1 + TOLERANCE)).mean()) > 1 - USUAL:
        return _answer(
            "inconclusive",
            {"grad_norm": Quantity(float(np.median(norms)), "median"), "clip_norm": Quantity(float(clip_norm))},
            cause="the recorded norms are larger than clip_norm: they are those before clipping, which clip_grad_norm_ "
            "returns, and do not tell whether the scale was in them",
            fix="record grad_norm in a hook of the optimizer, which sees what it takes: optimizer.register_step_pre_hook("
            'lambda *_: probe.scalar("grad_norm", torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))',
        )
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
        return _answer(
            "found",
            evidence,
            cause=f"gradients come to the optimizer with a norm of {norm:.2g}, which is {clip_norm:g} divided by the scale "
            f"of {scale:,.0f}: they were clipped before the scale was taken out",
            fix="call scaler.unscale_(optimizer) after backward and before clip_grad_norm_",
            where=str(run.fact("loop_where", "")) or None,
        )
    if float((share > 1 + TOLERANCE).mean()) >= USUAL:
        return _answer("clear", evidence, cause="gradients are clipped, if at all, after the scale is taken out")
    return _answer(
        "inconclusive",
        evidence,
        cause="most gradients are smaller than either order would clip, or the two alternate",
        fix="clip at a smaller norm, or run where gradients are larger",
    )


def _norms_and_scales(run: Run) -> list[tuple[float, float]]:
    """By update: the norm that the optimizer took and the scale then, where both are of use."""
    steps = [step for step in updates_of(run) if {"grad_norm", "scale"} <= step.scalars.keys()]
    pairs = [(step.scalar("grad_norm"), step.scalar("scale")) for step in steps]
    return [(norm, scale) for norm, scale in pairs if scale >= SMALLEST_SCALE and np.isfinite(norm) and norm > 0]
