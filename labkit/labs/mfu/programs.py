"""The training step under study, the loop that is busy without being useful, and the ceiling they are measured against.

Shapes: tokens and targets are [B, S], logits [B, S, V]. B is `batch`, S is `seq`, V is the 256 bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import psutil
import torch
from torch import nn
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from ...errors import UsageError
from ...ranks.context import RankContext, worker_options
from ...record.probe import Probe
from ...record.roles import Role
from ...watch.optimizer import watch_updates
from ...watch.processor import ProcessorTime, Took
from ...workloads.gpt import GPT, GPTShape, build_gpt, token_loss
from ...workloads.text import text_loader
from ..spec import RunPlan, TaskFor
from . import TUNED, VARIANTS, Config

WARM_UP = 1
CEILING_SIZE = {"cpu": 1024, "cuda": 8192}
CEILING_S = 0.3


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the one rank does."""

    count: bool = True
    """Whether to count FLOPs too; a run that only serves to compare speeds need not."""


def plan(variant: str | Callable[..., Any], config: Config, ranks: int) -> list[RunPlan]:
    """The run under study, the measured ceiling in its precision, and the tuned end of the ladder to compare with."""
    if callable(variant):
        raise UsageError("mfu runs its own variants; give one by name")
    shape_of(config)
    if ranks != 1:
        raise UsageError(f"mfu measures one device: ranks must be 1; given {ranks}")
    program = spin if variant == "busy-not-useful" else train_gpt
    plans = [RunPlan(role=Role.VARIANT, program=program, task=Task(config), ranks=1, group=False)]
    if config.compare != "nothing":
        plans.append(RunPlan(role=Role.CEILING, program=find_ceiling, task=Task(config), ranks=1, group=False))
    tuned = replace(config, **TUNED)
    if config.compare == "tuned" and (tuned != config or variant == "busy-not-useful"):
        # two steps tell its speed; counting its FLOPs would cost as much again
        task = Task(replace(tuned, steps=min(tuned.steps, 2)), count=False)
        plans.append(RunPlan(role=Role.TUNED, program=train_gpt, task=task, ranks=1, group=False))
    return plans


def shape_of(config: Config) -> GPTShape:
    """The model's dimensions, as the configuration has them; refuses a model that cannot fit.

    Weights, gradients and AdamW's two moments in fp32: 16 bytes a weight; activations come on top.
    """
    if config.hidden % config.heads:
        raise UsageError(f"hidden must be a multiple of heads; given hidden={config.hidden}, heads={config.heads}")
    shape = GPTShape(layers=config.layers, hidden=config.hidden, heads=config.heads, seq=config.seq)
    needed = 16 * shape.matmul_params
    if needed > (memory := device_memory_bytes()):
        raise UsageError(
            f"a model of {shape.matmul_params / 1e9:.1f}e9 weights needs {needed / 1e9:.0f} GB with AdamW in fp32 and does "
            f"not fit {memory / 1e9:.0f} GB; give fewer layers or a smaller hidden"
        )
    return shape


