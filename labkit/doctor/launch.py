"""Start a script on several ranks of this machine, as torchrun would, and see each of them end.

The parent holds the store at which ranks meet, so no port is chosen that somebody else may take meanwhile. Output and
exit codes are the script's. A run that stands still is ended, with the stack of each rank.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil

from ..ranks.backend import usable_cores
from . import children, stands
from . import rank as rank_main
from .rank import LEAVING_FILE, STACK_FILE

STILL_S = 90.0
"""A run that makes no step for so long stands still; before the first step it may take three times as long."""

OTHERS_LEFT_S = 20.0
"""How long ranks are waited for when another one has ended: what they wait for may never come."""

GOOD_ENDS = ("finished", "enough", "aborted in teardown", "hung in teardown")
ABORTED = (-signal.SIGABRT, -signal.SIGSEGV)

_POLL_S = 0.1
_STACK_WAIT_S = 1.0


@dataclass(frozen=True)
class Launch:
    """What is run.

    Attributes:
        command: the script or module, and its arguments.
        is_module: run as `python -m`.
        ranks: processes. One is started without any of torchrun's variables.
        steps: of the optimizer after which each rank ends; None runs to the end.
        folder: for the record; exists and is empty.
        deadline_s: after which the run is ended; None waits.
        still_s: as STILL_S.
    """

    command: Sequence[str]
    is_module: bool
    ranks: int
    steps: int | None
    folder: Path
    deadline_s: float | None = None
    still_s: float = STILL_S


@dataclass
class RankEnd:
    """How one rank ended.

    Attributes:
        rank: which.
        end: "finished", "enough" (the steps that were asked for), "raised NAME", "exited", "killed", "aborted in teardown",
            "hung in teardown", or "still" where it stood still and was ended.
        code: the script's exit code; negative is a signal. A process that dies once its script is over is not counted.
        stack: where each thread stood, for one that was ended; as faulthandler writes it.
    """

    rank: int
    end: str
    code: int | None
    stack: str = ""


@dataclass
class Ended:
    """How a run ended.

    Attributes:
        ranks: by rank.
        seconds: from start to end.
        stood_still: whether it was ended because nothing went on.
        stopped: whether a person or a deadline ended it.
        unseen: ranks of other machines, whose records this one cannot read.
        alone: processes of the script's own that trained and joined no process group.
    """

    ranks: list[RankEnd]
    seconds: float
    stood_still: bool = False
    stopped: bool = False
    unseen: tuple[int, ...] = ()
    alone: int = 0

    @property
    def code(self) -> int:
        """The script's exit code: that of the first rank whose end was its own and not 0."""
        codes = [one.code for one in self.ranks if one.end not in ("still", "ended with the others") and one.code]
        return next(iter(codes), 0)


class Process(Protocol):
    """One rank's process, as `subprocess.Popen` is: it leads a session of its own."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises `subprocess.TimeoutExpired`."""
        ...


def start(arguments: list[str], environment: dict[str, str]) -> Process:
    """Start a process of `rank.main` with these arguments, in a session of its own."""
    return subprocess.Popen([sys.executable, "-m", rank_main.__name__, *arguments], env=environment, start_new_session=True)


def run(launch: Launch, start: Callable[[list[str], dict[str, str]], Process] = start) -> Ended:
    """Run to the end. *Called on* the parent; nothing is left running, whatever is raised.

    Args:
        start: starts the process of one rank.
    """
    begin = time.monotonic()
    store = _store() if launch.ranks > 1 else None
    started: list[Process] = []
    try:
        for rank in range(launch.ranks):
            environment = _environment(launch, rank, store.port if store is not None else 0)
            started.append(start(_arguments(launch), environment))
        watched = _Watched(launch, started, begin)
        return watched.until_ended()
    finally:
        for process in started:
            _end(process)


def _store() -> Any:
    from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def _arguments(launch: Launch) -> list[str]:
    options = ["--steps", str(launch.steps)] if launch.steps is not None else []
    options += ["--module"] if launch.is_module else []
    return [str(launch.folder), *options, "--", *launch.command]


