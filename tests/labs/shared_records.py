"""Records that several tests judge are made once a session, whichever worker comes first, and read by the others.

A record is found again by what it was made from: the lab, the variant, its whole configuration, how it was launched, and
the source of the package.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

import labkit
from labkit.record.schema import Record
from labkit.record.store import read_record

LAUNCH = ("ranks", "seed", "device", "hosts", "link", "latency_ms", "emulate_link")
"""What of a launch changes its record; a deadline does not."""

ALONE = ("faults", "control", "on_progress", "record_dir", "backend")
"""What sets a record apart: such a one is made for who asks."""


@functools.cache
def source_hash() -> str:
    """A hash of every module of the package."""
    package = Path(labkit.__file__).parent
    said = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        said.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return said.hexdigest()


def key_of(lab: labkit.Lab, variant: str | None, how: dict[str, Any]) -> str:
    """The name under which a record is shared."""
    spec = lab.spec
    chosen = spec.chosen(variant)
    launch = {name: how.get(name) for name in LAUNCH}
    launch |= {"ranks": launch["ranks"] or spec.ranks, "seed": launch["seed"] or 0}
    settings = {name: value for name, value in how.items() if name not in (*LAUNCH, "deadline_s") and value is not None}
    config = dataclasses.asdict(spec.configure(chosen, settings))
    threads = os.environ.get("OMP_NUM_THREADS")
    told = msgspec.json.encode([spec.slug, chosen.name, config, launch, threads, source_hash()], order="sorted")
    return f"{spec.slug}-{chosen.name}-{hashlib.sha256(told).hexdigest()[:16]}"


def can_be_shared(variant: Any, how: dict[str, Any]) -> bool:
    return not callable(variant) and not any(how.get(name) for name in ALONE)


def shared_record(root: Path, lab: labkit.Lab, variant: str | None, how: dict[str, Any], **watching: Any) -> Record:
    """The record of a variant, made with `how` unless a worker of this session has made it already.

    Args:
        watching: what looks on while it is made, and changes nothing of it (`on_progress`).

    Raises:
        Whatever `Lab.run` raises; then nothing is kept.
    """
    folder = root / key_of(lab, variant, how)
    with FileLock(folder.with_suffix(".lock"), timeout=600):
        if folder.exists():
            return read_record(folder)
        making = folder.with_suffix(f".{os.getpid()}")
        shutil.rmtree(making, ignore_errors=True)  # of a run that failed
        lab.run(variant, **how, **watching, record_dir=making)
        making.rename(folder)
        return read_record(folder)
