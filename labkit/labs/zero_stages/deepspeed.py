"""ZeRO by DeepSpeed, on the process group that is there already. The only module that imports it.

It is an extra: `pip install 'labkit[deepspeed]'`. Left to itself it would compile kernels of its own with a C++ compiler
when it starts (a minute), reduce through shared memory where ranks share a machine, and compile an optimizer that is not
used here (seconds a rank): none of this is wanted in a lab about what travels over the link.

Shapes: stages 1 and 2 divide one flat tensor of all parameters among W ranks; stage 3 divides each parameter, flat.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ...watch.memory import BUFFERS, GRADIENTS, PARAMETERS, STATE, UNSHARDED
from .strategies import COUNTER_BYTES, COUNTERS, Place, Training

MISSING = "DeepSpeed is not installed; pip install deepspeed (in this repository: make setup-deepspeed)"


def missing() -> str:
    """Why DeepSpeed cannot be used here; empty if it can. Imports nothing."""
    return "" if importlib.util.find_spec("deepspeed") else MISSING


def settings_of(stage, params, persistence_threshold=0, max_live_parameters=0):
    zero = {"stage": stage, "reduce_bucket_size": max(1, params // 4), "allgather_bucket_size": params}
    if stage == 3:
        # by default it keeps small weights whole, and what it gathered as long as 1e9 of them fit
        zero["stage3_param_persistence_threshold"] = persistence_threshold
        zero["stage3_max_live_parameters"] = zero["stage3_max_reuse_distance"] = max_live_parameters
        zero["stage3_prefetch_bucket_size"] = 0
    return {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": zero,
        "gradient_clipping": 0.0,  # it would clip to a norm of 1.0 unasked
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # torch's own Adam, which all strategies use
    }


class _Engine(Training):
    """DeepSpeed's engine runs the backward pass and the step itself."""

    def backward(self, loss: torch.Tensor) -> None:
        self.model.backward(loss)

    def step(self) -> None:
        self.model.step()  # clears the gradients too

    def zero_grad(self) -> None:
        pass


def prepare_deepspeed(stage: int, model: nn.Module, place: Place) -> Training:
    """Divide a model's state by DeepSpeed. *Called on* every rank; collectives: broadcasts of the weights."""
    params = sum(parameter.numel() for parameter in model.parameters())
    settings = settings_of(stage, params, **place.settings)
    with _without_compilers():
        import deepspeed

        # stands in the way of every kernel that it would build
        deepspeed.ops.__compatible_ops__ = {}  # pyright: ignore[reportAttributeAccessIssue]
        engine, optimizer, *_ = deepspeed.initialize(
            model=model,
            optimizer=torch.optim.Adam(model.parameters(), lr=place.lr),
            config=settings,
            dist_init_required=False,
        )
    of_stage = _Stage3 if stage == 3 else _Stage12
    kept = of_stage(engine.module, optimizer)  # pyright: ignore[reportArgumentType]
    return _Engine(engine, optimizer, kept.tensors, kept.own_account, kept.full_weights)


@contextlib.contextmanager
def _without_compilers() -> Iterator[None]:
    """Import and start it for the CPU where there is no GPU, without torch.compile at import, without its chatter."""
    if not torch.cuda.is_available():
        os.environ["DS_ACCELERATOR"] = "cpu"
    compile_ = torch.compile
    torch.compile = lambda model=None, **_: model if model is not None else (lambda function: function)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ImportError):
                importlib.import_module("deepspeed.runtime.zero.muon.original_muon")
            yield
    finally:
        torch.compile = compile_


class _Stage12:
    """What stages 1 and 2 keep: whole weights in one flat tensor, an own copy of its share, state and gradients of it."""

    def __init__(self, model: nn.Module, optimizer: Any) -> None:
        self.model, self.optimizer = model, optimizer

    def tensors(self) -> dict[str, list[torch.Tensor]]:
        own = self.optimizer
        masters = own.single_partition_of_fp32_groups
        gradients = [p.grad for p in (*self.model.parameters(), *masters)] + _reachable(own.averaged_gradients)
        return {
            PARAMETERS: own.bit16_groups_flat,
            GRADIENTS: [gradient for gradient in gradients if gradient is not None],
            STATE: [*masters, *_reachable(own.optimizer.state)],
            BUFFERS: [*self.model.buffers(), *_reachable(vars(own))],  # whatever else it holds
        }

    def own_account(self) -> dict[str, int]:
        own = self.optimizer
        size = own.single_partition_of_fp32_groups[0].element_size()
        share = int(sum(own.partition_size)) * size
        whole = share * own.dp_process_group.size()
        # of a tensor on the border of two shares, both ranks keep the whole gradient
        gradients = sum(p.numel() for group in own.params_in_partition for p in group) * size
        counters = COUNTER_BYTES * len(own.partition_size)
        return {
            PARAMETERS: whole,
            GRADIENTS: gradients,
            STATE: 3 * share + counters,
            BUFFERS: _flags(own),
            COUNTERS: counters,
        }

    def full_weights(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self.model.parameters()]


class _Stage3:
    """What stage 3 keeps: shares of everything, the weights of a layer while it is at work."""

    def __init__(self, model: nn.Module, optimizer: Any) -> None:
        self.model, self.optimizer = model, optimizer

    def tensors(self) -> dict[str, list[torch.Tensor]]:
        own = self.optimizer
        parameters: list[Any] = list(self.model.parameters())
        masters = own.fp32_partitioned_groups_flat
        gradients = [p.grad for p in (*parameters, *masters)] + [own.grad_partitions_flat_buffer]
        return {
            PARAMETERS: [*(p.ds_tensor for p in parameters), *own.fp16_partitioned_groups_flat],
            GRADIENTS: [gradient for gradient in gradients if gradient is not None],
            STATE: [*masters, *_reachable(own.optimizer.state)],
            UNSHARDED: [p.data for p in parameters],
            BUFFERS: [*self.model.buffers(), *_reachable(vars(own))],
        }

    def own_account(self) -> dict[str, int]:
        parameters: list[Any] = list(self.model.parameters())
        size = self.optimizer.fp32_partitioned_groups_flat[0].element_size()
        share = sum(p.partition_numel() for p in parameters) * size
        counters = COUNTER_BYTES * len(self.optimizer.fp32_partitioned_groups_flat)
        return {
            PARAMETERS: share,
            GRADIENTS: share,
            STATE: 3 * share + counters,
            UNSHARDED: sum(p.ds_numel for p in parameters if p.ds_persist) * size,
            BUFFERS: self.optimizer.reduce_bucket_size * size + _flags(self.optimizer),
            COUNTERS: counters,
        }

    def full_weights(self) -> list[torch.Tensor]:
        import deepspeed

        parameters = list(self.model.parameters())
        with deepspeed.zero.GatheredParameters(parameters):
            return [parameter.detach().clone() for parameter in parameters]


def _flags(optimizer: Any) -> int:
    """Bytes of the tensors of one element that it keeps for itself (an overflow, a norm)."""
    found = {id(t): t for t in _reachable({k: v for k, v in vars(optimizer).items() if k != "optimizer"}) if t.numel() == 1}
    return sum(t.untyped_storage().nbytes() for t in found.values())


def _reachable(value: Any, depth: int = 4) -> list[torch.Tensor]:
    """Tensors in nested containers, and in the plain objects that an optimizer keeps its buckets in."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    elif type(value).__module__.startswith("deepspeed.runtime.zero") and not isinstance(value, type):
        parts = list(getattr(value, "__dict__", {}).values())
    else:
        return []
    return [tensor for part in parts for tensor in _reachable(part, depth - 1)]
