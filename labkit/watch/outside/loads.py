"""Checkpoints that a script loads, and to whom it gives what is in them: modules, optimizers, schedulers, scalers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...record.probe import Probe
from .files import path_of
from .loaded import TENSORS, Given, ModuleLoad, Seen, summed
from .patches import Patches, called_by_torch, called_from
from .saves import Saves
from .source_of import keys_read
from .states import OptimizerState, States, optimizer_state, states_of
from .values import is_plain, signatures, storage, values

LOADS = 64
"""Loads of a kind that are noted, at most: who loads in each step has no checkpoints."""

TOLD = 500
"""Times that a module is asked for its state and some of it is kept."""


class Loads:
    """torch.load, and each `load_state_dict`. *Called on* each rank.

    Args:
        probe: this rank's.
        saves: what this process saved.
        done: how many updates and how many evaluations there were.
    """

    def __init__(self, probe: Probe, saves: Saves, done: Callable[[], tuple[int, int]]) -> None:
        self._probe, self._saves, self._done = probe, saves, done
        self.seen = Seen()
        self._inside = False
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._taken: dict[int, tuple[Any, dict[str, np.ndarray], tuple[int, int], Any]] = {}
        self._told = 0

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import grad_scaler
        from torch.optim import lr_scheduler

        patches.wrap(torch, "load", self.around(patches))
        patches.wrap(torch.nn.Module, "state_dict", self._module_state(patches))
        patches.wrap(torch.nn.Module, "load_state_dict", self._module_load(patches))
        given = self._state_load(patches)
        patches.wrap(torch.optim.Optimizer, "load_state_dict", given)
        patches.wrap(grad_scaler.GradScaler, "load_state_dict", given)
        for kind in list(vars(lr_scheduler).values()):
            if isinstance(kind, type) and kind.__module__ == lr_scheduler.__name__ and "load_state_dict" in vars(kind):
                patches.wrap(kind, "load_state_dict", given)

    # Files

    def around(self, patches: Patches) -> Any:
        """What takes the place of a function (file, …) that reads a checkpoint and gives what is in it."""
        loaded = patches.noting(lambda obj, f, where: self.loaded(states_of(obj), path_of(f), where))

        def around(original):
            def load(f, *args, **kwargs):
                given = original(f, *args, **kwargs)
                sent = called_by_torch() and not path_of(f)
                if not sent and not self._inside and len(self.seen.files) < LOADS:
                    loaded(given, f, called_from())
                return given

            return load

        return around

    def loaded(self, states: States, path: str, where: str, unread: tuple[OptimizerState, ...] = ()) -> None:
        """A file was read; `unread` is what its optimizers hold and the script did not ask for."""
        if not states.trains:
            return
        if path:
            self._saves.files.known.add(path)
        file = summed(states, len(self.seen.files), path, where, unread)
        marks = file.marks.union(*(one.marks for one in file.optimizers))
        for made, update, step, to in self._saves.made:
            same = len(made & marks) >= 0.9 * len(made) if made and marks else path == to != ""
            if same:
                file.made_at, file.made_step = update, step
        self.seen.files.append(file)
        self.seen.generation += 1
        read = keys_read()
        self._probe.event(
            "torch_load",
            path=path,
            where=where,
            optimizer="optimizer" in file.kinds,
            weights="weights" in file.kinds,
            made_step=file.made_step,
            counters=", ".join(f"{name}={value}" for name, value in file.counters.items()),
            reads_counter=any(name in read for name in file.counters),
            elsewhere=_elsewhere(states),
        )

    def _file_of(self, marks: frozenset[Any] | set[Any]) -> int:
        """The latest file that most of these came from; -1 for none."""
        for file in reversed(self.seen.files):
            known = file.marks.union(*(one.marks for one in file.optimizers))
            if marks and len(marks & known) >= 0.5 * len(marks):
                return file.number
        return -1

    # Modules

    def _module_state(self, patches: Patches) -> Any:
        note = patches.noting(self._module_told)

        def around(original):
            def state_dict(module, *args, **kwargs):
                given = original(module, *args, **kwargs)
                if self._told < TOLD and not args and not kwargs.get("prefix") and kwargs.get("destination") is None:
                    note(module, given)
                return given

            return state_dict

        return around

    def _module_told(self, module: Any, given: Any) -> None:
        """A module gave its state: keep some values of it, to tell whether they are still those when it is given back."""
        self._told += 1
        if len(self._taken) >= 8:
            self._taken.pop(next(iter(self._taken)))
        tensors = dict(list(given.items())[:4]) if len(given) < TENSORS else {}
        kept = {name: taken for name, value in tensors.items() if (taken := values(value, 8)) is not None}
        self._taken[id(given)] = (weakref.ref(given), kept, self._done(), weakref.ref(module))

    def _module_load(self, patches: Patches) -> Any:
        before, after = patches.noting(self._module_before), patches.noting(self._module_after)

        def around(original):
            def load_state_dict(module, state_dict, *args, **kwargs):
                if self._inside or len(self.seen.modules) >= LOADS:
                    return original(module, state_dict, *args, **kwargs)
                self._inside, where, kept = True, called_from(), {}
                before(module, state_dict, kept)
                try:
                    given = original(module, state_dict, *args, **kwargs)
                finally:
                    self._inside = False
                after(module, state_dict, given, where, kept)
                return given

            return load_state_dict

        return around

    def _module_before(self, module: Any, state: Any, kept: dict[str, Any]) -> None:
        own = {storage(tensor) for tensor in [*module.parameters(), *module.buffers()]} - {0}
        tensors = [value for value in state.values() if is_plain(value)]
        kept["own"] = sum(storage(value) in own for value in tensors)
        kept["given"] = len(state)
        kept["changed"] = self._changed(state)
        kept["values"] = _of_module(module)
        kept["marks"] = signatures(tensors[:TENSORS])

    def _changed(self, state: Any) -> bool:
        """Whether what a module gave as its state has other values by now, after updates or an evaluation."""
        reference, then, done, _ = self._taken.get(id(state), (lambda: None, {}, self._done(), None))
        if reference() is not state or done == self._done():
            return False
        now = {name: values(state[name], 8) for name in then if name in state}
        return any(value is not None and not np.array_equal(value, then[name]) for name, value in now.items())

    def _module_after(self, module: Any, state: Any, given: Any, where: str, kept: dict[str, Any]) -> None:
        if "marks" not in kept:
            return
        missing, unexpected = list(getattr(given, "missing_keys", [])), list(getattr(given, "unexpected_keys", []))
        file = self._file_of(kept["marks"])
        nothing = kept["given"] in (kept["own"], len(unexpected))
        now = _of_module(module)
        loaded = ModuleLoad(weakref.ref(module), file, where, kept["values"], now, frozenset(missing), nothing)
        self._note(module, loaded, missing, unexpected, {name: kept[name] for name in ("given", "own", "changed")})

    def _note(
        self, module: Any, loaded: ModuleLoad, missing: list[str], unexpected: list[str], more: dict[str, Any]
    ) -> None:
        self.seen.modules.append(loaded)
        self.seen.generation += 1
        self._probe.event(
            "module_loaded",
            module=self._numbers.setdefault(module, len(self._numbers)),
            where=loaded.where,
            missing=len(missing),
            unexpected=len(unexpected),
            renamed=_renamed(missing, unexpected),
            example=unexpected[0] if unexpected else "",
            from_file=loaded.file >= 0,
            updates=self._done()[0],
            **more,
        )

    # Tensors that are filled where they lie

    def asked(self) -> list[tuple[Any, dict[str, np.ndarray]]]:
        """The modules that gave their state lately, each with some values of its parameters as they are now."""
        modules = {id(module): module for *_, of in self._taken.values() if (module := of()) is not None}
        return [(module, _of_module(module)) for module in modules.values()]

    def filled(self, module: Any, before: dict[str, np.ndarray], where: str, names: list[str], absent: list[str]) -> None:
        """A module's own tensors were filled with what the last file holds.

        Args:
            module: of these tensors.
            before: some values of its parameters before it.
            where: file:line.
            names: of the module's parameters that were filled.
            absent: names that were asked for and that the file has not.
        """
        missing = [name for name, _ in module.named_parameters() if name not in names]
        load = ModuleLoad(
            weakref.ref(module), len(self.seen.files) - 1, where, before, _of_module(module), frozenset(missing), not names
        )
        given = len(names) + len(absent)
        self._note(module, load, missing, absent, {"given": given, "own": 0, "changed": False, "in_place": True})
        for key in [key for key, (*_, of) in self._taken.items() if of() is module]:
            del self._taken[key]  # what it gave has other values by now, as it should

    # Optimizers, schedulers, scalers

    def _state_load(self, patches: Patches) -> Any:
        note = patches.noting(self._state_given)

        def around(original):
            def load_state_dict(holder, state_dict, *args, **kwargs):
                if self._inside:
                    return original(holder, state_dict, *args, **kwargs)
                self._inside = True
                try:
                    given = original(holder, state_dict, *args, **kwargs)
                finally:
                    self._inside = False
                note(holder, state_dict, called_from())
                return given

            return load_state_dict

        return around

    def _state_given(self, holder: Any, state: Any, where: str) -> None:
        import torch

        of_optimizer = optimizer_state(state) if isinstance(holder, torch.optim.Optimizer) else None
        if of_optimizer is not None and of_optimizer.marks:
            file = self._file_of(of_optimizer.marks)
        else:
            file = len(self.seen.files) - 1  # nothing in it tells whose it is: the last one's
        self.seen.given[holder] = Given(file, where, of_optimizer)
        self.seen.generation += 1


def _of_module(module: Any) -> dict[str, np.ndarray]:
    """Some values of a module's parameters, by name."""
    named = list(module.named_parameters())[:TENSORS]
    return {name: taken for name, parameter in named if (taken := values(parameter)) is not None}


def _renamed(missing: list[str], unexpected: list[str]) -> int:
    """How many keys that a module has not would fit one that it misses, but for words in front."""
    wanted = set(missing)
    fitting = sum(any(end in wanted for end in _ends(key)) for key in unexpected)
    offered = set(unexpected)
    return max(fitting, sum(any(end in offered for end in _ends(key)) for key in missing))


def _ends(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[at:]) for at in range(1, len(parts))]


def _elsewhere(states: States) -> bool:
    """Whether tensors came to a GPU that is not this process's."""
    import torch

    if not torch.cuda.is_available():
        return False
    tensors = [tensor for weights in states.weights for tensor in weights.values()]
    return any(tensor.is_cuda and tensor.device.index != torch.cuda.current_device() for tensor in tensors)
