"""What autograd keeps of a forward pass for the backward pass."""

from __future__ import annotations

import torch


def bytes_kept(module: torch.nn.Module, *inputs: torch.Tensor) -> int:
    """Bytes of the tensors that a forward pass of a module saves for backward, each storage once, its parameters left out.

    Args:
        inputs: what the module is called with. One whose gradient is asked for counts where it is saved.
    """
    own = {weight.untyped_storage().data_ptr() for weight in module.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = module(*inputs)  # noqa: F841 - as long as it is there, so is what was saved
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)