def threads_of_a_rank(ranks: int) -> int:
    """Intra-op threads of each rank: one each of several, as torchrun has it, unless OMP_NUM_THREADS says otherwise."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    return 1 if ranks > 1 else usable_cores()


def _environment(launch: Launch, rank: int, port: int) -> dict[str, str]:
    environment = dict(os.environ)
    # the package may be found by the working folder alone, which is not on the path of a script elsewhere
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[2]), environment.get("PYTHONPATH", "")])
    )
    if launch.ranks == 1:
        return environment
    world = str(launch.ranks)
    environment.setdefault("OMP_NUM_THREADS", "1")
    return environment | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(rank),
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": world,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


@dataclass
class _Watched:
    launch: Launch
    started: list[Process]
    begin: float
    ends: dict[int, RankEnd] = field(default_factory=dict)
    _sizes: tuple[int, ...] = ()
    _moved: float = 0.0
    _steps_seen: bool = False

    def until_ended(self) -> Ended:
        self._moved = self.begin
        first_left = None
        while len(self.ends) < len(self.started):
            now = time.monotonic()
            self._see_ends()
            if self.ends and first_left is None:
                first_left = now
            if any(one.end not in GOOD_ENDS or one.code for one in self.ends.values()):
                return self._closed(now, OTHERS_LEFT_S, first_left)
            self._see_progress(now)
            if self._stands_still(now, first_left):
                return self._still(now)
            if self.launch.deadline_s is not None and now - self.begin > self.launch.deadline_s:
                return self._still(now, stopped=True)
            time.sleep(_POLL_S)
        return Ended(self._sorted(), time.monotonic() - self.begin)

    def _see_ends(self) -> None:
        for rank, process in enumerate(self.started):
            if rank not in self.ends and (code := process.poll()) is not None:
                self.ends[rank] = self._end(rank, code)

    def _end(self, rank: int, code: int) -> RankEnd:
        """How a rank ended. One that aborts in tearing its process group down has done its work: clean scripts do so now
        and then where a DDP module outlives its group."""
        ended = rank_main.end_of(self.launch.folder, rank)
        if ended is not None:
            return RankEnd(rank, *ended)
        if code in ABORTED and self._is_leaving(rank):
            return RankEnd(rank, "aborted in teardown", 0)
        if code == 0:
            return RankEnd(rank, "finished", 0)  # it left no word: os._exit, or a disk that is full
        if code > 0:
            return RankEnd(rank, "exited", code)
        stands.note_death(self.launch.folder, rank, len(self.started), -code)
        return RankEnd(rank, "killed", code)

    def _see_progress(self, now: float) -> None:
        sizes = tuple(
            path.stat().st_size if path.exists() else 0
            for path in (
                *(self.launch.folder / f"rank-{rank:05d}.jsonl" for rank in range(len(self.started))),
                *(path.with_suffix(".jsonl") for path in sorted(children.stacks(self.launch.folder))),
            )
        )
        if sizes != self._sizes:
            self._steps_seen = self._steps_seen or any(sizes)
            self._sizes, self._moved = sizes, now

    def _stands_still(self, now: float, first_left: float | None) -> bool:
        if first_left is not None and now - max(first_left, self._moved) > OTHERS_LEFT_S and self._idle():
            return True
        patience = self.launch.still_s if self._steps_seen else 3 * self.launch.still_s
        return now - self._moved > patience and self._idle()

    def _idle(self) -> bool:
        """Whether the ranks that are left hardly compute: what loads data or evaluates is at work, without a step."""
        alive = [process for rank, process in enumerate(self.started) if rank not in self.ends]
        before = [_cpu_s(process.pid) for process in alive]
        time.sleep(1.0)
        after = [_cpu_s(process.pid) for process in alive]
        return all(b - a < 0.5 for a, b in zip(before, after, strict=True))

    def _closed(self, now: float, patience_s: float, since: float | None) -> Ended:
        """One rank failed: give the others time to meet its consequences, then end them."""
        until = (since or now) + patience_s
        while len(self.ends) < len(self.started) and time.monotonic() < until:
            self._see_ends()
            time.sleep(_POLL_S)
        self._dump("ended with the others")
        return Ended(self._sorted(), time.monotonic() - self.begin)

    def _still(self, now: float, stopped: bool = False) -> Ended:
        leaving = [self._is_leaving(rank) for rank in self._left()]
        self._dump("still")
        # a clean script hangs now and then as it tears its process group down: it has done its work
        return Ended(self._sorted(), now - self.begin, stood_still=not stopped and not all(leaving), stopped=stopped)

    def _left(self) -> list[int]:
        return [rank for rank in range(len(self.started)) if rank not in self.ends]

    def _is_leaving(self, rank: int) -> bool:
        """Whether a rank's script has begun to tear its process groups down."""
        return (self.launch.folder / LEAVING_FILE.format(rank=rank)).exists()

    def _dump(self, end: str) -> None:
        """Take the stack of each rank that is left, then end it."""
        left = self._left()
        for rank in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.started[rank].pid, signal.SIGUSR1)
        if left:
            children.ask_where_they_stand(self.launch.folder)
            time.sleep(_STACK_WAIT_S)
        for rank in left:
            _end(self.started[rank])
            stack = self.launch.folder / STACK_FILE.format(rank=rank)
            said = stack.read_text(errors="replace") if stack.exists() else ""
            ended = rank_main.end_of(self.launch.folder, rank)
            if ended is not None:  # its script is over and its record closed; the process was slow to go
                self.ends[rank] = RankEnd(rank, *ended)
                continue
            if self._is_leaving(rank) and "destroy_process_group" in said:
                self.ends[rank] = RankEnd(rank, "hung in teardown", 0, said)
                continue
            self.ends[rank] = RankEnd(rank, end, self.started[rank].returncode, said)
            if end == "still":
                stands.note(self.launch.folder, rank, len(self.started), said)

    def _sorted(self) -> list[RankEnd]:
        return [self.ends[rank] for rank in sorted(self.ends)]


def _cpu_s(pid: int) -> float:
    """Seconds of processor time of a process and of those that it started: it may wait for ranks of its own."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0.0
    seconds = 0.0
    for one in family:
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            seconds += times.user + times.system
    return seconds


def _end(process: Process) -> None:
    """End a rank and what it started: its session is its own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2.0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
