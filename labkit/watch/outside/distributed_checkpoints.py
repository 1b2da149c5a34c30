"""Checkpoints of torch.distributed.checkpoint: ranks write one together, each its parts, and are filled in place from it."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from .files import path_of
from .loads import Loads
from .patches import Patches, called_from
from .resumes import Resumes
from .saves import Saves
from .states import OptimizerState, states_of

_PACKAGE = "torch.distributed.checkpoint"
_MOMENT = re.compile(r"(?:^|\.)state\.(.+)\.([^.]+)$")
"""A tensor of an optimizer's state, by its name in a file: …state.<parameter>.<kind>."""


class DistributedCheckpoints:
    """Calls of save, async_save and load. *Called on* each rank; no collective is made.

    Args:
        saves, loads, resumes: who notes what is saved, loaded and gone on from.
    """

    def __init__(self, saves: Saves, loads: Loads, resumes: Resumes) -> None:
        self._saves, self._loads, self._resumes = saves, loads, resumes
        self._asked: dict[int, tuple[str, str, bool]] = {}

    def attach(self, patches: Patches) -> None:
        """Watch from now on. Few scripts import it: until one does, nothing is replaced."""

        def saver(module: Any) -> None:
            around = self._saving(patches)
            patches.wrap_everywhere(module, "save", around)
            patches.wrap_everywhere(module, "async_save", around)
            patches.wrap(module, "_stateful_to_state_dict", self._stating(patches))

        def loader(module: Any) -> None:
            patches.wrap(module, "_load_state_dict", self._loading(patches))

        patches.when_imported(f"{_PACKAGE}.state_dict_saver", saver)
        patches.when_imported(f"{_PACKAGE}.state_dict_loader", loader)
        patches.when_imported(
            f"{_PACKAGE}.state_dict", lambda module: patches.wrap(module, "_init_optim_state", self._aside)
        )

    # Saves

    def _saving(self, patches: Patches) -> Any:
        end = patches.noting(self._saves.end)

        def around(original):
            def save(*args, **kwargs):
                key = threading.get_ident()
                inner = sys._getframe(1).f_globals.get("__name__", "").startswith(_PACKAGE)
                if inner or key in self._asked or self._saves.is_within(key):
                    return original(*args, **kwargs)
                self._asked[key] = (_path(kwargs, "storage_writer"), called_from(), _is_shared(kwargs))
                try:
                    given = original(*args, **kwargs)
                except BaseException:
                    self._saves.give_up(key)
                    raise
                finally:
                    self._asked.pop(key, None)
                end(key)
                return given

            return save

        return around

    def _stating(self, patches: Patches) -> Any:
        begin = patches.noting(self._saves.begin)

        def around(original):
            def stating(state_dict, *args, **kwargs):
                given = original(state_dict, *args, **kwargs)
                key = threading.get_ident()
                asked = self._asked.get(key)
                if asked is not None:
                    path, where, shared = asked
                    begin(key, states_of(given), path, where, shared)
                return given

            return stating

        return around

    # Loads

    def _loading(self, patches: Patches) -> Any:
        before, after = patches.noting(self._before), patches.noting(self._after)

        def around(original):
            def load(*args, **kwargs):
                kept: dict[str, Any] = {}
                before(kept, kwargs)
                given = original(*args, **kwargs)
                after(kept, kwargs, called_from())
                return given

            return load

        return around

    def _before(self, kept: dict[str, Any], asked: Mapping[str, Any]) -> None:
        from torch.distributed.checkpoint._nested_dict import flatten_state_dict

        kept["modules"] = self._loads.asked()
        kept["flat"] = flatten_state_dict(asked["state_dict"])[0]

    def _after(self, kept: dict[str, Any], asked: Mapping[str, Any], where: str) -> None:
        if "flat" not in kept:
            return
        tensors = _tensors_in(asked["storage_reader"])
        states = states_of(asked["state_dict"])
        unread = tuple(_unread(tensors, set(kept["flat"])))
        if unread:
            states.kinds.add("optimizer")
        self._loads.loaded(states, _path(asked, "storage_reader"), where, unread)
        lying = {memory: name for name, value in kept["flat"].items() if (memory := _memory(value))}
        for module, values in kept["modules"]:
            own = {name: lying[memory] for name, p in module.named_parameters() if (memory := _memory(p)) in lying}
            if own:
                there = [name for name, key in own.items() if not tensors or key in tensors]
                absent = [key for name, key in own.items() if name not in there]
                self._loads.filled(module, values, where, there, absent)

    def _aside(self, original: Any) -> Any:
        """Around what makes a step with a learning rate of 0, so that an optimizer has moments to be filled."""

        def aside(*args, **kwargs):
            self._resumes.paused = True
            try:
                return original(*args, **kwargs)
            finally:
                self._resumes.paused = False

        return aside


def _path(asked: Mapping[str, Any], storage: str) -> str:
    """The folder that is written or read; empty for what is no folder."""
    given = asked.get("checkpoint_id")
    return path_of(given if given is not None else getattr(asked.get(storage), "path", None))


def _is_shared(asked: Mapping[str, Any]) -> bool:
    """Whether ranks share the work out: with no_dist, or without a group, each writes as if it were alone."""
    import torch.distributed as dist

    return not asked.get("no_dist") and dist.is_initialized() and dist.get_world_size(asked.get("process_group")) > 1


def _memory(tensor: Any) -> int:
    """Where a tensor, or this rank's part of one, lies; 0 for what is none. Its values are not read."""
    import torch

    local = getattr(tensor, "_local_tensor", tensor)
    if not isinstance(local, torch.Tensor) or local.device.type == "meta" or not local.numel():
        return 0
    return local.data_ptr()


def _tensors_in(reader: Any) -> dict[str, str]:
    """By name: the number format of each tensor in a folder of files; empty for other storage."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    if type(reader) is not FileSystemReader:
        return {}
    known = reader.read_metadata().state_dict_metadata
    kinds = {name: getattr(getattr(one, "properties", None), "dtype", None) for name, one in known.items()}
    return {name: str(kind).removeprefix("torch.") for name, kind in kinds.items() if kind is not None}


def _unread(tensors: Mapping[str, str], asked: Iterable[str]) -> Iterable[OptimizerState]:
    """The state of optimizers in a file of which nothing was asked for."""
    asked = set(asked)
    moments = {name: found for name in tensors if (found := _MOMENT.search(name)) and found[2] != "step"}
    if moments and not asked & set(moments):
        types = {found[2]: tensors[name] for name, found in moments.items()}
        parameters = {found[1] for found in moments.values()}
        yield OptimizerState(-1, types, {}, -1.0, len(parameters), frozenset())
