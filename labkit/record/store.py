"""Read and keep records: a folder with `record.json` and, for each role, a file a rank.

Nothing is a pickle. A line that cannot be read is an error that names the file and the line; only the last line of a
rank that was killed may be cut short, and then the file has no end mark either.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from pathlib import Path
from typing import Annotated

import msgspec

from ..arguments import checked
from ..errors import RecordError, shown
from ..words import plural, printable
from .baseline import Baseline
from .bounds import MAX_RANKS, MAX_RECORD_JSON_BYTES, MAX_ROLE, MAX_ROLES, MAX_RUN_BYTES, Int, Name, Named, Value
from .cache import cache_folder
from .clocks import on_one_clock
from .files import read_regular, reason_of
from .load import Load
from .rank_files import began, head_of, rank_file, read_arrays, read_rank
from .safe_json import decoded
from .schema import SCHEMA_VERSION, Origin, Provenance, RankLog, Record, Run

KEPT_RUNS = 50
MAX_ATTEMPTS = 1001
"""The first, and as many restarts as a launch may be given."""

_RANK_FILE = re.compile(r"rank-([0-9]{5})(?:\.attempt([0-9]{1,4}))?\.jsonl")


class _RunEntry(msgspec.Struct, frozen=True):
    wall_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    attempts: Int
    load: Load | None = None


class _RecordFile(msgspec.Struct, frozen=True):
    schema: Int
    lab: Name
    variant: Name
    config: Named[Value | None]
    provenance: Provenance
    runs: Annotated[dict[str, _RunEntry], msgspec.Meta(max_length=MAX_ROLES)]
    baseline: Baseline | None = None


class _Lab(msgspec.Struct):
    lab: Name


_decoder, _lab_decoder = msgspec.json.Decoder(_RecordFile), msgspec.json.Decoder(_Lab)


def _decoded(path: Path) -> _RecordFile:
    """A record.json, whose roles are names of folders in its own.

    Raises:
        RecordError: what is wrong with it.
    """
    raw = read_regular(path, MAX_RECORD_JSON_BYTES)
    try:
        content = decoded(raw, _decoder)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: {error}; the file is damaged or not a labkit record") from error
    for role in content.runs:
        if not 1 <= len(role) <= MAX_ROLE or role in (".", "..") or set(role) & {"/", "\\"}:
            raise RecordError(
                f"{path}: {shown(role)} is the name of a launch, and such a name is that of a folder, of {MAX_ROLE} letters "
                "at most and without a slash; the file is damaged or not a labkit record"
            )
    wrong = content.baseline and content.baseline.damage()
    if wrong:
        raise RecordError(f"{path}, baseline: {wrong}; run the lab again")
    return content


def runs_folder() -> Path:
    """The user's cache folder for runs (LABKIT_CACHE overrides its parent)."""
    return cache_folder() / "runs"


def new_folder(where: Path | str | None, name: str) -> Path:
    """Make the folder of a new record: `where` itself if given (it must be empty or new), else one in the cache."""
    if where is None:
        parent = runs_folder()
        parent.mkdir(parents=True, exist_ok=True)
        _forget_old(parent)
        folder = parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}-{uuid.uuid4().hex[:6]}"
    else:
        folder = Path(where).expanduser()
    try:
        if where is not None and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()))):
            raise RecordError(f"{folder} is not an empty folder; give --record a new folder, so that no run is overwritten")
        folder.mkdir(parents=True, exist_ok=True)
    except RecordError:  # named already, and a ValueError too
        raise
    except (OSError, ValueError) as error:  # a name that is too long is met by the look already, one with a NUL too
        raise RecordError(
            f"cannot make the record folder {folder}: {reason_of(error)}; choose another with --record"
        ) from error
    return folder


def _forget_old(parent: Path) -> None:
    """Keep the newest runs. The lab with the most of them loses its oldest, so that no lab takes the place of the others.

    One that may still be running (no record.json, under a day old) is left alone.
    """
    of_labs: dict[str, list[Path]] = {}
    for path in sorted(path for path in parent.iterdir() if path.is_dir()):
        of_labs.setdefault(_lab_in(path), []).append(path)
    for _ in range(max(0, sum(map(len, of_labs.values())) - KEPT_RUNS + 1)):
        most = max(of_labs.values(), key=len)
        path = most.pop(0)
        try:
            if (path / "record.json").exists() or time.time() - path.stat().st_mtime > 86400:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # another process forgot it first


def _lab_in(path: Path) -> str:
    """Whose run a folder in the cache holds; "" where it has none that can be read, as one that failed."""
    try:
        return _lab_decoder.decode(read_regular(path / "record.json", MAX_RECORD_JSON_BYTES)).lab
    except (OSError, RecordError, msgspec.DecodeError):
        return ""


def latest() -> Path:
    """The newest complete record in the cache."""
    parent = runs_folder()
    found = sorted(path.parent for path in parent.glob("*/record.json")) if parent.is_dir() else []
    if not found:
        raise RecordError(f"no record in {parent} yet; make one with: labkit run duplicate-data")
    return found[-1]


