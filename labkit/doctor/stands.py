"""Where ranks stand that are ended, written into their records for the detectors."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import msgspec

from ..ranks.stacks import is_program
from ..record.probe import Probe
from ..record.where import short_path
from ..watch.outside.collectives import last_calls
from ..watch.outside.ends import waits_in

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_OWN_CALLS = (
    "wrapper",
    "_call_impl",
    "_wrapped_call_impl",
    "inner",
    "decorate_context",
    "__call__",
    "collective",
    "backward",
)


def note(folder: Path, rank: int, world_size: int, dump: str) -> None:
    """Write where a rank stood that was ended: an event `stood_still` at the end of its file.

    Args:
        dump: of its threads, as faulthandler writes it.
    """
    path = folder / f"rank-{rank:05d}.jsonl"
    _write(path, rank, world_size, fields_of(dump, path.with_suffix(".call")))


def note_death(folder: Path, rank: int, world_size: int, signal_number: int) -> None:
    """Write where a rank was whose process a signal ended: an event `stood_still` that names it."""
    path = folder / f"rank-{rank:05d}.jsonl"
    try:
        name = signal.Signals(signal_number).name
    except ValueError:
        name = f"signal {signal_number}"
    _write(path, rank, world_size, {**fields_of("", path.with_suffix(".call")), "died_of": name})


def _write(path: Path, rank: int, world_size: int, fields: dict[str, str | int | bool]) -> None:
    if not path.exists() or not path.stat().st_size:
        probe = Probe(path, rank=rank, local_rank=rank, world_size=world_size)
        probe.event("stood_still", **fields)
        probe.close(finished=False)
        return
    line = {"kind": "event", "name": "stood_still", "step": -1, "time_ns": 0, "fields": fields}
    with path.open("rb+") as file:
        _drop_half_a_line(file)
        if _is_closed(file):
            return  # its script had ended: it stood nowhere
        file.write(msgspec.json.encode(line) + b"\n")


def fields_of(dump: str, board: Path) -> dict[str, str | int | bool]:
    """Where a rank stood, as the event says it: by its stack, and by the board of its last collectives."""
    functions, where = standing(dump)
    calls = last_calls(board)
    waits = waits_in(functions)
    if not waits and len(functions) < 2 and calls and calls[-1][3] == "started":
        waits, where = f"wait() for {calls[-1][1]}", where or calls[-1][2]
    fields: dict[str, str | int | bool] = {
        "waits_in": waits or (functions[-1] if functions else ""),
        "where": where,
        "in_collective": bool(waits),
        "number": calls[-1][0] if calls else 0,
        "given": "",
    }
    if calls and calls[-1][3] == "in it":
        _, operation, line, _, given = calls[-1]
        fields |= {"waits_in": operation, "where": line or where, "in_collective": True, "given": given}
    return fields


def _drop_half_a_line(file) -> None:
    """Go to the end of the last whole line: a rank may have been ended while it wrote."""
    file.seek(0, 2)
    size = file.tell()
    at = size
    while at > 0:
        start = max(0, at - 65536)
        file.seek(start)
        end = file.read(at - start).rfind(b"\n")
        if end >= 0:
            file.truncate(start + end + 1)
            file.seek(start + end + 1)
            return
        at = start
    file.truncate(0)
    file.seek(0)


def _is_closed(file) -> bool:
    """Whether the last line is the mark with which a record ends. The file is at its end, and stays there."""
    size = file.tell()
    file.seek(max(0, size - 256))
    last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    return last.startswith(b'{"kind":"end"')


def standing(dump: str) -> tuple[list[str], str]:
    """(functions, file:line) of the main thread: what the script called there and its own function, the innermost first, and
    the script's line."""
    blocks = re.split(r"(?m)^(?=Current thread |Thread 0x)", dump)
    main = next((block for block in blocks if "doctor/rank.py" in block), blocks[-1])  # a rank of the script's own: the last
    frames = [match for line in main.splitlines() if (match := _FRAME.match(line))]
    own = next((at for at, frame in enumerate(frames) if _is_script(frame["file"])), None)
    if own is None:
        return ([frames[0]["function"]] if frames else []), ""
    called = [frame["function"] for frame in frames[:own] if frame["function"] not in _OWN_CALLS]
    where = f"{short_path(frames[own]['file'])}:{frames[own]['line']}"
    return [*called, *([] if called else [frames[own]["function"]])], where


def _is_script(file: str) -> bool:
    return is_program(file) and "/labkit/" not in file
