"""What training goes on from: what an optimizer and its model hold of what was loaded, as the first step after it begins."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import Any

import xxhash

from ...record.probe import Probe
from .loaded import Given, Loaded, ModuleLoad, Seen
from .patches import Patches, called_from, is_own
from .restored import holds, of_weights, put_back
from .states import OptimizerState, optimizer_state


@dataclass(eq=False)
class _Open:
    """An optimizer's first step after a load, while it is made."""

    fields: dict[str, Any]
    loads: list[ModuleLoad]


class Resumes:
    """The first steps after loads. *Called on* each rank; no collective is made.

    Args:
        probe: this rank's.
        seen: what was loaded.
        schedulers, scalers: all that the script made.
    """

    def __init__(self, probe: Probe, seen: Seen, schedulers: weakref.WeakSet[Any], scalers: weakref.WeakSet[Any]) -> None:
        self._probe, self._seen = probe, seen
        self._schedulers, self._scalers = schedulers, scalers
        self._checked: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        self._told: weakref.WeakSet[Any] = weakref.WeakSet()
        self._styles: set[tuple[str, str]] = set()
        self._styled: weakref.WeakSet[Any] = weakref.WeakSet()
        self._open: _Open | None = None
        self.paused = False
        """While torch.distributed.checkpoint steps an optimizer with a learning rate of 0, so that it has moments."""
        self._handles: list[Any] = []

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        before, after = patches.noting(self._before), patches.noting(self._after)
        restored = patches.noting(self._restored)
        self._handles += [
            register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: before(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: after(optimizer)),
        ]

        def around(original):
            def set_rng_state(new_state):
                if self._seen.files and not _in_library(sys._getframe(1).f_code.co_filename):
                    restored(new_state, called_from())
                return original(new_state)

            return set_rng_state

        patches.wrap(torch.random, "set_rng_state", around)
        patches.put(torch, "set_rng_state", torch.random.set_rng_state)

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _restored(self, state: Any, where: str) -> None:
        import torch

        digest = xxhash.xxh3_64_hexdigest(state.cpu().numpy().tobytes())
        self._probe.event("generator_restored", digest=digest, seed=str(torch.initial_seed()), where=where)

    # A step

    def _before(self, optimizer: Any) -> None:
        generation, modules = self._checked.get(optimizer, (0, 0))
        if generation == self._seen.generation or self.paused:
            return
        self._checked[optimizer] = (self._seen.generation, len(self._seen.modules))
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        loads = [load for load in self._seen.modules[modules:] if holds(load, held)]
        given = self._seen.given.get(optimizer)
        if given is not None and given in self._told:
            given = None
        number = max([load.file for load in loads] + ([given.file] if given is not None else []), default=-1)
        if given is None and number < 0:
            return
        if given is not None:
            self._told.add(given)
        file = self._seen.files[number] if number >= 0 else None
        fields = self._of_file(file, given) | self._of_optimizer(optimizer, file, given)
        fields |= self._of_helpers(optimizer, file)
        self._open = _Open(fields | of_weights(optimizer, file, loads, held), loads)

    def _after(self, optimizer: Any) -> None:
        if optimizer not in self._styled:
            self._note_style(optimizer)
        opened, self._open = self._open, None
        if opened is None:
            return
        after = optimizer_state({"state": optimizer.state, "param_groups": optimizer.param_groups})
        self._probe.event("resumed", **opened.fields, stateful=bool(after.types), put_back=put_back(opened.loads))

    def _note_style(self, optimizer: Any) -> None:
        """Which optimizers keep a state in another number format than its parameter's, of themselves."""
        self._styled.add(optimizer)
        if optimizer in self._seen.given:
            return
        for parameter, entry in list(optimizer.state.items())[:4]:
            for name, value in entry.items() if isinstance(entry, dict) else ():
                if name != "step" and getattr(value, "is_floating_point", bool)() and value.dtype != parameter.dtype:
                    self._styles.add((type(optimizer).__name__, name))

    # What is known

    def _of_file(self, file: Loaded | None, given: Given | None) -> dict[str, Any]:
        if file is None:
            return {"path": "", "where": given.where if given else "", "file": -1, "made_step": -1, "counters": ""}
        counters = ", ".join(f"{name}={value}" for name, value in file.counters.items())
        return {
            "path": file.path,
            "where": file.where,
            "file": file.number,
            "made_step": file.made_step,
            "counters": counters,
        }

    def _of_optimizer(self, optimizer: Any, file: Loaded | None, given: Given | None) -> dict[str, Any]:
        now = optimizer_state({"state": optimizer.state, "param_groups": optimizer.param_groups})
        then = _fitting(file, given, now)
        cast = {} if then is None or given is None else _cast(then, now)
        kinds = {str(p.dtype).removeprefix("torch.") for group in optimizer.param_groups for p in group["params"]}
        apart = given is not None and (
            any((type(optimizer).__name__, name) in self._styles for name in cast)
            or (file is not None and bool(file.types) and file.types == kinds)
            or (then is not None and len(set(then.types.values())) > 1)
        )
        return {
            "optimizer_given": given is not None,
            "optimizer_where": given.where if given is not None else "",
            "file_optimizer": file is not None and "optimizer" in file.kinds,
            "file_moments": (then is not None and bool(then.types)) or _unread(file, then),
            "unread_moments": _unread(file, then),
            "file_steps": -1 if then is None else then.steps,
            "steps": now.steps,
            "moments": bool(now.types),
            "same_settings": then is not None and _same(then, now),
            "file_rate": -1.0 if then is None else then.rate,
            "rate": now.rate,
            "cast": ", ".join(f"{name} from {old} to {new}" for name, (old, new) in cast.items()),
            "cast_down": any("32" in old or "64" in old for old, _ in cast.values()),
            "kept_apart": apart,
        }

    def _of_helpers(self, optimizer: Any, file: Loaded | None) -> dict[str, Any]:
        schedules = [one for one in self._schedulers if getattr(one, "optimizer", None) is optimizer]
        scaler = next((one for one in self._scalers if id(optimizer) in getattr(one, "_per_optimizer_states", ())), None)
        scale = getattr(scaler, "_scale", None)
        return {
            "has_schedule": bool(schedules),
            "schedule_at": max((int(getattr(one, "last_epoch", 0)) for one in schedules), default=-1),
            "schedule_given": any(one in self._seen.given for one in schedules),
            "file_schedule": file is not None and "scheduler" in file.kinds,
            "file_schedule_at": -1 if file is None else file.schedule_at,
            "schedule_rate": -1.0 if file is None else file.rate,
            "has_scaler": scale is not None,
            "scaler_given": scaler is not None and scaler in self._seen.given,
            "scale": -1.0 if scale is None else float(scale),
            "file_scale": -1.0 if file is None else file.scale,
        }


def _in_library(file: str) -> bool:
    return is_own(file) or "/torch/" in file or "site-packages" in file


def _fitting(file: Loaded | None, given: Given | None, now: OptimizerState) -> OptimizerState | None:
    """What the file, or whoever gave it, has for this optimizer."""
    if given is not None and given.state is not None:
        return given.state
    of_file = file.optimizers if file is not None else []
    same = [one for one in of_file if one.parameters == now.parameters]
    return same[0] if same else None


def _unread(file: Loaded | None, then: OptimizerState | None) -> bool:
    """Whether the file has moments that the script did not ask for, and gave the optimizer a state without any."""
    return file is not None and (then is None or not then.types) and any(one.types for one in file.unread)


def _same(then: OptimizerState, now: OptimizerState) -> bool:
    shared = then.settings.keys() & now.settings.keys()
    if "initial_lr" not in shared and then.rate != now.rate:
        return False
    return then.parameters == now.parameters and all(then.settings[key] == now.settings[key] for key in shared)


def _cast(then: OptimizerState, now: OptimizerState) -> dict[str, tuple[str, str]]:
    """State whose number format is another one than it was given in."""
    return {name: (kind, now.types[name]) for name, kind in then.types.items() if now.types.get(name, kind) != kind}
