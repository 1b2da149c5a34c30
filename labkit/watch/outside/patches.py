"""Calls of a library replaced by ones that note what is done, and put back as they were."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...record.where import short_path
from .sampling import Sampling

_PACKAGE = str(Path(__file__).resolve().parents[2])


class Patches:
    """What was replaced, so that it can be put back, in the reverse order."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any, bool]] = []
        self.faults: list[str] = []
        self._finders: list[_Later] = []
        self.sampling = Sampling()

    def original(self, owner: Any, name: str) -> Any:
        """What `owner.name` was before anything replaced it."""
        return next((kept for of, called, kept, _ in self._kept if of is owner and called == name), vars(owner).get(name))

    def wrap(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace `owner.name` by `around(what it was)`. Nothing happens where the library has no such name.

        `around` gets the original and returns what takes its place; it looks like the original to who inspects it.
        """
        own = vars(owner).get(name)
        original = own if own is not None else getattr(owner, name, None)
        if original is None:
            return
        plain = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
        made = functools.wraps(plain)(around(plain))
        put: Any = type(original)(made) if isinstance(original, (staticmethod, classmethod)) else made
        self._kept.append((owner, name, original, own is not None))
        setattr(owner, name, put)

    def wrap_at_times(
        self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Callable[[bool], None]:
        """As `wrap`, but it takes the place only while what this returns was last called with True. At first it does not.

        For what a script calls so often that passing through costs too much. Where the script replaces it too, it is left.
        """
        own = vars(owner).get(name)
        self.wrap(owner, name, around)
        made = vars(owner)[name]

        def switch(on: bool) -> None:
            if vars(owner).get(name) is not (own if on else made):
                return
            if on or own is not None:
                setattr(owner, name, made if on else own)
            else:
                delattr(owner, name)

        switch(False)
        return switch

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace a second name of what was wrapped elsewhere."""
        self._kept.append((owner, name, getattr(owner, name), True))
        setattr(owner, name, value)

    def wrap_everywhere(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a function of a module of torch, and the same under each name that other modules of torch gave it."""
        original = getattr(owner, name, None)
        if original is None:
            return
        self.wrap(owner, name, around)
        for known, module in list(sys.modules.items()):
            if known.startswith("torch.") and vars(module).get(name) is original:
                self.put(module, name, getattr(owner, name))

    def when_imported(self, name: str, then: Callable[[Any], None]) -> None:
        """Call `then(module)` once a module is imported; at once where it is already. Most scripts never import it."""
        module = sys.modules.get(name)
        if module is not None:
            then(module)
            return
        finder = _Later(name, self.noting(then))
        sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType]
        self._finders.append(finder)

    def noting(self, note: Callable[..., None]) -> Callable[..., None]:
        """`note`, but an error in it is kept and not raised: what watches must not end what it watches."""

        @functools.wraps(note)
        def noted(*args: Any, **kwargs: Any) -> None:
            try:
                note(*args, **kwargs)
            except Exception:
                self.keep_fault()

        return noted

    def quietly(self, look: Callable[..., Any]) -> Callable[..., Any]:
        """`look`, whose error is kept and not raised; it then gives None."""

        def looked(*args: Any) -> Any:
            try:
                return look(*args)
            except Exception:
                self.keep_fault()
                return None

        return looked

    def keep_fault(self) -> None:
        """Note the error that is being handled."""
        fault = traceback.format_exc(limit=-3)
        if len(self.faults) < 5 and fault not in self.faults:
            self.faults.append(fault)

    def undo(self) -> None:
        """Put everything back."""
        for finder in self._finders:
            finder.leave()
        while self._kept:
            owner, name, original, was_own = self._kept.pop()
            if was_own:
                setattr(owner, name, original)
            elif name in vars(owner):
                delattr(owner, name)


class _Later:
    """Finds one module as Python does, and tells when it was run."""

    def __init__(self, name: str, then: Callable[..., None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        if name != self._name:
            return None
        self.leave()
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run, then = spec.loader.exec_module, self._then

        def exec_module(module: Any) -> None:
            run(module)
            then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def leave(self) -> None:
        """Look for it no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType]


def is_unreal() -> Callable[[], bool]:
    """What says whether operations are recorded or transformed and not computed: in a trace, a transform of torch.func, on
    fake tensors. What is looked at then would become part of it."""
    from torch import _C

    tracing = getattr(_C, "_get_tracing_state", lambda: None)
    transformed = getattr(getattr(_C, "_functorch", None), "peek_interpreter_stack", lambda: None)
    mode, key = getattr(_C, "_get_dispatch_mode", None), getattr(getattr(_C, "_TorchDispatchModeKey", None), "FAKE", None)

    def unreal() -> bool:
        if tracing() is not None or transformed() is not None:
            return True
        return mode is not None and key is not None and mode(key) is not None

    return unreal


_STDLIB = sysconfig.get_paths()["stdlib"]
_INSTALLED = ("/site-packages/", "/dist-packages/")


def _torch() -> str:
    """The folder of torch: a build of one's own lies outside of where packages are installed."""
    spec = importlib.util.find_spec("torch")
    return str(Path(spec.origin).parent) + os.sep if spec is not None and spec.origin else "/torch/"


_LIBRARIES = (_torch(), _STDLIB + os.sep, _PACKAGE + os.sep)


def is_own(file: str) -> bool:
    """Whether a frame's file is labkit's."""
    return file.startswith(_PACKAGE + os.sep)


def is_library(file: str) -> bool:
    """Whether a frame's file is of an installed package, the standard library or labkit, or made at run time."""
    return file.startswith((*_LIBRARIES, "<frozen", "<string>")) or any(part in file for part in _INSTALLED)


_shown: dict[str, str | None] = {}
"""By a frame's file: how it is named to a person; None for one that is a library's. A place is asked for at each step."""

_start = Path.cwd()


def count_paths_from_here() -> None:
    """Name files relative to the working folder as it is now, wherever the script goes later."""
    global _start
    _start = Path.cwd()
    _shown.clear()


def named(file: str, line: int) -> str:
    """A place of the script as it is named to a person, file:line."""
    return f"{short_path(file, start=_start)}:{line}"


def called_from(depth: int = 2) -> str:
    """file:line of the nearest caller that is the script's own code; empty where there is none."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        try:
            shown = _shown[file]
        except KeyError:
            shown = _shown[file] = None if is_library(file) else short_path(file, start=_start)
        if shown is not None:
            return f"{shown}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def called_by_torch(depth: int = 2) -> bool:
    """Whether the caller of what is replaced is torch itself."""
    return sys._getframe(depth).f_code.co_filename.startswith(_LIBRARIES[0])


def called_through(depth: int = 2) -> list[str]:
    """The installed packages between here and the script's own code, without torch, the nearest first."""
    frame: Any = sys._getframe(depth)
    packages: list[str] = []
    while frame is not None and is_library(file := frame.f_code.co_filename):
        part = next((part for part in _INSTALLED if part in file), None)
        if part is not None and (name := file.rpartition(part)[2].split("/")[0]) not in ("torch", *packages):
            packages.append(name)
        frame = frame.f_back
    return packages
