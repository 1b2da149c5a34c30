"""What a training program keeps, by category: bytes of the storages that are alive, each counted once.

Parameters, gradients and optimizer state as this rank holds them; unsharded copies that a wrapper gathered; buffers that it
keeps beside. Read from the real tensors, never from a formula. Activations are no part of it: no stage of ZeRO shards them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..record.probe import Probe
from .reductions import Bucket, BucketHook

PARAMETERS, GRADIENTS, STATE, UNSHARDED, BUFFERS = "parameters", "gradients", "optimizer_state", "unsharded", "buffers"
CATEGORIES = (PARAMETERS, GRADIENTS, STATE, UNSHARDED, BUFFERS)

Account = Callable[[], Mapping[str, Iterable[torch.Tensor]]]
"""What a program holds now, by category; asked at every instant anew."""


def bytes_alive(tensors: Mapping[str, Iterable[torch.Tensor]]) -> dict[str, int]:
    """Bytes by category of the storages behind tensors; one that several share counts once, for the first category."""
    counted: set[int] = set()
    found: dict[str, int] = {category: 0 for category in CATEGORIES}
    for category in CATEGORIES:
        for tensor in tensors.get(category, ()):
            own = local(tensor)
            if own.device.type == "meta":  # a shape without memory
                continue
            storage = own.untyped_storage()
            size = storage.nbytes()
            if size and storage.data_ptr() not in counted:
                counted.add(storage.data_ptr())
                found[category] += size
    return found


class MemoryWatch:
    """Record what a program keeps, at the instants that it names, and the most of them. *Called on* a rank; no collective.

    Args:
        probe: this rank's.
        account: gives what is kept; asked at every look anew.

    Attributes:
        peak: bytes by category at the look at which they were most, and their sum as `peak`.
    """

    def __init__(self, probe: Probe, account: Account) -> None:
        self._probe, self._account = probe, account
        self.peak: dict[str, int] = {"peak": 0}

    def look(self, instant: str = "", at_work: Sequence[torch.Tensor] = ()) -> None:
        """Look at what is kept now. Written: the event memory, if the instant has a name.

        Args:
            at_work: what an operation under way was given, which counts as buffers.
        """
        kept = self._account()
        found = bytes_alive({**kept, BUFFERS: [*kept.get(BUFFERS, ()), *at_work]})
        if sum(found.values()) > self.peak["peak"]:
            self.peak = found | {"peak": sum(found.values())}
        if instant:
            self._probe.event("memory", instant=instant, **found)

    def close(self) -> None:
        """Leave the peak, as the event peak."""
        self._probe.event("peak", **self.peak)


def watch_buckets(ddp: DistributedDataParallel) -> dict[int, torch.Tensor]:
    """The buckets of DDP's reducer, by their place in memory, filled in as they are reduced.

    *Called on* every rank, before the first pass. Buckets are laid out anew after the first step: what was seen in it is
    dropped.
    """
    seen: dict[int, torch.Tensor] = {}
    first: list[int] = []

    def ready(bucket: Bucket, gradients: torch.Tensor) -> None:
        if bucket.index == 0 and len(first) < 2:
            seen.clear()
            first.append(1)
        seen[gradients.untyped_storage().data_ptr()] = gradients.detach()

    views = ddp.gradient_as_bucket_view
    BucketHook(ddp, ready=ready, kept=lambda: views)
    return seen


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a distributed tensor that lies on this rank."""
    return getattr(tensor, "_local_tensor", tensor)


def account_of(model: nn.Module, optimizer: Any, buckets: Iterable[torch.Tensor] = ()) -> Account:
    """The account of a plain model, of DistributedDataParallel, of FSDP2; with any optimizer, ZeroRedundancyOptimizer too.

    Args:
        buckets: of DistributedDataParallel's reducer, as `watch_buckets` sees them; they stay from step to step.
    """
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    own = getattr(optimizer, "optim", optimizer)  # ZeroRedundancyOptimizer keeps its share in one of its own

    def tensors() -> dict[str, list[torch.Tensor]]:
        sharded = sharded_parameters(plain)
        parameters = [part._sharded_param_data for part in sharded]
        unsharded = [gathered for part in sharded for gathered in part.all_gather_outputs]
        in_shards = {id(part.sharded_param) for part in sharded}
        if sharded:
            gradients = [part.sharded_param.grad for part in sharded]
            unsharded += [grad for part in sharded for grad in _unsharded_gradients(part)]
        else:
            gradients = []
        for parameter in _all_parameters(plain, optimizer):
            if id(parameter) not in in_shards and not any(
                parameter is getattr(p, "_unsharded_param", None) for p in sharded
            ):
                parameters.append(parameter)
                gradients.append(parameter.grad)
        return {
            PARAMETERS: parameters,
            GRADIENTS: [gradient for gradient in gradients if gradient is not None],
            STATE: state_tensors(own),
            UNSHARDED: unsharded,
            BUFFERS: [*plain.buffers(), *buckets],
        }

    return tensors


def _all_parameters(model: nn.Module, optimizer: Any) -> Iterable[nn.Parameter]:
    """Those of the model, and those that only the optimizer still knows."""
    seen: set[int] = set()
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    for parameter in (*model.parameters(), *held):
        if id(parameter) not in seen:
            seen.add(id(parameter))
            yield parameter


def state_tensors(optimizer: Any) -> list[torch.Tensor]:
    """The tensors of an optimizer's state."""
    states = optimizer.state.values()
    return [value for state in states for value in state.values() if isinstance(value, torch.Tensor)]


def sharded_parameters(model: nn.Module) -> list[Any]:
    """FSDP2's own entries for the parameters that it shards; empty for a model that it does not."""
    from torch.distributed.fsdp import FSDPModule

    found = []
    for module in model.modules():
        if isinstance(module, FSDPModule):
            state = module._get_fsdp_state()
            groups = getattr(state, "_fsdp_param_groups", None)
            if groups is None:
                groups = [state._fsdp_param_group] if state._fsdp_param_group else []
            found += [part for group in groups for part in group.fsdp_params]
    return found


def _unsharded_gradients(part: Any) -> list[torch.Tensor]:
    whole = getattr(part, "_unsharded_param", None)
    grads = [None if whole is None else whole.grad, part.unsharded_accumulated_grad]
    return [grad for grad in grads if grad is not None]
