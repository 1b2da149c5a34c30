"""What a step of several micro-batches sends and holds, by strategy, also under a policy of mixed precision. No torch.

A pass that shards gathers weights anew in each micro-batch. Gradients are reduced in each, or summed up here and reduced in
the last: FSDP2 then holds whole ones until it is reached (`set_requires_gradient_sync`), DDP does so anyway (`no_sync`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from .strategies import STRATEGIES


@dataclass(frozen=True, kw_only=True)
class StepBytes:
    """One step, in bytes a parameter.

    Attributes:
        gathered: whole weights given to all-gathers and broadcasts.
        reduced: whole gradients given to all-reduces and reduce-scatters.
        sent_units: what a rank sends by ring algorithms, in units of (W-1)/W bytes a parameter.
        gradients: what a rank holds of them between two micro-batches; 0 where there is one micro-batch.
    """

    gathered: float
    reduced: float
    sent_units: float
    gradients: float


def step_bytes(
    strategy: str,
    ranks: int,
    *,
    micro_batches: int = 1,
    last_alone: bool = False,
    gather_bytes: int = 4,
    reduce_bytes: int = 4,
) -> StepBytes:
    """What a step of `micro_batches` costs in one of torch's strategies whose weights are in fp32.

    Args:
        last_alone: gradients are reduced in the last micro-batch alone.
        gather_bytes, reduce_bytes: of a weight as it is gathered, and of a gradient as it is reduced.

    >>> step_bytes("fsdp2-reshard", 4, micro_batches=4)
    StepBytes(gathered=32, reduced=16, sent_units=48, gradients=1.0)
    >>> step_bytes("fsdp2-reshard", 4, micro_batches=4, last_alone=True)
    StepBytes(gathered=32, reduced=4, sent_units=36, gradients=4)
    """
    if micro_batches < 1:
        raise UsageError(f"a step has at least one micro-batch; given {micro_batches}")
    how = STRATEGIES[strategy]
    times = 1 if last_alone else micro_batches
    shards = how.reduce_scatters > 0
    gathered = gather_bytes * how.gathers * (micro_batches if shards else 1)  # zero1 broadcasts after the optimizer's step
    scattered, summed = (reduce_bytes * times * passes for passes in (how.reduce_scatters, how.all_reduces))
    held = 4 / ranks if shards and not last_alone else 4
    return StepBytes(
        gathered=gathered,
        reduced=scattered + summed,
        sent_units=gathered + scattered + 2 * summed,
        gradients=held if micro_batches > 1 else 0,
    )
