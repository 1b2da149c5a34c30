"""What each backward pass adds to the gradients on this rank, and what the optimizer takes in the end: as projections.

A projection of all gradients onto a few fixed random directions is linear: so the ranks' own projections can be added up
afterwards, and compared with that of the gradient which the optimizer took. No collective is made. The directions are drawn
once by a generator of labkit's own, alike on every rank. Only a few updates are looked at: the first, and then each power
of two.

Hooks on the parameters give what this rank computed, before anything is reduced. Parameters whose gradients never pass
through them (sharded ones) are counted and left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...record.probe import Probe
from .patches import Patches

DIRECTIONS = 4
"""Numbers that are kept of each group of parameters."""

MOST_GROUPS = 48
"""Parameters are put together into so many groups at most, in their order."""

_PERIOD = 4093  # prime, so that the columns of a matrix do not fall onto the same directions row after row

MOST_LOOKS = 14


def is_looked_at(update: int) -> bool:
    """Whether an update of an optimizer is one that is shadowed: 1, 2, 4, 8, …"""
    return update & (update - 1) == 0 and update < 2**MOST_LOOKS


class Directions:
    """Fixed random directions, alike on every rank and in every run."""

    def __init__(self) -> None:
        self._of_device: dict[Any, Any] = {}

    def project(self, tensor: Any, number: int) -> Any:
        """Of the parameter with this number: DIRECTIONS numbers, on its device, linear in the tensor."""
        import torch

        with torch.no_grad():
            flat = tensor.detach()
            flat = (torch.view_as_real(flat) if flat.is_complex() else flat).reshape(-1)
            drawn = self._drawn(flat.device)
            at = number * 389 % _PERIOD
            turned = torch.cat([drawn[at:], drawn[:at]])
            whole = flat.numel() // _PERIOD * _PERIOD
            rest = flat[whole:].float()
            found = rest @ turned[: rest.numel()]
            if whole:
                found = found + flat[:whole].view(-1, _PERIOD).sum(0, dtype=torch.float32) @ turned
            return found

    def _drawn(self, device: Any) -> Any:
        import torch

        if device not in self._of_device:
            generator = torch.Generator().manual_seed(20_011)
            drawn = torch.randn(_PERIOD, DIRECTIONS, generator=generator, dtype=torch.float32)
            self._of_device[device] = drawn.to(device)
        return self._of_device[device]


@dataclass(eq=False)
class _Look:
    """One window of one optimizer: from one of its updates to the next.

    Attributes:
        parameters: that it holds and that are not sharded.
        earlier, last: by parameter: what the backward passes before the last one added, and what that one did.
        pass_of: the backward pass that `last` is of.
        passes: how many passes added to a parameter since it was cleared.
    """

    parameters: list[Any]
    left_out: int
    earlier: dict[int, Any] = field(default_factory=dict)
    last: dict[int, Any] = field(default_factory=dict)
    pass_of: dict[int, int] = field(default_factory=dict)
    passes: dict[int, int] = field(default_factory=dict)
    handles: list[Any] = field(default_factory=list)
    before_clip: dict[int, Any] | None = None
    scale: float = 1.0
    scale_before_clip: float = 1.0


class Shadow:
    """Shadows the optimizers of the process. *Called on* each rank; makes no collective.

    Args:
        probe: this rank's.
        name_of: the name of a parameter in the model that the script trains; "" where it is in none.
    """

    def __init__(self, probe: Probe, name_of: Callable[[Any], str]) -> None:
        self._probe, self._name_of = probe, name_of
        self._directions = Directions()
        self._updates: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._looks: weakref.WeakKeyDictionary[Any, _Look] = weakref.WeakKeyDictionary()
        self._unseen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handles: list[Any] = []
        self._pass, self._in_backward = 0, False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import grad_scaler
        from torch.optim import Optimizer
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        made, begins = patches.noting(self._unseen.add), patches.noting(self._begins_backward)
        before, after = patches.noting(self._before_step), patches.noting(self._after_step)
        clips, unscaled = patches.noting(self._clips), patches.noting(self._unscales)

        def optimizers(original):
            def __init__(optimizer, *args, **kwargs):
                original(optimizer, *args, **kwargs)
                made(optimizer)

            return __init__

        def clip(original):
            def clip(parameters, *args, **kwargs):
                if not sampling.in_burst:
                    return original(parameters, *args, **kwargs)
                kept = parameters if isinstance(parameters, torch.Tensor) else list(parameters)
                clips(kept)
                return original(kept, *args, **kwargs)

            return clip

        def unscale(original):
            def unscale_(scaler, optimizer):
                unscaled(scaler, optimizer)
                return original(scaler, optimizer)

            return unscale_

        sampling = patches.sampling
        patches.wrap(Optimizer, "__init__", optimizers)
        self._attach_backward(patches, torch, begins)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            patches.wrap(torch.nn.utils.clip_grad, name, clip)
            patches.put(torch.nn.utils, name, getattr(torch.nn.utils.clip_grad, name))
        patches.wrap(grad_scaler.GradScaler, "unscale_", unscale)
        self._handles += [
            register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: before(optimizer, args, kwargs)),
            register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer)),
        ]

    def _attach_backward(self, patches: Patches, torch: Any, begins: Callable[[], None]) -> None:
        watch = self

        def around(original):
            def backward(*args, **kwargs):
                if watch._in_backward:
                    return original(*args, **kwargs)
                begins()
                watch._in_backward = True
                try:
                    return original(*args, **kwargs)
                finally:
                    watch._in_backward = False

            return backward

        patches.wrap(torch.Tensor, "backward", around)
        patches.wrap(torch.autograd, "backward", around)

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for look in self._looks.values():
            _stop(look)
        self._looks.clear()

    # What happens

    def skipped(self, optimizer: Any, updates: int) -> None:
        """An optimizer made updates that were not looked at; the next one is its own."""
        done = self._updates[optimizer] = self._updates.get(optimizer, 0) + updates
        if is_looked_at(done + 1):
            self._begin(optimizer)

    def _begins_backward(self) -> None:
        self._pass += 1
        while self._unseen:
            self._begin(self._unseen.pop())

    def _begin(self, optimizer: Any) -> None:
        """Look at what comes until the optimizer's next update."""
        every = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        plain = [p for p in every if type(p).__name__ in ("Parameter", "Tensor") and p.is_leaf]
        look = self._looks[optimizer] = _Look(plain, len(every) - len(plain))
        for number, parameter in enumerate(plain):
            look.handles.append(parameter.register_hook(self._hook(look, number, weakref.ref(parameter))))

    def _hook(self, look: _Look, number: int, known: Any) -> Callable[[Any], None]:
        def computed(gradient: Any) -> None:
            parameter = known()
            if parameter is None or not self._in_backward or gradient is None or gradient.is_sparse:
                return
            held, look.before_clip = parameter.grad, None
            if held is None or not bool(held.any()):  # cleared since: what was added before is gone
                look.earlier.pop(number, None)
                look.last.pop(number, None)
                look.passes[number] = 0
            elif number not in look.last:
                look.earlier[number] = self._directions.project(held, number)
            given = self._directions.project(gradient, number)
            if number in look.last:
                if look.pass_of[number] == self._pass:
                    look.last[number] = look.last[number] + given
                    return
                before = look.earlier.get(number)
                look.earlier[number] = look.last[number] if before is None else before + look.last[number]
            look.last[number], look.pass_of[number] = given, self._pass
            look.passes[number] = look.passes.get(number, 0) + 1

        def noted(gradient: Any) -> None:
            try:
                computed(gradient)
            except Exception:  # what watches must not end what it watches
                look.left_out += 1

        return noted

    def _unscales(self, scaler: Any, optimizer: Any) -> None:
        look = self._looks.get(optimizer)
        if look is not None and scaler.is_enabled():
            look.scale = float(scaler.get_scale())

    def _clips(self, parameters: Any) -> None:
        clipped = {id(parameter) for parameter in parameters} if isinstance(parameters, list) else {id(parameters)}
        for look in self._looks.values():
            mine = look.before_clip is None and look.last and any(id(p) in clipped for p in look.parameters)
            if mine:
                look.before_clip, look.scale_before_clip = self._taken(look), look.scale

    def _taken(self, look: _Look) -> dict[int, Any]:
        return {
            number: self._directions.project(parameter.grad, number)
            for number, parameter in enumerate(look.parameters)
            if parameter.grad is not None and not parameter.grad.is_sparse
        }

    def _before_step(self, optimizer: Any, args: Any, kwargs: dict[str, Any]) -> None:
        # args begin with the optimizer itself; a closure makes its passes within the step
        if len(args) > 1 or kwargs.get("closure") is not None:
            return
        self._end(optimizer)

    def _end(self, optimizer: Any) -> None:
        look = self._looks.pop(optimizer, None)
        if look is None:
            return
        _stop(look)
        if (look.last or look.left_out) and not self._in_backward:
            self._write(optimizer, look)

    def _after_step(self, optimizer: Any) -> None:
        self._end(optimizer)  # where it was given a closure
        self._unseen.discard(optimizer)
        done = self._updates[optimizer] = self._updates.get(optimizer, 0) + 1
        if is_looked_at(done + 1):
            self._begin(optimizer)

    # What is written

    def _write(self, optimizer: Any, look: _Look) -> None:
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        done = self._updates.get(optimizer, 0)
        clipped = look.before_clip is not None
        taken = look.before_clip if look.before_clip is not None else self._taken(look)
        groups = _groups(len(look.parameters))
        kinds = {str(p.grad.dtype).removeprefix("torch.") for p in look.parameters if p.grad is not None}
        names = [self._name_of(look.parameters[group[0]]) for group in groups] if not done else []
        self._probe.event(
            "gradient",
            update=done + 1,
            optimizer=number,
            kind=type(optimizer).__name__,
            tensors=len(look.parameters),
            left_out=look.left_out,
            passes=max(look.passes.values(), default=0),
            clipped=clipped,
            scale=look.scale_before_clip if clipped else look.scale,
            formats=" ".join(sorted(kinds)),
            names=", ".join(name.replace(",", "") for name in names),
            earlier=_text(look.earlier, groups),
            last=_text(look.last, groups),
            taken=_text(taken, groups),
        )


def _stop(look: _Look) -> None:
    for handle in look.handles:
        handle.remove()
    look.handles.clear()


def _groups(count: int) -> list[range]:
    """Parameters 0 … count - 1 in their order, put together into MOST_GROUPS groups at most."""
    size = -(-count // MOST_GROUPS) if count else 1
    return [range(start, min(count, start + size)) for start in range(0, count, size)]


def _text(of: dict[int, Any], groups: list[range]) -> str:
    """DIRECTIONS numbers a group, with blanks between; empty where nothing is known of any parameter."""
    import torch

    if not of:
        return ""
    zero = torch.zeros(DIRECTIONS, dtype=torch.float64)
    sums = [sum((of[at].double().cpu() for at in group if at in of), zero) for group in groups]
    return " ".join(f"{value:.9g}" for value in torch.stack(sums).reshape(-1).tolist())
