"""The doctor inside a program: a block of a notebook's cell, or of a script, is watched and then asked.

Under a launcher each rank watches itself, and rank 0 asks once all have left the block.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from ..ranks.join import Place, outer_place
from ..ranks.load import LoadWatch
from ..record.probe import Probe
from ..record.roles import Role
from ..record.store import new_folder
from ..watch.outside.attach import Attached
from ..watch.outside.steps import EnoughSteps
from . import outer
from .diagnosis import Diagnosis, kept
from .launch import threads_of_a_rank
from .rank import note_end

_watching: list[object] = []
_blocks = itertools.count()


@dataclass
class Watched:
    """A block that is watched; asked once it is over.

    Attributes:
        diagnosis: what is to be said of the block; None while it runs, and on ranks other than 0.
    """

    rank: int = 0
    _diagnosis: list[Diagnosis] = field(default_factory=list)
    _over: bool = False

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What is to be said of the block; None while it runs, and on ranks other than 0."""
        return self._diagnosis[0] if self._diagnosis else None

    def _repr_html_(self) -> str:
        from ..showing import as_html

        return as_html(self.diagnosis) if self.diagnosis is not None else f"<div>{self!r}</div>"

    def __repr__(self) -> str:
        if self.diagnosis is not None:
            return repr(self.diagnosis)
        return f"rank {self.rank} was watched; rank 0 has the diagnosis" if self._over else "still watching"


@contextlib.contextmanager
def watch(*, record: Path | str | None = None, steps: int | None = None) -> Iterator[Watched]:
    """Watch what a block trains in this process: `with labkit.doctor.watch() as seen: train()`, then `seen.diagnosis`.

    *Called on* one process, or on every rank under torchrun, accelerate launch or mpirun on one machine. Models, optimizers
    and loaders may be made before the block; what is made within it is seen from its making on, and DDP modules are
    seen in full only where they are wrapped within it.

    Collectives: none. Ranks leave their files in one folder; rank 0 waits for the others to leave the block, half a minute
    at most.

    Args:
        record: a new folder for the record, the same on all ranks; None keeps it in the cache.
        steps: of the optimizer after which the block ends; None lets it run.

    Raises:
        UsageError: within another such block.
        BaseException: whatever the block raises.
    """
    if _watching:
        raise UsageError("watch() within watch(): one block is watched already; leave the inner one out")
    place = _place()
    folder = _folder(record, place)
    own = folder / str(Role.VARIANT)
    own.mkdir(parents=True, exist_ok=True)
    seen, begin, load = Watched(place.rank), time.monotonic(), LoadWatch()
    path = own / f"rank-{place.rank:05d}.jsonl"
    probe = Probe(path, rank=place.rank, local_rank=place.local_rank, world_size=place.world_size)
    attached = Attached(probe, steps)
    _watching.append(seen)
    end, code = "finished", 0
    with outer.in_order() if place.world_size > 1 else contextlib.nullcontext(outer.Told()) as told:
        try:
            yield seen
        except EnoughSteps:
            end = "enough"
        except BaseException as error:
            end, code = f"raised {type(error).__name__}", 1
            with contextlib.suppress(Exception):
                attached.raised(error)
            raise
        finally:
            _watching.clear()
            attached.close(finished=not code)
            note_end(own, place.rank, end, code)
            seen._over = True
            if place.rank == 0:
                seen._diagnosis += _asked(folder, place.world_size, begin, told, load)


def _asked(folder: Path, world_size: int, begin: float, told: outer.Told, load: LoadWatch) -> list[Diagnosis]:
    """The diagnosis on rank 0, from what all ranks wrote."""
    ended = outer.ended(folder / str(Role.VARIANT), world_size, begin, told)
    busy = load.ended(wanted=world_size * threads_of_a_rank(world_size))
    return [Diagnosis(("this block",), ended, kept(folder, "block", ended, busy))]


def _folder(record: Path | str | None, place: Place) -> Path:
    """A new folder, which all ranks find by themselves."""
    number = next(_blocks)
    if place.world_size == 1:
        return new_folder(record, "doctor-block")
    return Path(record) if record is not None else outer.folder_of_launch(f"block-{number}")


def _place() -> Place:
    """This process's place among the ranks: of the process group where it has joined one, else as a launcher says."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        rank, world_size = dist.get_rank(), dist.get_world_size()
        return Place(rank, int(os.environ.get("LOCAL_RANK") or rank), world_size, world_size)
    return outer_place() or Place(0, 0, 1, 1)
