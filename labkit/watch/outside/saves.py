"""Checkpoints that a script writes: where to, over what, which states are in them, and whether they change meanwhile."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import xxhash

from ...record.probe import Probe
from .files import Files, path_of
from .patches import Patches, called_by_torch, called_from
from .source_of import rederives_schedule
from .states import States, optimizer_state, states_of
from .values import signature, storage, values

RECENT = 8
"""Updates within which an optimizer made a step, if it is one that trains."""

HASHED = 256
"""Tensors that are hashed at most, to tell what is saved from what is saved elsewhere."""


class Saves:
    """torch.save and its kin, and the states that are asked for to be saved. *Called on* each rank.

    Args:
        probe: this rank's.
        average: says of what is saved whether the script has averaged weights that it updates, and whether these are in it.
    """

    def __init__(self, probe: Probe, average: Callable[[States], tuple[bool, bool]] = lambda states: (False, False)) -> None:
        self._probe, self._average = probe, average
        self.schedulers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.scalers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stepped: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._updates = 0
        self._open: dict[int, dict[str, Any]] = {}
        self.before: Callable[[], None] = lambda: None
        """Called before the number of updates is asked for: between bursts it is told now and then."""
        self._pid = os.getpid()
        self.files = Files(self._moved)
        self.made: list[tuple[frozenset[Any], int, int, str]] = []
        """Of each save that could be loaded: signatures of its tensors, updates that were made, the step, and the path of
        one that ranks made together, whose tensors may be parts."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import grad_scaler
        from torch.optim import lr_scheduler

        patches.wrap(torch, "save", self.around(patches))
        patches.wrap(threading.Thread, "start", self._started)
        patches.wrap(lr_scheduler.LRScheduler, "__init__", _kept(patches.noting(self.schedulers.add)))
        patches.wrap(grad_scaler.GradScaler, "__init__", _kept(patches.noting(self.scalers.add)))
        self.files.attach(patches)

    def around(self, patches: Patches) -> Any:
        """What takes the place of a function (object, file, …) that writes a checkpoint."""
        begin, end = patches.noting(self._begin), patches.noting(self.end)

        def around(original):
            def save(obj, f, *args, **kwargs):
                key = threading.get_ident()
                sent = called_by_torch() and not path_of(f)  # as ZeroRedundancyOptimizer sends its parts to a rank
                if sent or self.is_within(key) or _is_part(sys._getframe(1)):
                    return original(obj, f, *args, **kwargs)
                begin(key, obj, f, called_from())
                try:
                    given = original(obj, f, *args, **kwargs)
                except BaseException:
                    self.give_up(key)
                    raise
                end(key)
                return given

            return save

        return around

    def is_within(self, key: int) -> bool:
        """Whether a thread is writing a checkpoint already, or this process was forked off the one that is watched."""
        return key in self._open or os.getpid() != self._pid

    def give_up(self, key: int) -> None:
        """What a thread was writing came to nothing."""
        self._open.pop(key, None)

    def _started(self, original: Any) -> Any:
        """Note on each thread how many updates there were as it was started: what it is given is of that moment."""

        def start(thread, *args, **kwargs):
            self.before()
            thread._labkit_updates = self._updates
            return original(thread, *args, **kwargs)

        return start

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step."""
        self._updates += 1
        self._stepped[optimizer] = self._updates

    def _begin(self, key: int, obj: Any, f: Any, where: str) -> None:
        if not _is_library(obj):
            self.begin(key, states_of(obj), path_of(f), where)

    def begin(self, key: int, states: States, path: str, where: str, shared: bool = False) -> None:
        """A thread begins to write a checkpoint; `shared` if all ranks write their parts of it to one path together."""
        self.before()
        thread = threading.current_thread()
        aside = thread is not threading.main_thread()
        marks = _marks(states)
        has_average, average = self._average(states)
        self._open[key] = {
            "path": path,
            "over": path in self.files.known and os.path.exists(path),
            "where": where,
            "shared": shared,
            "optimizer": "optimizer" in states.kinds,
            "scheduler": bool(states.kinds & {"scheduler", "unknown"}),
            "scaler": bool(states.kinds & {"scaler", "unknown"}),
            "average": average,
            "has_scheduler": any(self._is_used(scheduler) for scheduler in self.schedulers),
            "has_scaler": any(scaler.is_enabled() for scaler in self.scalers),
            "has_average": has_average,
            "moments": any(optimizer_state(one, 4).types for one in states.optimizers),
            "others": self.files.others(path),
            "content": _content(states),
            "rederived": rederives_schedule(),
            "in_thread": aside,
            "live": self._live(states) if aside else 0,
            "updates": _since(thread, self._updates) if aside else self._updates,
            "counters": ", ".join(f"{name}={value}" for name, value in states.counters.items()),
            "_daemon": aside and thread.daemon,
            "_marks": marks,
            "_start": time.monotonic_ns(),
        }

    def end(self, key: int, finished: bool = True) -> None:
        """A thread has written what it began; not `finished` where the script left it in the midst."""
        fields = self._open.pop(key, None)
        if fields is None:
            return
        now = time.monotonic_ns()
        seconds = (now - fields["_start"]) / 1e9
        if finished:
            to = fields["path"] if fields["shared"] else ""
            self.made.append((fields["_marks"], self._updates, self._probe.step, to))
            del self.made[:-64]
            if fields["path"]:
                self.files.saved(fields["path"], fields["content"], fields["optimizer"])
        written = {name: value for name, value in fields.items() if not name.startswith("_")}
        self.before()
        meanwhile = self._updates - fields["updates"]
        self._probe.event("torch_save", **written, meanwhile=meanwhile, seconds=seconds, finished=finished)

    def close(self) -> None:
        """The script is over: threads that Python does not wait for leave what they write torn."""
        for key, fields in list(self._open.items()):
            if fields["_daemon"]:
                self.end(key, finished=False)

    def _moved(self, path: str, content: str, where: str) -> None:
        self._probe.event("checkpoint_moved", path=path, content=content, where=where)

    def _is_used(self, scheduler: Any) -> bool:
        """Whether a scheduler was stepped, and its optimizer trains now."""
        last = self._stepped.get(getattr(scheduler, "optimizer", None), -RECENT)
        return getattr(scheduler, "last_epoch", 0) >= 1 and self._updates - last < RECENT

    def _live(self, states: States) -> int:
        """How many of the tensors are those that training changes, and no copies of them."""
        parameters = [p for optimizer in self._stepped for group in optimizer.param_groups for p in group["params"]]
        moments = [tensor for optimizer in self._stepped for tensor in _tensors_of(optimizer.state)]
        alive = {storage(tensor) for tensor in [*parameters, *moments]} - {0}
        saved = [tensor for weights in states.weights for tensor in weights.values()]
        saved += [tensor for state in states.optimizers for tensor in _tensors_of(state.get("state", {}))]
        return sum(storage(tensor) in alive for tensor in saved)


def _tensors_of(state: Any) -> list[Any]:
    """The moments in an optimizer's state; counters of steps are none."""
    entries = [entry for entry in list(state.values()) if isinstance(entry, dict)]
    return [value for entry in entries for name, value in entry.items() if name != "step"]


