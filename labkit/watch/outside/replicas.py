"""What each rank holds, before the first update and after some of them, so that ranks can be compared without a collective.

Looked at after the first updates and then ever more seldom: 1, 2, 3, 4, 6, 8, 12, 16, … The gradients are looked at as an
optimizer takes its step; the weights as the next forward pass begins, when whatever the script does after the step
(averaging, an optimizer that sends its part to the others) is done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import xxhash

from ...record.probe import Probe
from . import digests

MOST_EXTRA = 24
"""Looks, beyond those whose time it is, after the script exchanged as much as a model."""

NAMES_BYTES = 16000
"""Names of parameters that are told, all together."""


def is_looked_at(update: int) -> bool:
    """Whether an update is one after which replicas are compared: 1, 2, 3, and then each power of two and half way on."""
    power = 1 << (update.bit_length() - 1)
    return update == power or update * 2 == power * 3


class Replicas:
    """The models that the script trains, in the order of their first pass. *Called on* each rank; no collective is made.

    Attributes:
        begins: called with each model and its number, as it begins its first pass of training.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._models: list[weakref.ref[Any]] = []
        self.begins: tuple[Callable[[Any, int], None], ...] = ()
        self._optimizers: list[weakref.ref[Any]] = []
        self._update, self._due, self._extra = 0, False, 0
        self._largest, self._carried, self._between = 0, 0, False
        self._carried_since: int | None = None
        self.updates: Callable[[], int] = lambda: 0
        """How many were made, between bursts."""
        self.wants_a_look: Callable[[], None] = lambda: None
        """Called where weights are to be looked at as the next forward pass begins."""

    @property
    def is_due(self) -> bool:
        """Whether they are."""
        return self._due

    def paused(self) -> None:
        """Bursts end: no forward pass is seen, and what is exchanged from one update to the next counts."""
        self._between, self._carried_since = True, -1

    def resumed(self, update: int, made: int) -> None:
        """A burst begins, after updates that were not looked at."""
        self._between, self._carried_since = made > 0, None
        self._update = update if made else self._update

    def met(self, module: Any) -> None:
        """A module that no other called begins a pass of training."""
        if all(known() is not module for known in self._models):
            self._models.append(weakref.ref(module))
            said = described(module)
            self._largest = max(self._largest, sum(parameter.numel() for parameter in module.parameters()))
            for begin in self.begins:
                begin(module, len(self._models) - 1)
            self._probe.event(
                "replica", update=self._update, model=len(self._models) - 1, start=True, named=names_of(module), **said
            )

    @property
    def models(self) -> Iterator[Any]:
        """The models that are alive."""
        return (model for known in self._models if (model := known()) is not None)

    def name_of(self, parameter: Any) -> str:
        """What the models call a parameter; "" where it is in none of them."""
        for model in self.models:
            for name, own in model.named_parameters():
                if own is parameter:
                    return name.removeprefix("module.").replace("_orig_mod.", "")
        return ""

    def updated(self, optimizer: Any, update: int) -> None:
        """The optimizers have made so many steps, this one the last: look at its gradients, if it is time."""
        if self._due:  # no forward pass came between two updates
            self.look()
        self._update, self._carried, self._between = update, 0, True
        if not is_looked_at(update):
            return
        self._due = True
        known = [of() for of in self._optimizers]
        number = next((at for at, one in enumerate(known) if one is optimizer), None)
        if number is None:
            number = len(self._optimizers)
            self._optimizers.append(weakref.ref(optimizer))
        in_models = {id(parameter) for model in self.models for parameter in model.parameters()}
        self._probe.event("update_made", update=update, optimizer=number, **of_update(optimizer, in_models))

    def exchanged(self, elements: int) -> None:
        """The script exchanged so many elements with other ranks: if a whole model was since the update, look at it."""
        if not self._between or self._due or self._extra >= MOST_EXTRA:
            return
        if self._carried_since is not None and self._carried_since != self.updates():
            self._carried, self._carried_since = 0, self.updates()
        self._carried += elements
        if self._carried >= self._largest > 0:
            self._due = True
            self._extra += 1
            self.wants_a_look()

    def look(self) -> None:
        """Look at the weights, if it is time. *Called* as a forward pass begins, and as process groups are torn down."""
        self._between = False
        if not self._due:
            return
        self._due = False
        for number, known in enumerate(self._models):
            module = known()
            if module is not None:
                self._probe.event("replica", update=self._update, model=number, **described(module))


