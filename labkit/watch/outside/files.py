"""Where whole checkpoints of a run lie: files are written, moved, copied and removed, and what is left counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .patches import Patches, called_from


def path_of(target: Any) -> str:
    """The file that something is saved to or loaded from; empty for memory, and for what is no regular file."""
    if not isinstance(target, (str, os.PathLike)):
        target = getattr(target, "name", None)  # an open file
    if not isinstance(target, (str, os.PathLike)):
        return ""
    path = os.path.realpath(os.fspath(target))
    if not isinstance(path, str) or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
        return ""
    return path


class Files:
    """The files that this process saved whole checkpoints to, wherever they are now.

    Args:
        moved: called with a path, what its content is, and the line, as a file that was saved takes its final name.
    """

    def __init__(self, moved: Callable[[str, str, str], None]) -> None:
        self._moved = moved
        self._content: dict[str, str] = {}
        self._whole: set[str] = set()
        self.known: set[str] = set()
        """Files that this process wrote or read."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import shutil

        for owner, name in ((os, "replace"), (os, "rename"), (os, "link"), (shutil, "copyfile")):
            patches.wrap(owner, name, self._around(patches, keeps=name in ("link", "copyfile")))

    def _around(self, patches: Patches, keeps: bool) -> Any:
        note = patches.noting(self._goes)

        def around(original):
            def go(src, dst, *args, **kwargs):
                given = original(src, dst, *args, **kwargs)
                if self._content:
                    note(src, dst, keeps, called_from())
                return given

            return go

        return around

    def saved(self, path: str, content: str, whole: bool) -> None:
        """A file was saved; `whole` if training could go on from it."""
        self.known.add(path)
        self._content[path] = content
        (self._whole.add if whole else self._whole.discard)(path)

    def others(self, path: str) -> int:
        """How many other whole checkpoints of this run there are now."""
        return sum(one != path and os.path.exists(one) for one in self._whole)

    def _goes(self, src: Any, dst: Any, keeps: bool, where: str) -> None:
        if isinstance(src, int) or isinstance(dst, int):
            return
        old, new = os.path.realpath(os.fspath(src)), os.path.realpath(os.fspath(dst))
        for path in [path for path in self._content if path == old or path.startswith(old + os.sep)]:
            to = new + path[len(old) :]
            self.saved(to, self._content[path], path in self._whole)
            self._moved(to, self._content[to], where)
            if not keeps:
                self._whole.discard(path)
                del self._content[path]