def _kept(add: Any) -> Any:
    """Around an `__init__`: note what was made."""

    def around(original):
        def __init__(made, *args, **kwargs):
            original(made, *args, **kwargs)
            add(made)

        return __init__

    return around


def _since(thread: Any, updates: int) -> int:
    """Updates that were made when a thread was given what it saves; for one of a pool, those made by now."""
    since = thread.__dict__.pop("_labkit_updates", updates)
    return updates if "ThreadPool" in thread.name else since


def _is_part(frame: Any) -> bool:
    """Whether torch.distributed.checkpoint writes, or reads, a part of a checkpoint."""
    return frame.f_globals.get("__name__", "").startswith("torch.distributed.checkpoint.")


def _is_library(obj: Any) -> bool:
    """Whether a library writes a part of something larger: a tensor alone, as torch.distributed.checkpoint does."""
    return hasattr(obj, "untyped_storage")


def _marks(states: States) -> frozenset[Any]:
    """Signatures by which what was saved is known again when it is loaded."""
    tensors = [tensor for weights in states.weights for tensor in weights.values()][:HASHED]
    marks = {one for one in map(signature, tensors) if one is not None}
    for one in states.optimizers:
        marks |= optimizer_state(one).marks
    return frozenset(marks)


def _content(states: States) -> str:
    """A hash of what is saved: of some values of its tensors, and its counters."""
    state = xxhash.xxh3_64(repr(sorted(states.counters.items())).encode())
    tensors = [tensor for weights in states.weights for tensor in weights.values()][:HASHED]
    for tensor in [*tensors, *states.loose[:HASHED]]:
        taken = values(tensor, 8192 if tensor.dtype.itemsize == 1 else 32)  # a generator's state is 5056 bytes
        state.update(b"" if taken is None else taken.tobytes())
    return state.hexdigest()
