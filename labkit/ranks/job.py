"""What a launch hands to each of its ranks, and the names of the files that they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .backend import Placement
from .data_store import DataStoreAddress
from .faults import Fault
from .hosts import Seats


@dataclass(frozen=True)
class Job:
    """All that a rank needs to know, as plain data.

    Attributes:
        program: cloudpickle of (function, config).
        origin: the file in which the program was written, to name it in errors.
        folder: where ranks write.
        world_size: number of ranks of this launch.
        placement: backend and device.
        threads: intra-op threads of each rank.
        seed: handed to the program.
        deadline_s: after which the launcher ends the run; collectives wait longer, so that stacks are taken first.
        faults: planned faults.
        group: whether to join a process group (False for one-process references).
        seats: the hosts that the ranks sit on; None for the machine itself.
        data_store: where the store is that the ranks read from; None for none.
        env: the launching process's environment: the warm server's is as old as the server.
    """

    program: bytes
    origin: str
    folder: Path
    world_size: int
    placement: Placement
    threads: int
    seed: int
    deadline_s: float
    faults: tuple[Fault, ...] = ()
    group: bool = True
    seats: Seats | None = None
    data_store: DataStoreAddress | None = None
    env: dict[str, str] = field(default_factory=dict)


def board_file(folder: Path) -> Path:
    """The shared progress, while a run lasts."""
    return folder / "board"


def error_file(folder: Path, rank: int, attempt: int) -> Path:
    """Where a rank leaves what it raised."""
    return folder / f"rank-{rank:05d}.attempt{attempt}.error.json"


def stack_file(folder: Path, rank: int) -> Path:
    """Where a rank's stacks are dumped on SIGUSR1."""
    return folder / f"rank-{rank:05d}.stack"


def output_file(folder: Path, rank: int) -> Path:
    """Where a rank's standard output and error go."""
    return folder / f"rank-{rank:05d}.out"


def value_file(folder: Path, rank: int, attempt: int) -> Path:
    """Where a rank leaves what its program returned, while a run lasts.

    A file, and not the agent's queue: a rank that died while it wrote to the queue would block its reader for ever.
    """
    return folder / f"value-{rank:05d}.attempt{attempt}"
