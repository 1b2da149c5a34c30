"""Check a learner's loop: beside the right one, step by step; then a whole training beside fp32, by the lab's detectors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ...errors import LabkitError
from ...record.schema import Record
from ..checking import log_uniform
from ..opened import OpenedLab
from . import SPEC
from .mirror import Course, Drive, compare, follow

CONDITIONS: dict[str, float] = {"clip_norm": 2e-6, "repeats": 0}
"""The gradients of a loss weighted by 1e-5 have a norm of some 1e-5: clipped at a fifth of it, most of them are clipped."""

DEADLINE_S = 60.0

TOO_HIGH, GROWS_TOO_HIGH = (38, 42), (28, 31)
"""Exponents of a first scale: at 2**33 to 2**38 the gradients of such a loss overflow in fp16."""

LEARNT = 0.5
"""Share of what fp32 learns that a repaired loop must reach; the unrepaired ones reach a sixth."""

NAMED = {
    "gradient-underflow": "the scaler is missing, or does not scale",
    "clip-before-unscale": "the order of clipping",
    "stale-casts": "casts are kept over the whole loop",
}


def drawn_drives(loop: Callable[..., Any], draw: random.Random) -> list[Drive]:
    """Two runs of a hundred steps or so, one for each optimizer: SGD shows the size of a gradient, Adam what is kept of it.

    In one the scale begins too high, in the other it grows until it is: a right loop leaves these steps out, and goes on.
    """
    drives = []
    for optimizer, exponents in zip(draw.sample(("sgd", "adam"), 2), (TOO_HIGH, GROWS_TOO_HIGH), strict=True):
        settings = {
            "optimizer": optimizer,
            "lr": 100.0 if optimizer == "sgd" else log_uniform(draw, 1e-3, 5e-3),
            "batch": draw.randint(24, 64),
            "clip_norm": CONDITIONS["clip_norm"] * draw.uniform(0.5, 2.0),
            "init_scale": 2.0 ** draw.randint(*exponents),
            "growth_interval": draw.randint(4, 6),
        }
        config = SPEC.configure(SPEC.variant("fixed"), settings)
        drives.append(Drive(loop, config, draw.randrange(2**31), draw.randint(80, 120)))
    return drives


def check(loop: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with `loop`, in sentences; an empty list when nothing is.

    The loop runs in processes of its own, so that one that hangs or crashes does no harm here.
    """
    draw = random.Random(seed)
    courses = []
    for drive in drawn_drives(loop, draw):
        try:
            courses.append(lab.try_out(follow, drive, deadline_s=DEADLINE_S))
        except LabkitError as error:
            return [f"the loop did not finish: {error}"]
        misused = _misuse(courses[-1])
        if misused:
            return misused
    found = _beside_fp32(loop, lab, draw.randrange(2**31))
    return found or _step_by_step(courses, lab)


def _misuse(course: Course) -> list[str]:
    """What keeps the loop from being judged."""
    steps, number = course.steps, course.num_batches
    if course.returned == "generator":
        return ["the function yields, so calling it runs nothing: let it train, and return nothing"]
    if course.taken < number:
        return [f"the loop took {course.taken} of {number} batches: it must go on until `batches` ends"]
    if not any(step.gradients for step in steps):
        return ["the optimizer never took a step: call scaler.step(optimizer) for each batch"]
    ahead = next((step for step in steps if step.taken > step.batch + 1), None)
    if ahead is not None:
        return [f"the loop takes {ahead.taken} batches before it trains on batch {ahead.batch}: train on each as it comes"]
    trained = [step.batch for step in steps]
    if trained != list(range(number)):
        left_out = next(k for k in range(number) if trained[k : k + 1] != [k])
        return [f"batch {left_out} of {number} does not go through the model as it comes, one batch after the other"]
    other = [step.batch for step in steps if set(step.logits) != {"float16"}]
    if other:
        return [
            "the forward pass is not in fp16: keep torch.autocast(device, torch.float16) around it "
            f"({len(other)} of {number} gave logits of another precision, first that of batch {other[0]})"
        ]
    return []


def _step_by_step(courses: list[Course], lab: OpenedLab) -> list[str]:
    for course in courses:
        text = lab.try_out(compare, course, deadline_s=DEADLINE_S)
        if text:
            config = course.config
            told = (
                f"optimizer={config.optimizer}, batch={config.batch}, init_scale={config.init_scale:g}, seed={course.seed}"
            )
            return [f"{text} ({told})"]
    return []


def _beside_fp32(loop: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    try:
        record = lab.run(loop, seed=seed, deadline_s=DEADLINE_S, **CONDITIONS)
    except LabkitError as error:
        return [f"the whole run failed: {error}"]
    verdicts, found = lab.judge(record), []
    for verdict in verdicts.found:
        title = NAMED.get(verdict.detector, verdict.detector)
        found.append(f"{title}: {verdict.cause}")
    return found or _by_measures(record, lab)


def _by_measures(record: Record, lab: OpenedLab) -> list[str]:
    """What no detector asks for: that gradients are unscaled, and clipped, and that the model learns as in fp32."""
    steps = record.run.ranks[0].steps
    if not any(step.counts.get("scaler_steps") for step in steps):
        return [
            "the scaler is never asked for a step: scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()"
        ]
    clip_norm = CONDITIONS["clip_norm"]
    norms = [step.scalar("grad_norm") for step in steps if "grad_norm" in step.scalars]
    above = sum(norm > 1.01 * clip_norm for norm in norms)
    if above:
        taken = f"{above} of {len(norms)} updates take a norm above config.clip_norm = {clip_norm:g}"
        return [f"the gradients are not clipped: {taken}"]
    measured = lab.measures(record)
    own, fp32 = float(measured["final_loss"].value), float(measured["final_loss_fp32"].value)
    first = steps[0].scalar("loss_local")
    if not first - own >= LEARNT * (first - fp32):
        return [f"the model does not learn as in fp32: its loss ends at {own:.3g}, in fp32 at {fp32:.3g}"]
    return []
