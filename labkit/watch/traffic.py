"""What a program gives to collectives, seen as it is dispatched: operation, bytes, group; from these, what a rank sends.

A TorchDispatchMode sees every collective that goes through torch's dispatcher: those of DistributedDataParallel's reducer,
ZeroRedundancyOptimizer, FSDP2, HSDP, DTensor and DeepSpeed alike. Bytes are weighted by what the ring algorithm of an
operation makes a rank send, as a mean over the group's W ranks (Thakur, Rabenseifner, Gropp 2005): 2(W-1)/W of the tensor
for an all-reduce, (W-1)/W of the whole for an all-gather, a reduce-scatter, an all-to-all, a broadcast and a reduce. What a
backend then does is another question: gloo's reduce-scatter is an all-reduce inside. Only an interface's counters know it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from ..record.probe import Probe

NAMESPACES = ("c10d", "_c10d_functional")

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all_reduce", "all_gather", "reduce_scatter"
BROADCAST, REDUCE, ALL_TO_ALL, GATHER, SCATTER, SEND = "broadcast", "reduce", "all_to_all", "gather", "scatter", "send"

_KINDS = (
    # (how an operation's name begins, underscores left out; its kind; which argument holds the whole)
    ("allreduce", ALL_REDUCE, 0),
    ("allgather", ALL_GATHER, 0),
    ("reducescatter", REDUCE_SCATTER, 1),
    ("alltoall", ALL_TO_ALL, 1),
    ("broadcast", BROADCAST, 0),
    ("reduce", REDUCE, 0),
    ("gather", GATHER, 1),
    ("scatter", SCATTER, 0),
    ("send", SEND, 0),
)
"""Of the first that fits. Barriers, receives and waits carry nothing of a rank's own."""


@dataclass(frozen=True)
class Collective:
    """One operation as a rank dispatched it.

    Attributes:
        kind: "all_reduce", "all_gather" and so on, whatever torch calls it at present.
        num_bytes: of the whole tensor: the input of a reduction, the output of an all-gather; of a rank's part for a gather
            and a scatter, which have the whole on one rank alone.
        num_elements: the same, in elements.
        ranks: of its group, as global ranks.
    """

    kind: str
    num_bytes: int
    num_elements: int
    ranks: tuple[int, ...]

    @property
    def weight(self) -> float:
        """Share of the whole that a rank sends, as a mean over the group."""
        return sent_share(self.kind, len(self.ranks))

    @property
    def sent_bytes(self) -> float:
        return self.weight * self.num_bytes


def sent_share(kind: str, group_size: int) -> float:
    """What a rank sends of the whole tensor by the ring algorithm, as a mean over the group."""
    if kind == SEND:
        return 1.0
    around = (group_size - 1) / group_size
    return 2 * around if kind == ALL_REDUCE else around


class CollectiveCounter(TorchDispatchMode):
    """Notes each collective that is dispatched while it is entered. *Called on* every rank; makes no collective itself.

    Args:
        on_collective: called after each one was started, with all tensors that it was given.

    Attributes:
        seen: the collectives, in order.
    """

    def __init__(self, on_collective: Callable[[list[torch.Tensor]], None] | None = None) -> None:
        super().__init__()
        self.seen: list[Collective] = []
        self._on_collective = on_collective

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(hasattr(kind, "_local_tensor") for kind in types):
            return NotImplemented  # a DTensor's: it calls the operations of its parts, and its collectives, by itself
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        namespace, _, name = func.name().partition("::")
        if namespace in NAMESPACES:
            found = _collective(namespace, name.partition(".")[0], args, kwargs)
            if found is not None:
                self.seen.append(found)
                if self._on_collective is not None:
                    self._on_collective(list(_tensors(args)))
        return result


def watch_collectives(on_collective: Callable[[list[torch.Tensor]], None] | None = None) -> CollectiveCounter:
    """Note each collective that this rank dispatches while the result is entered (`with`). See `CollectiveCounter`."""
    return CollectiveCounter(on_collective)


def tell_collectives(seen: Iterable[Collective], probe: Probe, hosts_of: Callable[[tuple[int, ...]], int]) -> None:
    """Record what was dispatched: an event collectives for each kind of operation and each group.

    Args:
        hosts_of: on how many hosts the ranks of a group sit.
    """
    for kind, of_kind in by_kind(seen).items():
        for group in sorted({one.ranks for one in of_kind}):
            same = [one for one in of_kind if one.ranks == group]
            probe.event(
                "collectives",
                operation=kind,
                group_size=len(group),
                count=len(same),
                elements=sum(one.num_elements for one in same),
                num_bytes=sum(one.num_bytes for one in same),
                sent_bytes=sum(one.sent_bytes for one in same),
                hosts=hosts_of(group),
            )


def all_reduce_by_hand(tensor: torch.Tensor, probe: Probe) -> None:
    """All-reduce a tensor and record it, as DDP's reductions are. *Called on* every rank. Collectives: one all-reduce.

    Written into the step: the span all_reduce, the counts all_reduce and all_reduce_bytes, the series by_hand_bytes.
    """
    start = time.monotonic_ns()
    dist.all_reduce(tensor)
    num_bytes = tensor.numel() * tensor.element_size()
    probe.add_span("all_reduce", "comm", start, time.monotonic_ns())
    probe.count("all_reduce")
    probe.count("all_reduce_bytes", num_bytes)
    probe.series("by_hand_bytes", [num_bytes])


def by_kind(collectives: Iterable[Collective]) -> dict[str, list[Collective]]:
    """The collectives of each kind."""
    found: dict[str, list[Collective]] = {}
    for one in collectives:
        found.setdefault(one.kind, []).append(one)
    return found


def _collective(namespace: str, name: str, args: tuple, kwargs: dict) -> Collective | None:
    plain = name.replace("_", "")
    for begin, kind, position in _KINDS:
        if plain.startswith(begin):
            group = _group_of((*args, *kwargs.values()))
            if group is None:
                return None
            functional = namespace == "_c10d_functional"
            tensors = list(_tensors(args[0 if functional else position]))
            times = len(group) if functional and kind == ALL_GATHER else 1  # it is given the input, of one rank
            elements = times * sum(tensor.numel() for tensor in tensors)
            size = tensors[0].element_size() if tensors else 0
            return Collective(kind, elements * size, elements, group)
    return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _group_of(values: Iterable[Any]) -> tuple[int, ...] | None:
    """The global ranks of the group among an operation's arguments."""
    for value in values:
        group = value if isinstance(value, dist.ProcessGroup) else None
        if isinstance(value, torch.ScriptObject):
            try:
                group = dist.ProcessGroup.unbox(value)
            except (RuntimeError, TypeError):  # another class, such as ReduceOp
                continue
        elif isinstance(value, str):
            try:
                group = dist.distributed_c10d._resolve_process_group(value)  # pyright: ignore
            except (RuntimeError, ValueError):
                continue
        if group is not None:
            try:
                return tuple(dist.get_process_group_ranks(group))
            except (KeyError, ValueError, RuntimeError):
                return tuple(range(group.size()))
    return None
