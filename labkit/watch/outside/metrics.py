"""Small tensors that a script reduces over ranks while it evaluates: what a metric is made of.

Only what the script reduces by itself: libraries know how many samples a rank evaluated, and see to it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from ...record.probe import Probe
from .batch_means import BatchMeans
from .divisions import is_averaged
from .patches import Patches, called_from, called_through, is_library, is_own

FEW = 16
"""Elements up to which a tensor is taken for numbers of a metric."""

MOST = 400
"""Reductions that are noted, at most."""

GIVEN = {
    "all_reduce": (0, "tensor"),
    "reduce": (0, "tensor"),
    "all_gather": (1, "tensor"),
    "all_gather_into_tensor": (1, "input_tensor"),
    "gather": (0, "tensor"),
    "all_gather_object": (1, "obj"),
    "gather_object": (0, "obj"),
}
"""Operation -> where among its arguments a rank's own part is."""


class Metrics:
    """What the script reduces outside of its steps. *Called on* each rank; no collective is made.

    Args:
        probe: this rank's.
        evaluated: says how many samples this rank evaluated since its last update.
        updates: says how many updates were made.
        updated: says whether the step that is open has made its update.
    """

    def __init__(
        self, probe: Probe, evaluated: Callable[[], int], updates: Callable[[], int], updated: Callable[[], bool]
    ) -> None:
        self._probe, self._evaluated, self._updates, self._updated = probe, evaluated, updates, updated
        self.batches = BatchMeans(probe)
        self._last: dict[int, tuple[weakref.ref[Any], list[float], int]] = {}
        self._noted = 0

    def attach(self, patches: Patches) -> None:
        """Watch from now on; before what watches all collectives is attached, which then calls what is put here."""
        import torch.distributed as dist
        from torch.distributed import distributed_c10d

        self.batches.attach(patches)
        if not dist.is_available():
            return
        for name in GIVEN:
            original = getattr(distributed_c10d, name, None)
            if original is None:
                continue
            patches.wrap(distributed_c10d, name, self._around(name, patches))
            if getattr(dist, name, None) is original:
                patches.put(dist, name, getattr(distributed_c10d, name))

    def _around(self, name: str, patches: Patches) -> Any:
        from torch.compiler import is_compiling

        before, after = patches.noting(self._before), patches.noting(self._after)

        def around(original):
            def collective(*args, **kwargs):
                if is_compiling():
                    return original(*args, **kwargs)
                before(name, args, kwargs)
                given = original(*args, **kwargs)
                after(name, args, kwargs)
                return given

            return collective

        return around

    def _before(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        at, key = GIVEN[name]
        given = args[at] if len(args) > at else kwargs.get(key)
        op = str(kwargs.get("op", args[1] if name == "all_reduce" and len(args) > 1 else "")).rpartition(".")[2] or "SUM"
        if self._noted >= MOST or not _by_script():
            return
        values = _numbers(given)
        if name == "all_reduce" and op == "SUM" and values and not kwargs.get("async_op"):
            self._again(given, values)
        of_loader = self._evaluated()
        rows = of_loader or self.batches.rows
        # without a loader an evaluation is no end of the step before it
        within = self._probe.in_step and (of_loader or not self._updated())
        if within or not rows or called_through(3):
            return
        self._noted += 1
        self.batches.kept(values or ())
        where = called_from(3)
        self._probe.event(
            "reduced",
            operation=name,
            op=op if "reduce" in name else "",
            values=" ".join(repr(value) for value in values or ()),
            elements=int(getattr(given, "numel", lambda: len(values or ()))()),
            rows=rows,
            by_hand=not of_loader,
            updates=self._updates(),
            averaged=op == "AVG" or is_averaged(*_frame()),
            where=where,
        )

    def _again(self, tensor: Any, values: list[float]) -> None:
        """A sum over ranks is summed over ranks again, with what was added to it since."""
        known = self._last.get(id(tensor))
        if known is None or known[0]() is not tensor:
            return
        grows = any(value > 0 for value in known[1]) and all(a >= b for a, b in zip(values, known[1], strict=True))
        times = known[2] + 1 if grows else 0
        self._last[id(tensor)] = (known[0], known[1], times)
        if times == 3:
            self._probe.event("reduced_again", where=called_from(4))

    def _after(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name != "all_reduce" or kwargs.get("async_op"):
            return
        tensor = args[0] if args else kwargs.get("tensor")
        values = _numbers(tensor) if _is_tensor(tensor) else None
        if values is None:
            return
        known = self._last.get(id(tensor))
        times = known[2] if known is not None and known[0]() is tensor else 0
        if len(self._last) > FEW:
            self._last.clear()
        self._last[id(tensor)] = (weakref.ref(tensor), values, times)


def _by_script() -> bool:
    """Whether the script itself calls a collective, or a library for it: not one within another, or within a pass."""
    frame: Any = sys._getframe(4)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and not is_library(frame.f_code.co_filename)


def _frame() -> tuple[str, int]:
    """File and line of the script's own call."""
    frame: Any = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def _is_tensor(one: Any) -> bool:
    import torch

    return type(one) is torch.Tensor and one.device.type == "cpu"


def _numbers(given: Any) -> list[float] | None:
    """The numbers that a rank gives to a reduction; None where it gives more than a metric has, or no numbers."""
    if _is_tensor(given):
        if given.numel() > FEW or given.is_complex():
            return None
        return [float(value) for value in given.detach().reshape(-1).tolist()]
    if isinstance(given, (int, float)):
        return [float(given)]
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)) and len(given) <= FEW and all(isinstance(one, (int, float)) for one in given):
        return [float(one) for one in given]
    return None
