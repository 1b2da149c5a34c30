"""What the doctor says of a script: how its ranks ended, what was found, what is clear, what was not seen and why."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from .. import __version__
from ..detect import is_timed
from ..detect.explained import subject_of, subjects, weighs_at_a_crash
from ..detect.verdict import Verdict, Verdicts
from ..errors import UsageError, shown
from ..ranks.join import Place
from ..ranks.launch import MAX_RANKS, check_deadline
from ..ranks.load import LoadWatch
from ..reading import Reading, reading_of
from ..record.load import Load
from ..record.roles import Role
from ..record.schema import Origin, Provenance, Record
from ..record.store import new_folder, read_record, read_run, write_record
from ..showing import as_html
from ..watch.machine import device_name
from . import alone, outer
from . import launch as launching
from .checklist import ORDER, checklist, counted
from .excerpts import Excerpt, excerpt
from .gather import gathered
from .launch import Ended, Launch, threads_of_a_rank
from .rank import hide_own_frames, show, watched
from .source import is_distributed, starts_ranks


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """A script that was examined.

    Attributes:
        command: the script and its arguments.
        ended: how its ranks ended.
        reading: its record, asked; None where the script left none, being no training.
        ranks_by: "given" or "source": who said how many ranks; "script" where it starts them itself.
        root: the folder that the script was started from; places are relative to it.
    """

    command: tuple[str, ...]
    ended: Ended
    reading: Reading | None
    ranks_by: str = "given"
    root: Path = field(default_factory=Path.cwd)

    @cached_property
    def verdicts(self) -> Verdicts:
        """All answers, the most expensive first: of those that found something those without a figure lead, being wrong
        results and not slow ones; what costs something only after a crash comes last."""
        if self.reading is None:
            return Verdicts(())
        return Verdicts(ordered(self.reading.verdicts))

    _repr_html_ = as_html

    def __repr__(self) -> str:
        said = [str(verdict) for verdict in self.verdicts if verdict.status in ("found", "inconclusive")]
        clear = ", ".join(verdict.detector for verdict in self.verdicts if verdict.status == "clear")
        return "\n".join([*said, f"clear: {clear}"])

    @property
    def found(self) -> list[Verdict]:
        """What was found, the most expensive first."""
        return [verdict for verdict in self.verdicts if verdict.status == "found"]

    @property
    def untimed(self) -> list[Verdict]:
        """What was found by counting and comparing, not by a clock: it comes out so on every machine."""
        return [verdict for verdict in self.found if not is_timed(verdict.detector)]

    @property
    def trained(self) -> bool:
        """Whether any optimizer made a step."""
        reading = self.reading
        return reading is not None and any(step.counts.get("updates") for log in reading.run.ranks for step in log.steps)

    def report(self) -> dict[str, Any]:
        """All of it as plain data, as `--json` writes it."""
        ended = self.ended
        ranks = [{"rank": one.rank, "end": one.end, "code": one.code} for one in ended.ranks]
        return {
            "command": list(self.command),
            "trained": self.trained,
            "stood_still": ended.stood_still,
            "unseen_ranks": list(ended.unseen),
            "alone": ended.alone,
            "seconds": round(ended.seconds, 3),
            "ranks": ranks,
            "labkit": __version__,
            "counts": counted(self.verdicts),
            "findings": [self._finding(verdict) for verdict in self.found],
            "checklist": [
                {"subject": subject, "detector": item.verdict.detector, "status": item.verdict.status, "why": item.why}
                for subject, items in checklist(self.verdicts).items()
                for item in items
            ],
            "reading": None if self.reading is None else self.reading.report(),
        }

    def _finding(self, verdict: Verdict) -> dict[str, Any]:
        line = self.excerpt(verdict)
        return {
            "detector": verdict.detector,
            "reason": verdict.reason,
            "question": verdict.question,
            "cause": verdict.cause,
            "fix": verdict.fix,
            "waste": verdict.waste,
            "where": verdict.where,
            "source": None if line is None else line.text,
            "explain": f"{verdict.detector}/{verdict.reason}",
        }

    def excerpt(self, verdict: Verdict, around: int = 0) -> Excerpt | None:
        """The line that a finding points at, with so many around it; None where there is none, or it cannot be read."""
        return excerpt(verdict.where, self.root, around)

    @property
    def updates(self) -> int:
        """Steps of optimizers on rank 0."""
        return 0 if self.reading is None else sum(step.counts.get("updates", 0) for step in self.reading.run.ranks[0].steps)


def ordered(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts as a report has them: found, undecided, clear, not seen; those that were found by what they cost."""
    return sorted(verdicts, key=_order)


def _order(verdict: Verdict) -> tuple[int, bool, float, int]:
    status = ORDER.index(verdict.status)
    waste = verdict.waste if verdict.waste is not None else 2.0
    return status, weighs_at_a_crash(verdict.detector), -waste, subjects().index(subject_of(verdict.detector))


