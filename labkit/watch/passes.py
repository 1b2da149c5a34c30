"""When a module's forward and backward passes begin and end, by hooks on the module and on its outputs' gradients."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class PassHooks:
    """What to call at the instants of a pass. A pass without gradients (evaluation) is none.

    Attributes:
        forward_begins, forward_ends: called without arguments, and with the inputs and outputs.
        backward_begins: the gradient of an output has come; of several outputs the first counts.
        backward_computed: the last gradient is computed. What a wrapper does at the end of a pass, such as waiting for
            reductions, comes after it.
        backward_ends: after that.
    """

    forward_begins: Callable[[], None] = _nothing
    forward_ends: Callable[[tuple, Any], None] = _nothing
    backward_begins: Callable[[], None] | None = None
    backward_computed: Callable[[], None] = _nothing
    backward_ends: Callable[[], None] = _nothing


def _not_compiled(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that torch.compile leaves alone. What sees to it takes seconds to load, so only where something compiles."""
    disabled: list[Callable[..., Any]] = []

    def called(*args: Any) -> Any:
        if not disabled:
            compiler = sys.modules.get("torch._dynamo")
            if compiler is None or not hasattr(compiler, "disable"):
                return hook(*args)
            disabled.append(compiler.disable(hook))
        return disabled[0](*args)

    called._torchdynamo_disable = True  # pyright: ignore[reportFunctionMemberAccess]
    return called


class PassWatch:
    """Calls hooks at the instants of a module's passes. *Called on* any rank, before the first pass; no collective.

    Args:
        module: plain or wrapped. It is not kept alive by its watch.
        hooks: what to call.
    """

    def __init__(self, module: nn.Module, hooks: PassHooks) -> None:
        self._hooks = hooks
        self._in_backward = False
        self._module = weakref.ref(module)
        self._handles: list[Any] = []
        self.attach()

    def attach(self) -> None:
        """Watch; again after `close`."""
        module = self._module()
        if module is not None and not self._handles:
            self._handles += [
                module.register_forward_pre_hook(_not_compiled(self._before_forward)),
                module.register_forward_hook(_not_compiled(self._after_forward)),
            ]

    def close(self) -> None:
        """Stop watching."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _before_forward(self, module: nn.Module, inputs: Any) -> None:
        if torch.is_grad_enabled():
            self._in_backward = False  # where a backward pass was ended by an error
            self._hooks.forward_begins()

    def _after_forward(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        if not torch.is_grad_enabled():
            return
        self._hooks.forward_ends(inputs, outputs)
        if self._hooks.backward_begins is not None:
            for leaf in tensors_of(outputs):
                if leaf.requires_grad:
                    leaf.register_hook(self._begin_backward)

    def _begin_backward(self, gradient: torch.Tensor) -> None:
        if self._in_backward or self._hooks.backward_begins is None:
            return
        self._in_backward = True
        self._hooks.backward_begins()
        # called when the last gradient is computed, before a callback that the wrapper queues within its pass
        torch.autograd.Variable._execution_engine.queue_callback(self._all_computed)

    def _all_computed(self) -> None:
        self._hooks.backward_computed()
        torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)  # after the wrapper's

    def _end_backward(self) -> None:
        self._in_backward = False
        self._hooks.backward_ends()


def tensors_of(outputs: Any) -> list[torch.Tensor]:
    """The tensors of what a module returns: of containers, and of a data class."""
    leaves = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    if leaves or not hasattr(outputs, "__dict__"):
        return leaves
    return [value for value in vars(outputs).values() if isinstance(value, torch.Tensor)]
