"""Collectives that a script calls by itself: which, where from, how long, and which one each rank is in.

The last calls of each rank stand in a small file that is mapped into memory, so that it can be read of a rank that hangs.
"""

from __future__ import annotations

import mmap
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

from ...record.probe import Probe
from .patches import Patches, called_from, is_library, is_own

_now = time.monotonic_ns

OPERATIONS = (
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "broadcast",
    "broadcast_object_list",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_coalesced",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    "send",
    "recv",
    "isend",
    "irecv",
    "batch_isend_irecv",
)
BARRIERS = ("barrier", "monitored_barrier")
TO_ONE = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
SAME_SIZE = ("all_reduce", "reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor", "all_gather")
"""Operations to which every rank of a group gives a tensor of one size and type."""

_INPUT_SECOND = ("all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "all_to_all_single")
_SHARDING = ("/torch/distributed/fsdp/", "/torch/distributed/optim/", "/torch/distributed/checkpoint/")

BOARD_BYTES, CALLS = 4096, 6
"""Size of the file, and the calls in it."""


def last_calls(path: Path) -> list[tuple[int, str, str, str, str]]:
    """(number, operation, where from, state, what was given) of a rank's last calls, in order. The state is "in it",
    "returned", or "started" where it goes on in the background."""
    try:
        lines = path.read_bytes().rstrip(b"\0").decode(errors="replace").splitlines()
        words = [line.split("\t") for line in lines]
        return [(int(word[0]), word[1], word[2], word[3], word[4]) for word in words if len(word) == 5]
    except (OSError, ValueError):
        return []


class Collectives:
    """The collectives that the script calls. *Called on* each rank.

    Args:
        probe: this rank's.
        board: the file for the last calls.
        leaving: called as the script tears its process groups down.
        phase: says whether a forward or backward pass is under way.
        exchanged: called with the elements of each call, when it has returned.
    """

    def __init__(
        self,
        probe: Probe,
        board: Path,
        leaving: Callable[[], Any],
        phase: Callable[[], str] = lambda: "",
        exchanged: Callable[[int], None] = lambda elements: None,
    ) -> None:
        self._probe, self._leaving, self._phase, self._exchanged = probe, leaving, phase, exchanged
        self.number = 0
        with board.open("wb+") as file:
            file.truncate(BOARD_BYTES)
            self._board = mmap.mmap(file.fileno(), BOARD_BYTES)
        self._calls: deque[str] = deque(maxlen=CALLS)
        self._barrier_told = False
        self._inside = False
        self.begun: Callable[..., None] = lambda *_: None
        """Called with what a collective gives back, its name, what it was given, and where it was called."""
        self.opens: Callable[[], None] = lambda: None
        """Called as one begins: it is to be counted in a step."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch.distributed as dist

        if not dist.is_available():
            return
        self._exchanged = patches.noting(self._exchanged)
        for name in OPERATIONS:
            _wrap(patches, name, self._around(name, patches))
        leaving = patches.noting(self._leaving)

        def around(original):
            def destroy_process_group(*args, **kwargs):
                leaving()
                return original(*args, **kwargs)

            return destroy_process_group

        _wrap(patches, "destroy_process_group", around)

    def _around(self, name: str, patches: Patches) -> Any:
        from torch.compiler import is_compiling

        watch, begun = self, patches.noting(lambda *of: self.begun(*of))

        def around(original):
            def collective(*args, **kwargs):
                if is_compiling():
                    return original(*args, **kwargs)
                # a collective that another one is made of, or that labkit makes, is not the script's
                caller = sys._getframe(1).f_code.co_filename
                if watch._inside or is_own(caller):
                    return original(*args, **kwargs)
                where, start = called_from(), _now()
                call = Call(name, args, kwargs, any(part in caller for part in _SHARDING))
                call.by_script = not is_library(caller)
                watch._begin(call, where)
                watch._inside = True
                try:
                    given = original(*args, **kwargs)
                finally:
                    watch._inside = False
                begun(given, name, args, kwargs, where)
                watch._end(call, where, start)
                return given

            return collective

        return around

    def _begin(self, call: Call, where: str) -> None:
        self.opens()
        self.number += 1
        self._calls.append(f"{self.number}\t{call.name}\t{where}\tin it\t{call.said}")
        self._write()

    def _end(self, call: Call, where: str, start: int) -> None:
        state = "started" if call.in_background else "returned"
        self._calls[-1] = f"{self.number}\t{call.name}\t{where}\t{state}\t{call.said}"
        self._write()
        probe = self._probe
        if probe.in_step:
            probe.count("script_collectives")
            if call.elements and not call.shards:
                probe.count("exchanged_elements", call.elements)
                if self._phase() == "forward":
                    probe.count("exchanged_in_forward", call.elements)
            if call.signature:
                probe.series("collective_calls", [call.signature])
            if call.name in BARRIERS and call.by_script:
                probe.count("barriers")
            if not call.in_background:
                probe.add_span(
                    "barrier" if call.name in BARRIERS and call.by_script else "collective", "comm", start, _now()
                )
        if call.name in BARRIERS and call.by_script and not self._barrier_told and probe.in_step:
            self._barrier_told = True
            probe.event("barrier_in_step", where=where)
        if not call.shards:
            self._exchanged(call.elements)

    def _write(self) -> None:
        lines = list(self._calls)
        said = "\n".join(lines).encode()
        while len(said) > BOARD_BYTES and len(lines) > 1:
            del lines[0]
            said = "\n".join(lines).encode()
        self._board[:] = said[:BOARD_BYTES].ljust(BOARD_BYTES, b"\0")


class Call:
    """One call of a collective.

    Attributes:
        name: of the operation.
        shards: whether a library calls it that shards a model.
        elements: of the tensors that this rank gives; 0 where there are none, or they are objects.
        said: type, size and partner, in a few words.
        signature: a hash of what all ranks of the world must give alike; 0 where ranks may differ.
        by_script: whether the script's own code calls it, and no library does for it.
        in_background: whether it returns before it is done.
    """

    __slots__ = ("by_script", "elements", "in_background", "name", "said", "shards", "signature")

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], shards: bool) -> None:
        self.name, self.shards, self.by_script = name, shards, True
        self.in_background = bool(kwargs.get("async_op", False)) or name in ("isend", "irecv", "batch_isend_irecv")
        tensors = _tensors(name, args, kwargs)
        self.elements = sum(tensor.numel() for tensor in tensors)
        kinds = "+".join(dict.fromkeys(str(tensor.dtype).removeprefix("torch.") for tensor in tensors))
        peers = [f"{word} {kwargs[word]}" for word in ("src", "dst") if kwargs.get(word) is not None]
        if name in ("broadcast", "send", "isend", "recv", "irecv", "reduce") and len(args) > 1 and isinstance(args[1], int):
            peers.append(f"{'dst' if name in ('send', 'isend', 'reduce') else 'src'} {args[1]}")
        self.said = " ".join(filter(None, [kinds, f"[{self.elements}]" if tensors else "", *peers]))
        self.signature = 0
        if not shards and name not in TO_ONE and kwargs.get("group") is None and not _has_group(name, args):
            whole = f"{name} {self.said}" if name in SAME_SIZE else name
            self.signature = xxhash.xxh3_64_intdigest(whole.encode()) >> 33


def _tensors(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors that a rank gives to a collective."""
    import torch

    at = 1 if name in _INPUT_SECOND else 0
    named = next((kwargs[key] for key in ("input", "input_tensor", "tensor") if key in kwargs), None)
    given = args[at] if len(args) > at else named
    if name == "all_to_all":
        given = args[1] if len(args) > 1 else kwargs.get("input_tensor_list")
    several = [getattr(one, "tensor", one) for one in (given if isinstance(given, (list, tuple)) else [given])]
    return [tensor for tensor in several if isinstance(tensor, torch.Tensor)]


def _has_group(name: str, args: tuple[Any, ...]) -> bool:
    import torch.distributed as dist

    return any(isinstance(one, dist.ProcessGroup) for one in args[1:])


def _wrap(patches: Patches, name: str, around: Any) -> None:
    """Wrap a function under both names that it has."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    original = getattr(distributed_c10d, name, None)
    if original is not None:
        patches.wrap(distributed_c10d, name, around)
        if getattr(dist, name, None) is original:
            patches.put(dist, name, getattr(distributed_c10d, name))
