"""Files of safetensors: mappings from names to tensors, written and read by functions that torch does not know."""

from __future__ import annotations

from typing import Any

from .loads import Loads
from .patches import Patches
from .saves import Saves


class SafetensorsFiles:
    """`safetensors.torch.save_file` and `load_file`, which its other functions call. *Called on* each rank.

    Args:
        saves, loads: who notes what is saved and loaded.
    """

    def __init__(self, saves: Saves, loads: Loads) -> None:
        self._saves, self._loads = saves, loads

    def attach(self, patches: Patches) -> None:
        """Watch from now on. Until a script imports it, nothing is replaced; labkit does not need it."""

        def watch(module: Any) -> None:
            patches.wrap(module, "save_file", self._by_name(self._saves.around(patches), ("tensors", "filename")))
            patches.wrap(module, "load_file", self._by_name(self._loads.around(patches), ("filename",)))

        patches.when_imported("safetensors.torch", watch)

    def _by_name(self, around: Any, names: tuple[str, ...]) -> Any:
        """`around`, for a function that may be given its first arguments by these names."""

        def named(original):
            watched = around(original)

            def call(*args, **kwargs):
                missing = [name for name in names[len(args) :] if name in kwargs]
                first = [kwargs.pop(name) for name in missing]
                return watched(*args, *first, **kwargs)

            return call

        return named