class KeptRun(msgspec.Struct, frozen=True):
    """A complete record in the cache, as its record.json alone says it.

    Attributes:
        folder: where it is; its name tells it apart.
        config: all settings, by name.
    """

    folder: Path
    lab: str
    variant: str
    provenance: Provenance
    config: dict[str, Value | None] = {}


def kept_runs() -> list[KeptRun]:
    """The complete records in the cache, newest first; one whose record.json cannot be read is left out."""
    parent, found = runs_folder(), []
    for path in sorted(parent.glob("*/record.json"), reverse=True) if parent.is_dir() else ():
        with contextlib.suppress(OSError, RecordError):
            content = _decoded(path)
            found.append(KeptRun(path.parent, content.lab, content.variant, content.provenance, content.config))
    return found


def named(word: str) -> Path:
    """The folder that a person means: `last`, a path, or the name of a run in the cache, or how that name ends.

    Raises:
        RecordError: `last`, and there is no run yet.
    """
    if word == "last":
        return latest()
    given, kept = Path(word).expanduser(), runs_folder() / word
    if given.exists() or Path(word).name != word:
        return given
    if kept.is_dir():
        return kept
    ending = [path.parent for path in runs_folder().glob("*/record.json") if path.parent.name.endswith(f"-{word}")]
    return ending[0] if len(ending) == 1 else given


def read_run(folder: Path, role: str, wall_s: float, attempts: int = 1) -> Run:
    """Read what the ranks of one launch left in `folder`: the last attempt of each, and what is left of the others."""
    logs = []
    for rank in range(_count_ranks(folder)):
        candidates = [rank_file(folder, rank, attempt) for attempt in reversed(range(attempts))]
        path = next((path for path in candidates if path.exists()), None)
        if path is None:
            raise RecordError(
                f"{folder}: rank {rank} left no file among {len(candidates)} attempt(s); it would be called "
                f"{candidates[-1].name}"
            )
        logs.append(_read_own(path, rank))
    if not logs:
        raise RecordError(f"{folder}: no rank-*.jsonl in it; is it a labkit record?")
    for rank, log in enumerate(logs):
        if log.head.world_size != len(logs):
            raise RecordError(
                f"{folder}: files of {plural(len(logs), 'rank')}, but rank {rank} was one of {log.head.world_size}; copy "
                "the whole folder, give each probe its world_size, or run again"
            )
    earlier = tuple(_read_attempt(folder, len(logs), attempt) for attempt in range(attempts - 1))
    arrays = read_arrays(rank_file(folder, 0, logs[0].head.attempt))
    return on_one_clock(Run(role, tuple(logs), wall_s, attempts, arrays, earlier))


def _count_ranks(folder: Path) -> int:
    """How many ranks left files, which together are small enough to be read."""
    ranks, total = set(), 0
    for path in folder.glob("rank-*.jsonl"):
        ranks.add(path.name[:10])
        with contextlib.suppress(OSError):  # what cannot be looked at is said when it is opened
            total += path.stat().st_size
        if len(ranks) > MAX_RANKS or total > MAX_RUN_BYTES:
            raise RecordError(
                f"{folder}: files of more than {MAX_RANKS:,} ranks or {MAX_RUN_BYTES:,} bytes; record fewer steps, or "
                "fewer samples of each"
            )
    return len(ranks)


def _read_own(path: Path, rank: int) -> RankLog:
    """Decode the file that is named for a rank, and see that this rank wrote it."""
    log = read_rank(path)
    if log.head.rank != rank:
        raise RecordError(
            f"{path}: rank {log.head.rank} wrote it, and its name says rank {rank}; give each probe its rank and the file "
            "of this rank, or copy the folder again"
        )
    return log


def _read_attempt(folder: Path, world_size: int, attempt: int) -> tuple[RankLog, ...]:
    """An attempt that did not finish. A rank that was ended before it wrote a line is left out."""
    paths = {rank: rank_file(folder, rank, attempt) for rank in range(world_size)}
    return tuple(_read_own(path, rank) for rank, path in paths.items() if path.exists() and began(path))


def _attempts_in(folder: Path) -> int:
    """How many attempts left files, where nobody wrote the number down."""
    found = [_RANK_FILE.fullmatch(path.name) for path in folder.glob("rank-*.jsonl")]
    most = 1 + max((int(match[2] or 0) for match in found if match), default=0)
    if most > MAX_ATTEMPTS:
        raise RecordError(f"{folder}: a file of attempt {most - 1:,}; at most {MAX_ATTEMPTS - 1:,} restarts are read")
    return most


def write_record(record: Record) -> None:
    """Write `record.json` into the record's folder, last and at once: a folder that has it is complete."""
    assert record.folder is not None
    entries = {role: _RunEntry(run.wall_s, run.attempts, run.load) for role, run in record.runs.items()}
    content = _RecordFile(
        SCHEMA_VERSION, record.lab, record.variant, record.config, record.provenance, entries, record.baseline
    )
    aside = record.folder / "record.json.part"
    try:
        aside.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1))
        aside.replace(record.folder / "record.json")
    except OSError as error:
        raise RecordError(
            f"cannot write {record.folder / 'record.json'}: {error.strerror}; the run is lost: make room, or choose another "
            "place with --record, and run again"
        ) from error


