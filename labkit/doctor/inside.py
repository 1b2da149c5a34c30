"""The doctor inside a program: a block of a notebook's cell, or of a script, is watched and then asked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from ..ranks.join import outer_place
from ..ranks.load import LoadWatch
from ..record.probe import Probe
from ..record.roles import Role
from ..record.store import new_folder
from ..watch.outside.attach import Attached
from ..watch.outside.steps import EnoughSteps
from .diagnosis import Diagnosis, kept
from .launch import Ended, RankEnd, threads_of_a_rank

_watching: list[object] = []


@dataclass
class Watched:
    """A block that is watched; asked once it is over.

    Attributes:
        diagnosis: what is to be said of the block; None while it runs.
    """

    _diagnosis: list[Diagnosis] = field(default_factory=list)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What is to be said of the block; None while it runs."""
        return self._diagnosis[0] if self._diagnosis else None

    def _repr_html_(self) -> str:
        from ..showing import as_html

        return as_html(self.diagnosis) if self.diagnosis is not None else "<div>still watching</div>"

    def __repr__(self) -> str:
        return repr(self.diagnosis) if self.diagnosis is not None else "still watching"


@contextlib.contextmanager
def watch(*, record: Path | str | None = None, steps: int | None = None) -> Iterator[Watched]:
    """Watch what a block trains in this process: `with labkit.doctor.watch() as seen: train()`, then `seen.diagnosis`.

    *Called on* one process. Models, optimizers and loaders may be made before the block; what is made within it is seen
    from its making on. For several ranks, start the script under torchrun with `-m labkit doctor`.

    Args:
        record: a new folder for the record; None keeps it in the cache.
        steps: of the optimizer after which the block ends; None lets it run.

    Raises:
        UsageError: under torchrun, or within another such block.
        BaseException: whatever the block raises.
    """
    if outer_place() is not None:
        raise UsageError("watch() sees one process; under torchrun start the script so: torchrun … -m labkit doctor SCRIPT")
    if _watching:
        raise UsageError("watch() within watch(): one block is watched already; leave the inner one out")
    folder = new_folder(record, "doctor-block")
    own = folder / str(Role.VARIANT)
    own.mkdir(parents=True, exist_ok=True)
    seen, begin, load = Watched(), time.monotonic(), LoadWatch()
    attached = Attached(Probe(own / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1), steps)
    _watching.append(seen)
    end, code = "finished", 0
    try:
        yield seen
    except EnoughSteps:
        end = "enough"
    except BaseException as error:
        end, code = f"raised {type(error).__name__}", 1
        raise
    finally:
        _watching.clear()
        attached.close(finished=not code)
        ended = Ended([RankEnd(0, end, code)], time.monotonic() - begin)
        busy = load.ended(wanted=threads_of_a_rank(1))
        seen._diagnosis.append(Diagnosis(("this block",), ended, kept(folder, "block", ended, busy)))