def device_memory_bytes() -> int:
    """Memory of the device that a run would use: the first GPU's, or the machine's."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(0).total_memory
    return psutil.virtual_memory().total


def train_gpt(context: RankContext) -> None:
    """Train the GPT for a few steps, counting its FLOPs once and timing every step. Called on one rank, no group."""
    config: Config = context.task.config
    shape = shape_of(config)
    model = build_gpt(shape, seed=context.seed, attention=config.attention, recompute=config.recompute)
    model = model.to(context.device)
    _declare(context, config, shape, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=context.device.type == "cuda")
    step_of = torch.compile(model) if config.compile else model
    context.expect_steps(config.steps + WARM_UP)
    probe = context.probe
    with watch_updates(probe):
        processor = ProcessorTime()
        for tokens, targets in probe.batches(_batches(context, config), max_steps=config.steps + WARM_UP):
            with probe.span("forward"), _cast(config, context.device):
                loss = token_loss(step_of(tokens.to(context.device)), targets.to(context.device))
            with probe.span("backward"):
                optimizer.zero_grad()
                loss.backward()
            with probe.span("optimizer"):
                optimizer.step()
            value = loss.item()  # waits for the device, so that the step's end is the step's end
            _tell(probe, processor.lap())
            probe.scalar("loss_local", value)
            probe.scalar("batch_samples", len(tokens))
            probe.scalar("tokens", tokens.numel())


def _tell(probe: Probe, took: Took) -> None:
    probe.scalar("cpu_s", took.cpu_s)
    if took.queued_s is not None:
        probe.scalar("queued_s", took.queued_s)


def _batches(context: RankContext, config: Config) -> Iterable[Any]:
    """Real text; or one ready batch again and again, the test of whether the input is what one waits for."""
    if config.data == "dummy":
        return _repeat(next(iter(text_loader(config.batch, config.seq, seed=context.seed))))
    workers = worker_options(1 if config.data_wait_ms else 0)
    return text_loader(config.batch, config.seq, seed=context.seed, wait_ms=config.data_wait_ms, workers=workers)


def _repeat(batch: Any) -> Iterator[Any]:
    while True:
        yield batch


def _cast(config: Config, device: torch.device) -> AbstractContextManager[Any]:
    return torch.autocast(device.type, dtype=torch.bfloat16) if config.precision == "bf16" else nullcontext()


def _declare(context: RankContext, config: Config, shape: GPTShape, model: nn.Module) -> None:
    counted, executed = _counts(context.task, shape)
    context.probe.declare(
        matmul_params=shape.matmul_params,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        layers=shape.layers,
        hidden=shape.hidden,
        seq=shape.seq,
        batch_size=config.batch,
        precision=config.precision,
        attention=config.attention,
        recompute=config.recompute,
        counted_flops_per_token=counted / shape.seq,
        executed_flops_per_token=executed / shape.seq,
        warm_up=WARM_UP,
    )


def _counts(task: Task, shape: GPTShape) -> tuple[int, int]:
    """FLOPs of one sequence: as the counter sees the step that the model needs, and all that was done.

    With the MATH backend the counter sees attention whatever the kernel, so that is what was done, recomputation
    included. Attention that is written out looks the same either way.
    """
    if not task.count:
        return 0, 0
    config = task.config
    counted = count_step_flops(shape, attention=config.attention, recompute=False, batch=1)
    if config.attention == "naive" and not config.recompute:
        return counted, counted
    done = count_step_flops(shape, attention=config.attention, recompute=config.recompute, batch=1, math_backend=True)
    return counted, done


def count_step_flops(
    shape: GPTShape,
    *,
    attention: str,
    recompute: bool,
    batch: int,
    early_stop: bool = True,
    math_backend: bool = False,
    device: torch.device | str = "cpu",
) -> int:
    """FLOPs of one forward and backward pass as torch's FlopCounterMode sees them, on a real step.

    Args:
        early_stop: torch's default for recomputation, which ends a block's second pass once all it needs is there.
        math_backend: force scaled_dot_product_attention to the backend that is written in plain operations; the
            counter sees those, and on a CPU nothing of the fused ones.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model = build_gpt(shape, seed=0, attention=attention, recompute=recompute).to(device)
    tokens = torch.zeros(batch, shape.seq, dtype=torch.long, device=device)
    counter = FlopCounterMode(display=False)
    kernel = sdpa_kernel(SDPBackend.MATH) if math_backend else nullcontext()
    with counter, kernel, set_checkpoint_early_stop(early_stop):
        token_loss(model(tokens), tokens).backward()
    return counter.get_total_flops()


def spin(context: RankContext) -> None:
    """Add two large arrays again and again: every core at work, next to no arithmetic. Called on one rank, no group."""
    config: Config = context.task.config
    numel = 16_000_000  # 64 MB an array: beyond a last-level cache
    x, y = torch.zeros(numel, device=context.device), torch.ones(numel, device=context.device)
    probe = context.probe
    probe.declare(precision="fp32", warm_up=WARM_UP, elementwise_flops_per_step=float(numel * 8))
    context.expect_steps(config.steps + WARM_UP)
    with watch_updates(probe):
        processor = ProcessorTime()
        for _ in range(config.steps + WARM_UP):
            probe.begin_step()
            with probe.span("add"):
                for _ in range(8):
                    x.add_(y)
            probe.scalar("checksum", float(x[0]))
            _tell(probe, processor.lap())
            probe.end_step()


def find_ceiling(context: RankContext) -> None:
    """Multiply square matrices in the run's precision until the rate is known. Called on one rank, no group.

    The best of the repeats is the ceiling: what this device was seen to do, here and now.
    """
    config: Config = context.task.config
    size = CEILING_SIZE[context.device.type]
    dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
    a, b = (torch.randn(size, size, device=context.device).to(dtype) for _ in range(2))
    context.probe.declare(flops_per_step=float(2 * size**3), precision=config.precision, warm_up=WARM_UP)
    started = time.monotonic()
    while context.probe.step < 4 or (time.monotonic() - started < CEILING_S and context.probe.step < 200):
        context.probe.begin_step()
        with context.probe.span("matmul"):
            product = a @ b
            product[0, 0].item()  # waits for the device
        context.probe.end_step()


_NAIVE = """\
scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
batch = 1
"""
_FUSED = """\
mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
batch = 4
"""

SHOWN = {variant.name: GPT for variant in VARIANTS} | {"broken": _NAIVE, "fixed": _FUSED}
"""By variant: what a lesson shows of it. How attention is written before and after, else the model."""