def examine(
    command: Sequence[str] | str | Path,
    *,
    is_module: bool = False,
    ranks: int | None = None,
    steps: int | None = None,
    record: Path | None = None,
    deadline_s: float | None = None,
    still_s: float = launching.STILL_S,
    start: Any = launching.start,
) -> Diagnosis:
    """Run a script on ranks of this machine, watched, and ask every question there is. *Called on* the parent.

    Args:
        command: the script's file, or the module's name; with arguments a list of both.
        is_module: run as `python -m`.
        ranks: processes; None takes 2 where the source has to do with several ranks, else 1.
        steps: of the optimizer after which each rank ends; None runs to the script's end.
        record: a new folder for the record; None keeps it in the cache.
        deadline_s: after which the run is ended; None waits.
        still_s: how long a run may make no step and no use of the processor.

    Raises:
        UsageError: no such script, or a count below 1.
        RecordError: the folder exists, or what the ranks wrote cannot be read.
    """
    command = [str(command)] if isinstance(command, (str, Path)) else list(command)
    _check(command, is_module, ranks, steps)
    if deadline_s is not None:
        check_deadline(deadline_s)
    folder = new_folder(record, f"doctor-{Path(command[0]).stem}")
    own = folder / str(Role.VARIANT)
    own.mkdir(parents=True, exist_ok=True)
    ranks, by = _ranks(command, is_module, ranks)
    load = LoadWatch()
    ended = launching.run(Launch(command, is_module, ranks, steps, own, deadline_s, still_s), start)
    ended = replace(gathered(own, ended), alone=alone.count(own))
    seen = load.ended(wanted=len(ended.ranks) * threads_of_a_rank(len(ended.ranks)))
    return Diagnosis(tuple(command), ended, kept(folder, Path(command[0]).name, ended, seen), by)


def _ranks(command: Sequence[str], is_module: bool, ranks: int | None) -> tuple[int, str]:
    """(how many ranks are started, who says so). A script that starts its ranks by itself is started once."""
    if not is_module and starts_ranks(Path(command[0])):
        return 1, "script"
    if ranks is not None:
        return ranks, "given"
    return 2 if not is_module and is_distributed(Path(command[0])) else 1, "source"


def examine_here(
    command: Sequence[str], place: Place, *, is_module: bool = False, steps: int | None = None, record: Path | None = None
) -> Diagnosis | None:
    """Run a script as the rank that this process is under torchrun. *Called on* every rank; all are on one machine.

    Collectives: none; ranks leave their files in one folder, which rank 0 reads.

    Returns:
        The diagnosis on rank 0, once the others have ended or have had the time to; None on the others.

    Raises:
        As `examine`; and on each rank but 0 what its script raises.
    """
    _check(command, is_module, None, steps)
    folder = record if record is not None else outer.folder_of_launch(Path(command[0]).stem)
    own = folder / str(Role.VARIANT)
    own.mkdir(parents=True, exist_ok=True)
    begin, load = time.monotonic(), LoadWatch()
    with outer.in_order(restored=False) as told:
        try:
            watched(own, list(command), steps=steps, module=is_module)
        except Exception as error:
            if place.rank:
                hide_own_frames()
                raise
            show(error)  # and go on: what was seen until then is worth saying
        if place.rank:
            return None
        ended = outer.ended(own, place.world_size, begin, told, outer.elsewhere(own, place))
        seen = load.ended(wanted=place.world_size * threads_of_a_rank(place.world_size))
        return Diagnosis(tuple(command), ended, kept(folder, Path(command[0]).name, ended, seen))


def _check(command: Sequence[str], is_module: bool, ranks: int | None, steps: int | None) -> None:
    if not command:
        raise UsageError("the doctor wants a script: labkit doctor train.py; given none")
    if not is_module and not Path(command[0]).is_file():
        raise UsageError(
            f"the doctor wants the file of a Python script; there is no file {shown(command[0])} here. Give its path; "
            "for a module use -m, as in labkit doctor -m package.train"
        )
    for name, value in (("--ranks", ranks), ("--steps", steps)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be 1 or more; given {value}")
    if ranks is not None and ranks > MAX_RANKS:
        raise UsageError(f"--ranks must be from 1 to {MAX_RANKS}, all on this machine; given {ranks}")


def kept(folder: Path, name: str, ended: Ended, load: Load | None) -> Reading | None:
    """The record that the ranks left, complete; None where some rank did nothing that is watched."""
    own = folder / str(Role.VARIANT)
    if ended.unseen:
        return None  # what a part of the ranks did says nothing of them all
    files = [own / f"rank-{one.rank:05d}.jsonl" for one in ended.ranks]
    if not all(path.exists() and path.stat().st_size for path in files):
        return None
    run = msgspec.structs.replace(read_run(own, str(Role.VARIANT), ended.seconds), load=load)
    head = run.ranks[0].head
    provenance = Provenance(
        source="measured",
        device=device_name(head.device),
        backend=head.backend,
        world_size=run.world_size,
        date=time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime()),
        labkit=__version__,
        load=load,
    )
    record = Record("", name, {}, provenance, {str(Role.VARIANT): run}, folder, origin=Origin.DOCTOR)
    write_record(record)
    return reading_of(read_record(folder))
