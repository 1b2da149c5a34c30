"""Put the files of ranks that a script started by itself in the order of the ranks, once all have ended."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ..record.schema import Head
from ..watch.outside.attach import LAST_CALL
from . import stands
from .children import PLACE, STACK
from .launch import Ended, RankEnd


@dataclass(frozen=True)
class _Part:
    """What one process wrote: as which rank of how many."""

    path: Path
    rank: int
    world_size: int


def _of_children(folder: Path) -> list[_Part]:
    """The processes of the script's own, the first to join a group first."""
    said = {path: [int(word) for word in path.read_text().split()] for path in folder.glob("child-*" + PLACE)}
    ordered = sorted(said.items(), key=lambda item: item[1][2])
    return [_Part(path.with_suffix(".jsonl"), rank, world_size) for path, (rank, world_size, _) in ordered]


def _of_the_doctors(path: Path) -> _Part:
    with path.open("rb") as file:
        head = msgspec.json.decode(file.readline(), type=Head)
    return _Part(path, head.rank, head.world_size)


def gathered(folder: Path, ended: Ended) -> Ended:
    """Give the files of the script's own ranks the names of ranks' files. *Called on* the parent, once all have ended.

    Args:
        ended: how the processes ended that the doctor started.

    Returns:
        How the ranks of the record ended: each as the process did that started it. The same as before where the script
        started no ranks.
    """
    children = _of_children(folder)
    if not children:
        return ended
    mains = [folder / f"rank-{one.rank:05d}.jsonl" for one in ended.ranks]
    candidates = [_of_the_doctors(path) for path in mains if _trained(path)]
    candidates += [part for part in children if _trained(part.path)] or children
    world_size = candidates[0].world_size
    parts: dict[int, Path] = {}
    for part in candidates:
        if part.world_size == world_size:
            parts.setdefault(part.rank, part.path)
    for path in mains:
        if path not in parts.values():
            path.unlink(missing_ok=True)
    moved = {rank: _move(path, folder / f"own-{rank:05d}.jsonl") for rank, path in parts.items()}
    for rank, path in moved.items():
        _move(path, folder / f"rank-{rank:05d}.jsonl")
    ranks = [_end_of(rank, folder, ended.ranks[0]) for rank in range(world_size)]
    for one in ranks if ended.stood_still else ():
        stands.note(folder, one.rank, world_size, one.stack)
    return replace(ended, ranks=ranks)


def _end_of(rank: int, folder: Path, parent: RankEnd) -> RankEnd:
    stack = folder / f"rank-{rank:05d}{STACK}"
    return replace(parent, rank=rank, stack=stack.read_text(errors="replace") if stack.exists() else parent.stack)


def _move(path: Path, to: Path) -> Path:
    for suffix in (LAST_CALL, STACK, PLACE, ".npz"):
        with contextlib.suppress(FileNotFoundError):
            path.with_suffix(suffix).replace(to.with_suffix(suffix))
    return path.replace(to)


def _trained(path: Path) -> bool:
    """Whether the process that wrote a file made a step."""
    try:
        with path.open("rb") as file:
            return any(line.startswith(b'{"kind":"step"') for line in file)
    except OSError:
        return False