@checked()
def read_record(folder: Path | str) -> Record:
    """Read a record back, from its folder or its record.json."""
    folder = Path(folder).expanduser()
    if folder.name == "record.json":
        folder = folder.parent
    path = folder / "record.json"
    try:
        if not path.exists() and folder.is_dir():
            return _bare_record(folder)
        os.stat(path)
    except RecordError:  # named already, and a ValueError too
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise RecordError(
            f"no record at {folder} ({reason_of(error)}: record.json); give the folder that "
            "`labkit run --record` wrote, or a name that `labkit runs` lists"
        ) from error
    content = _decoded(path)
    if content.schema != SCHEMA_VERSION:
        raise RecordError(f"{path}: schema {content.schema}, this labkit reads {SCHEMA_VERSION}; run the lab again")
    if not content.runs or not all(1 <= run.attempts <= MAX_ATTEMPTS for run in content.runs.values()):
        raise RecordError(f"{path}: no runs in it, or one of no attempt; the file is damaged or not a labkit record")
    runs = {
        role: msgspec.structs.replace(read_run(folder / role, role, run.wall_s, run.attempts), load=run.load)
        for role, run in content.runs.items()
    }
    origin = Origin.LAB if content.lab else _origin_of(runs)
    return Record(content.lab, content.variant, content.config, content.provenance, runs, folder, content.baseline, origin)


def _origin_of(runs: dict[str, Run]) -> Origin:
    """Of a record that no lab made: whether labkit watched from outside."""
    watched = any(run.ranks[0].head.facts.get("watched_by") == "doctor" for run in runs.values())
    return Origin.DOCTOR if watched else Origin.SCRIPT


def _check_ranks(folder: Path) -> None:
    """Refuse rank files that are not those of one run, with what is wrong and what to do.

    Raises:
        RecordError: no such file; a probe that was not told its rank; a file of another run; a rank without a file.
    """
    files: dict[int, Path] = {}
    for path in sorted(folder.glob("rank-*.jsonl")):
        named = _RANK_FILE.fullmatch(path.name)
        if named:
            files[int(named[1])] = path  # of several attempts any: each says the same of its rank
    if not files:
        others = ", ".join(path.name for path in sorted(folder.glob("*.jsonl"))[:3])
        raise RecordError(
            f"no record in {folder}: neither record.json, which `labkit run --record` writes, nor the files of a script's "
            f"probes, which must be called rank-00000.jsonl, rank-00001.jsonl, …{f'; there is {others}' if others else ''}. "
            "Give the folder that holds them, or let each rank name its file so: "
            'Probe(f"my_run/rank-{rank:05d}.jsonl", rank=rank, world_size=world_size)'
        )
    heads = {rank: head_of(path) for rank, path in files.items()}
    for rank, head in heads.items():
        if head.rank != rank or head.rank >= head.world_size:
            raise RecordError(
                f"{folder}: {files[rank].name} says that it is of rank {head.rank} of {head.world_size}; its probe did not "
                "know its rank. Give it both, Probe(path, rank=rank, world_size=world_size), or start the script under "
                "torchrun, which says them; then run it again"
            )
    first = min(heads)
    expected = heads[first].world_size
    others = [files[rank].name for rank, head in heads.items() if head.world_size != expected]
    if others:
        sizes = sorted({head.world_size for head in heads.values()} - {expected})
        raise RecordError(
            f"{folder} holds files of several runs: {files[first].name} is of a run of {expected}, {', '.join(others)} of "
            f"{' and '.join(map(str, sizes))}. Delete what an older run left ({', '.join(others)} here, if "
            f"{files[first].name} is the newer one), or write each run into a new folder"
        )
    missing = [rank_file(folder, rank).name for rank in range(expected) if rank not in heads]
    if missing:
        lacking = f"{missing[0]} is missing" if len(missing) == 1 else f"{missing[0]} and others are missing"
        raise RecordError(
            f"{folder}: files of {plural(len(heads), 'rank')}, but they are of a run of {expected}: {lacking}. Copy the "
            "files of all machines into one folder, or run again"
        )


def _bare_record(folder: Path) -> Record:
    """A record of what a script's own probes left: rank files without a record.json, one launch, no reference, no lab."""
    _check_ranks(folder)
    run = read_run(folder, "variant", 0.0, _attempts_in(folder))
    times = [
        time_ns
        for logs in (*run.earlier, run.ranks)
        for log in logs
        for step in log.steps
        for time_ns in (step.start_ns, step.end_ns)
    ]
    if times:
        run = msgspec.structs.replace(run, wall_s=(max(times) - min(times)) / 1e9)
    head = run.ranks[0].head
    written = max(path.stat().st_mtime for path in folder.glob("rank-*.jsonl"))
    provenance = Provenance(
        source="measured",
        device=head.device,
        backend=head.backend,
        world_size=run.world_size,
        date=time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(written)),
    )
    name = printable(folder.resolve().name)
    return Record("", name, {}, provenance, {"variant": run}, folder, origin=Origin.SCRIPT)
