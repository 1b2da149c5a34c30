"""What a program saves and loads: how long training stands still for it, how large it is, which states came back.

Steps are steps that are done: a save after step number 9 holds 10.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..record.probe import Probe

SAVED, RESUMED = "saved", "resumed"


def tell_save(probe: Probe, step: int, path: Path | str, **known: Any) -> None:
    """Record a save that is complete. *Called on* each rank that saves. Written: the event save.

    Args:
        step: steps that it holds.
        known: what: which state it holds; stall_s: seconds that training stood still; write_s: until it was complete;
            bytes: of all ranks' files together; alone: whether this rank saves without the others; digest: of what it
            holds.
    """
    probe.event("save", of_step=step, path=str(path), **known)


def tell_failed_save(probe: Probe, step: int, error: BaseException) -> None:
    """Record a save that failed, where training goes on. Written: the event save_failed; of step -1 if not known which."""
    probe.event("save_failed", of_step=step, error=str(error))


def tell_load(probe: Probe, step: int, path: Path | str | None, seconds: float, **known: Any) -> None:
    """Record what a start found; step 0 and no path if there was nothing. *Called on* every rank. Written: the event load.

    Args:
        known: had: steps that this rank's own disk held; digest: of what was loaded; refused: newer ones that could not
            be used.
    """
    probe.event("load", of_step=step, path=str(path or ""), load_s=seconds, **known)


def tell_state(probe: Probe, when: str, step: int, hashes: Mapping[str, str]) -> None:
    """Record a hash of each state of a training. *Called on* every rank, as it saves and once it has resumed.

    Written: the event state. A state whose hash after a resume is another than when it was saved did not come back.

    Args:
        when: "saved" or "resumed".
        hashes: by names of your own, such as model, optimizer, scheduler, rng.
    """
    probe.event("state", when=when, of_step=step, **hashes)


@contextmanager
def watch_save(probe: Probe, step: int, path: Path | str, *, what: str = "full", alone: bool = False) -> Iterator[None]:
    """Time a save that training waits for, and record it once it is complete. *Called on* each rank that saves.

    Written: the event save; save_failed if it raises, and the error goes on.

    Args:
        step: steps that it holds.
        path: the file or folder that it makes; its bytes are counted afterwards.
        what: which state it holds.
        alone: whether this rank saves without the others.
    """
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        tell_failed_save(probe, step, error)
        raise
    took = time.monotonic() - began
    tell_save(probe, step, path, what=what, stall_s=took, write_s=took, bytes=bytes_of(Path(path)), alone=alone)


@dataclass
class Found:
    """What a load found. Set `step` to the steps that it holds; 0 stays where there is nothing."""

    step: int = 0


@contextmanager
def watch_load(probe: Probe, path: Path | str | None) -> Iterator[Found]:
    """Time a load, and record what it found. *Called on* every rank, at the start.

    Written: the event load, with the `step` that the block sets.
    """
    began, found = time.monotonic(), Found()
    yield found
    tell_load(probe, found.step, path if found.step else None, time.monotonic() - began)


def bytes_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; 0 where there is none."""
    if path.is_dir():
        return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
    return path.stat().st_size if path.exists() else 0
