"""Where ranks stand that are ended, written into their records for the detectors."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ..ranks.stacks import is_program
from ..record.probe import Probe
from ..record.where import short_path
from ..watch.outside.collectives import last_call

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
_WAITING = ("wait", "synchronize", "monitored_barrier", "barrier", "_run_backward", "run_backward")


def note(folder: Path, rank: int, world_size: int, dump: str) -> None:
    """Write where a rank stood that was ended: an event `stood_still` at the end of its file.

    Args:
        dump: of its threads, as faulthandler writes it.
    """
    path = folder / f"rank-{rank:05d}.jsonl"
    function, where = standing(dump)
    last = last_call(path.with_suffix(".call"))
    inside = last is not None and not last[3]
    in_backward = function in ("run_backward", "_run_backward", "_engine_run_backward")
    fields: dict[str, str | int | bool] = {
        "waits_in": last[1] if last is not None and inside else ("backward" if in_backward else function),
        "where": (last[2] if last is not None and inside else where) or where,
        "in_collective": inside or in_backward,
        "number": last[0] if last is not None else 0,
    }
    if not path.exists() or not path.stat().st_size:
        probe = Probe(path, rank=rank, local_rank=rank, world_size=world_size)
        probe.event("stood_still", **fields)
        probe.close(finished=False)
        return
    line = {"kind": "event", "name": "stood_still", "step": -1, "time_ns": 0, "fields": fields}
    with path.open("rb+") as file:
        _drop_half_a_line(file)
        file.write(msgspec.json.encode(line) + b"\n")


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


def standing(dump: str) -> tuple[str, str]:
    """(function, file:line) of the main thread: what the script called there, and the script's own line."""
    blocks = re.split(r"(?m)^(?=Current thread |Thread 0x)", dump)
    main = next((block for block in blocks if "doctor/rank.py" in block), "")
    frames = [match for line in main.splitlines() if (match := _FRAME.match(line))]
    own = next((at for at, frame in enumerate(frames) if _is_script(frame["file"])), None)
    if own is None:
        return (frames[0]["function"] if frames else ""), ""
    called = [frame["function"] for frame in frames[:own] if frame["function"] not in _OWN_CALLS]
    where = f"{short_path(frames[own]['file'])}:{frames[own]['line']}"
    return (called[-1] if called else frames[own]["function"]), where


def _is_script(file: str) -> bool:
    return is_program(file) and "/labkit/" not in file
