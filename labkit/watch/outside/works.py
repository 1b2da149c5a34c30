"""Collectives that run in the background: whether the script waits for those of its gradients before the optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...record.probe import Probe
from .patches import Patches

MOST = 256
"""Collectives under way that are kept an eye on."""


@dataclass(eq=False)
class _Work:
    """A collective under way. `waited`: the script waited for it, or saw that it was over."""

    work: Any
    places: frozenset[int]
    where: str
    waited: bool = False


class Works:
    """The handles that collectives with async_op=True give. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._under_way: dict[int, _Work] = {}
        self._handles: list[Any] = []
        self._told = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch.distributed as dist
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        if not dist.is_available():
            return
        waited = patches.noting(self._waited)

        def wait(original):
            def wait(work, *args, **kwargs):
                waited(work, True)
                return original(work, *args, **kwargs)

            return wait

        def asks(original):
            def is_completed(work):
                given = original(work)
                waited(work, given)
                return given

            return is_completed

        for name in ("wait", "synchronize", "get_future", "block_current_stream"):
            patches.wrap(dist.Work, name, wait)
        for name in ("is_completed", "is_success"):
            patches.wrap(dist.Work, name, asks)
        before = patches.noting(self._before_step)
        self._handles.append(register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer)))

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.let_go()

    def let_go(self) -> None:
        """Hold no handle any more: one that outlives its process group would keep it."""
        self._under_way.clear()

    def begun(self, given: Any, name: str, args: tuple, kwargs: dict[str, Any], where: str) -> None:
        """The script called a collective, and got this back."""
        import torch.distributed as dist

        if isinstance(given, dist.Work) and len(self._under_way) < MOST:
            places = frozenset(_places((*args, *kwargs.values())))
            self._under_way[id(given)] = _Work(given, places, where)

    def _waited(self, work: Any, over: bool) -> None:
        known = self._under_way.get(id(work))
        if known is not None and over:
            known.waited = True

    def _before_step(self, optimizer: Any) -> None:
        if not self._under_way:
            return
        grads = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
        held = {place for grad in grads for place in _places((grad,))}
        mine = [key for key, known in self._under_way.items() if known.places & held]
        left = [self._under_way[key] for key in mine if not self._under_way[key].waited]
        if mine and self._probe.in_step:
            self._probe.count("gradient_works", len(mine))
            self._probe.count("gradient_works_not_waited_for", len(left))
        if left and not self._told:
            self._told = True
            self._probe.event("not_waited_for", where=left[0].where)
        for key in mine:
            del self._under_way[key]
        for key in [key for key, known in self._under_way.items() if known.waited]:
            del self._under_way[key]


def _places(values: Any) -> Iterator[int]:
    """Where tensors lie in memory; of lists of them too."""
    import torch

    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _places(value)
        elif type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            yield value.untyped_storage().data_ptr()