def described(module: Any) -> dict[str, str | int | float | bool]:
    """What a rank holds of a model, as plain values: see the event `replica`."""
    from torch.nn.parallel import DistributedDataParallel

    wrapped = isinstance(module, DistributedDataParallel)
    inner = module.module if wrapped else module
    parameters, buffers = list(inner.named_parameters()), list(inner.named_buffers())
    flat = any("FullyShardedDataParallel" in type(part).__name__ for part in module.modules())
    sharded = flat or any(digests.is_sharded(parameter) for _, parameter in parameters)
    layout = "\n".join(f"{name} {tuple(p.shape)} {p.dtype} {p.requires_grad}" for name, p in parameters)
    names = "\n".join(f"{name} {tuple(tensor.shape)}" for name, tensor in [*parameters, *buffers])
    types = "\n".join(f"{name} {tensor.dtype}" for name, tensor in [*parameters, *buffers])
    said: dict[str, str | int | float | bool] = {
        "class": type(inner).__name__,
        "shape": _hash(layout),
        "names": _hash(names),
        "types": _hash(types),
        "wrapped": wrapped,
        "sharded": sharded,
        "ignored": len(getattr(module, "parameters_to_ignore", ())) if wrapped else 0,
    }
    if flat:
        return said
    norm, mark = digests.size_and_mark(parameter for _, parameter in parameters)
    said |= {"norm": norm, "mark": mark}
    said["each"] = " ".join(digests.tokens([parameter for _, parameter in parameters]))
    said["each_buffer"] = " ".join(digests.tokens([buffer for _, buffer in buffers]))
    if not sharded:
        said["weights"] = digests.whole(parameter for _, parameter in parameters)
        said["buffers"] = digests.whole(buffer for _, buffer in buffers)
    return said


def names_of(module: Any) -> str:
    """The names of a model's parameters, in order, one for each token of the event's `each`; then those of its buffers
    after a bar."""
    inner = getattr(module, "module", module) if type(module).__name__ == "DistributedDataParallel" else module
    said = []
    for named in (inner.named_parameters(), inner.named_buffers()):
        names = [name for name, _ in named]
        said.append(" ".join(names[first] for first, _ in digests.shares(len(names))))
    return "|".join(said) if len(said[0]) + len(said[1]) < NAMES_BYTES else ""


def of_update(optimizer: Any, in_models: set[int]) -> dict[str, str | int]:
    """What an optimizer's step was made of, as plain values: see the event `update_made`.

    Args:
        in_models: ids of the parameters of all models that are trained.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    loose = [at for at, parameter in enumerate(parameters) if id(parameter) not in in_models]
    return {
        "class": type(optimizer).__name__,
        "tensors": len(parameters),
        "elements": sum(parameter.numel() for parameter in parameters),
        "loose": " ".join(map(str, loose)) if len(parameters) <= digests.MOST else "",
        "layout": _hash("\n".join(f"{tuple(p.shape)} {p.dtype}" for p in parameters)),
        "gradients": " ".join(digests.tokens([parameter.grad for parameter in parameters])),
        "after": " ".join(digests.tokens(parameters)),
        "state": digests.of_state(getattr(optimizer, "state", {}), parameters),
        "settings": _settings(optimizer),
    }


def _settings(optimizer: Any) -> str:
    """The settings of an optimizer's groups, but its learning rate, as text."""
    groups = []
    for group in optimizer.param_groups:
        own = {name: value for name, value in group.items() if name not in ("params", "lr", "initial_lr", "param_names")}
        plain = {name: value for name, value in own.items() if isinstance(value, (int, float, bool, str, tuple, type(None)))}
        groups.append(f"{len(group['params'])} tensors: " + ", ".join(f"{name}={plain[name]}" for name in sorted(plain)))
    said = "; ".join(dict.fromkeys(groups))
    return said if len(said) <= 600 else f"{said[:600]}… {_hash(said)}"


def _hash(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())
