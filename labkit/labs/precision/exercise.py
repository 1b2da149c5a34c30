"""Check a learner's loop: first that it trains at all, in a process of its own; then beside fp32, by its detectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import LabkitError
from ...ranks.context import RankContext
from . import SPEC
from .programs import build_model, build_optimizer, loader_of

STEPS = 6

CONDITIONS: dict[str, Any] = {"clip_norm": 2e-6, "repeats": 0}
"""The gradients of a loss weighted by 1e-5 have a norm of some 1e-5: clipped at a fifth of it, most of them are clipped."""

DEADLINE_S = 60.0

LEARNT = 0.5
"""Share of what fp32 learns that a repaired loop must reach; the unrepaired ones reach a sixth."""

NAMED = {
    "gradient-underflow": "the scaler is missing, or does not scale",
    "clip-before-unscale": "the order of clipping",
    "stale-casts": "casts are kept over the whole loop",
}


@dataclass(frozen=True)
class _Seen:
    """What a short run of a loop did."""

    batches: int
    updates: int
    forwards_in_fp16: int
    forwards: int
    returned: str


def check(loop: Callable[..., Any], lab: Any) -> list[str]:
    """What is still wrong with `loop`, in sentences; an empty list when nothing is.

    The loop runs in processes of its own, so that one that hangs or crashes does no harm here.
    """
    try:
        seen = lab.try_out(_try, loop)
    except LabkitError as error:
        return [f"the loop did not finish: {error}"]
    return _misuse(seen) or _beside_fp32(loop, lab)


def _try(context: RankContext) -> _Seen:
    """Run the loop on a few batches and count. Called on one rank, without a group."""
    torch.set_num_threads(1)
    loop = context.config
    config = SPEC.configure(SPEC.variant("fixed"), CONDITIONS)
    model = build_model(config, context.seed).to(context.device)
    optimizer = build_optimizer(model, config)
    counts = {"batches": 0, "updates": 0, "forwards_in_fp16": 0, "forwards": 0}

    def batches():
        for inputs, targets, _ in loader_of(config, context.seed, 0):
            counts["batches"] += 1
            yield inputs.to(context.device), targets.to(context.device)
            if counts["batches"] == STEPS:
                return

    def forwarded(_model, _inputs, logits):
        counts["forwards"] += 1
        counts["forwards_in_fp16"] += logits.dtype == torch.float16

    def updated(*_):
        counts["updates"] += 1

    model.register_forward_hook(forwarded)
    optimizer.register_step_post_hook(updated)
    scaler = torch.amp.GradScaler(context.device.type)  # pyright: ignore[reportPrivateImportUsage]
    returned = loop(model, optimizer, scaler, batches(), context.device.type, config)
    return _Seen(**counts, returned="" if returned is None else type(returned).__name__)


def _misuse(seen: _Seen) -> list[str]:
    """What keeps the loop from being judged."""
    if seen.returned == "generator":
        return ["the function yields, so calling it runs nothing: let it train, and return nothing"]
    if seen.batches < STEPS:
        return [f"the loop took {seen.batches} of {STEPS} batches: it must go on until `batches` ends"]
    if seen.updates == 0:
        return ["the optimizer never took a step: call scaler.step(optimizer) for each batch"]
    if seen.updates < STEPS:
        return [f"the optimizer took {seen.updates} steps for {STEPS} batches: each batch needs one"]
    if seen.forwards_in_fp16 < seen.forwards:
        return [
            "the forward pass is not in fp16: keep torch.autocast(device, torch.float16) around it "
            f"({seen.forwards - seen.forwards_in_fp16} of {seen.forwards} gave logits of another precision)"
        ]
    return []


def _beside_fp32(loop: Callable[..., Any], lab: Any) -> list[str]:
    try:
        record = lab.run(loop, deadline_s=DEADLINE_S, **CONDITIONS)
    except LabkitError as error:
        return [f"the whole run failed: {error}"]
    verdicts, found = lab.judge(record), []
    for verdict in verdicts.found:
        title = NAMED.get(verdict.detector, verdict.detector)
        found.append(f"{title}: {verdict.cause}")
    return found or _by_measures(record, lab)


def _by_measures(record: Any, lab: Any) -> list[str]:
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
    own, fp32 = measured["final_loss"].value, measured["final_loss_fp32"].value
    first = steps[0].scalar("loss_local")
    if not first - own >= LEARNT * (first - fp32):
        return [f"the model does not learn as in fp32: its loss ends at {own:.3g}, in fp32 at {fp32:.3g}"]
    return []
