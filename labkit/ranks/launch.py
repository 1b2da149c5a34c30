"""Launch real ranks and watch over them: the parent's side.

Built on torch's elastic agent, the engine under torchrun, so that crash, restart and rendezvous are those of
production.
"""

from __future__ import annotations

import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LaunchError, RunStopped, UsageError
from ..record.load import Load
from . import reports
from .agent import Agent
from .backend import Placement, choose, threads_per_rank, visible_gpus
from .board import Board, started_ticks
from .data_store import DataStoreAddress
from .ending import end_launch
from .faults import Fault
from .hosts import Seats
from .job import Job, board_file, value_file
from .load import LoadWatch
from .manners import OutputWatch
from .memory import MemoryWatch
from .progress import Progress, Watch

MAX_RANKS = 256
DEADLINE_S = 300.0
MAX_DEADLINE_S = 7 * 86400.0
_PACKAGE = Path(__file__).resolve().parent.parent
_POLL_S = 0.02
_LOOK_S = 0.25
_LOST_GRACE_S = 1.0
_ABANDON_S = 4.0
"""How long an agent may take to act on ranks of which none is left; on busy cores two seconds were too few."""


@dataclass(frozen=True)
class Launched:
    """What a launch gave.

    Attributes:
        values: return value of each rank.
        wall_s: seconds from the launch to the last rank's exit.
        attempts: 1, and one more for each restart.
        faults_fired: injected faults that fired, over all ranks and attempts.
        load: what other programs took of the cores meanwhile; None where it could not be seen.
    """

    values: tuple[Any, ...]
    wall_s: float
    attempts: int
    faults_fired: int
    load: Load | None = None


class Control:
    """A handle through which another thread stops a run."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask the run to end; its ranks are killed and no further attempt starts. Any thread, any number of times."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()


def launch(
    program: Callable[..., Any],
    task: Any = None,
    *,
    ranks: int,
    folder: Path,
    seed: int = 0,
    placement: Placement | None = None,
    threads: int | None = None,
    deadline_s: float = DEADLINE_S,
    max_restarts: int = 0,
    faults: tuple[Fault, ...] = (),
    group: bool = True,
    seats: Seats | None = None,
    data_store: DataStoreAddress | None = None,
    control: Control | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Launched:
    """Run `program(context)` on `ranks` processes of this machine and wait for them.

    *Called on* the parent. Nothing is left running, whatever happens: an error, Stop, an interrupt, the death of the
    parent or of any process in between.

    Args:
        program: an importable function, or one from a notebook cell or a script (it travels by cloudpickle).
        task: given to each rank as `context.task`.
        ranks: 1 to 256.
        folder: an existing folder for the ranks' files; each launch needs its own.
        seed: handed to the program, which derives everything random from it.
        placement: backend and device; chosen from the machine if None.
        threads: intra-op threads of each rank; the cores divided by the ranks if None.
        deadline_s: then each rank's stack is dumped, the ranks are ended and RankTimeout is raised.
        max_restarts: attempts after a failure, by the elastic agent.
        faults: planned faults.
        group: False for a program that uses no process group.
        seats: the hosts that the ranks sit on, as `hosts` gives them; None for the machine itself.
        data_store: where the data store is that the program reads from, given to each rank as `context.data_store`.
        control: to stop the run from another thread.
        on_progress: called about every 20 ms while the ranks run, on the calling thread.

    Raises:
        UsageError: a bad argument, before anything starts.
        LaunchError: the ranks could not be started, or their hosts were taken away.
        RankFailed, RankLeftEarly, RankTimeout: with a report for each rank.
        OutOfMemory: the ranks were about to fill the machine's memory.
        RunStopped: through `control`.
    """
    folder, faults = Path(folder).absolute(), tuple(faults)
    _check_arguments(program, ranks, folder, threads, deadline_s, max_restarts, faults)
    job = Job(
        program=dumps(program, task),
        origin=origin_of(program, task),
        folder=folder,
        world_size=ranks,
        placement=placement or choose(ranks, visible_gpus()),
        threads=threads or threads_per_rank(ranks),
        seed=seed,
        deadline_s=deadline_s,
        faults=faults,
        group=group,
        seats=seats,
        data_store=data_store,
        env=dict(os.environ),
    )
    control = control or Control()
    if control.stopped:
        raise RunStopped("stopped before its ranks were started")
    board = Board.create(board_file(folder), ranks)
    load = LoadWatch()
    agent = Agent(job, max_restarts)
    try:
        agent.start()
        lost = _supervise(agent, board, job, control, on_progress)
        wall_s = time.monotonic() - agent.started
        rows = board.rows()
        if agent.error is not None:
            server_died = agent.server_pid != 0 and started_ticks(agent.server_pid) == 0
            raise reports.explain(agent.error, rows, job, lost, server_died)
        return Launched(
            values=tuple(_value(folder, rank, row.attempt) for rank, row in enumerate(rows)),
            wall_s=wall_s,
            attempts=1 + max(row.attempt for row in rows),
            faults_fired=sum(row.faults for row in rows),
            load=load.ended(wanted=ranks * job.threads),
        )
    finally:
        end_launch(board, agent, folder)


def check_deadline(deadline_s: Any) -> None:
    """Refuse a deadline that is none.

    Raises:
        UsageError: it is not a number of seconds, not above 0, or endless.
    """
    number = isinstance(deadline_s, (int, float)) and not isinstance(deadline_s, bool) and math.isfinite(deadline_s)
    if not number or not 0 < deadline_s <= MAX_DEADLINE_S:
        raise UsageError(f"the deadline must be above 0 seconds and at most {MAX_DEADLINE_S:g}; given {deadline_s!r}")


def _check_arguments(
    program: Any, ranks: Any, folder: Path, threads: Any, deadline_s: Any, max_restarts: Any, faults: tuple[Fault, ...]
) -> None:
    if not callable(program):
        raise UsageError(f"the program must be a function of one argument, the context; given {type(program).__name__}")
    if not _is_whole(ranks, 1, MAX_RANKS):
        raise UsageError(f"ranks must be a whole number from 1 to {MAX_RANKS}; given {ranks!r}")
    if threads is not None and not _is_whole(threads, 1, 4096):
        raise UsageError(f"threads must be a whole number from 1, or None to share the cores; given {threads!r}")
    if not _is_whole(max_restarts, 0, 1000):
        raise UsageError(f"max_restarts must be a whole number from 0 to 1000; given {max_restarts!r}")
    check_deadline(deadline_s)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; make it first")
    if board_file(folder).exists() or any(folder.glob("rank-*")):
        raise UsageError(f"{folder} holds the files of another launch; each launch needs a folder of its own")
    for fault in faults:
        if fault.rank >= ranks:
            raise UsageError(f"a fault is planned for rank {fault.rank}, but ranks count from 0 to {ranks - 1}")


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _value(folder: Path, rank: int, attempt: int) -> Any:
    try:
        return pickle.loads(value_file(folder, rank, attempt).read_bytes())
    except FileNotFoundError as error:
        raise LaunchError(f"rank {rank} returned, but what it left in {folder} is gone: the program deleted it") from error


def origin_of(program: Callable[..., Any], task: Any = None) -> str:
    """The file in which a function was written that travels by value, or an empty string.

    Where the program is labkit's own and its task carries a learner's function, it is that function's file.
    """
    files = [*_written_in(program), *_written_in(task)]
    return next((file for file in files if not Path(file).is_relative_to(_PACKAGE)), files[0] if files else "")


def _written_in(part: Any, depth: int = 3) -> Iterator[str]:
    """The files of the functions in a task: itself, its parts, and theirs (a check hands one to a program)."""
    code = getattr(part, "__code__", None)
    if code is not None:
        yield code.co_filename
    elif depth:
        parts = part if isinstance(part, (tuple, list)) else list(getattr(part, "__dict__", {}).values())
        for each in parts[:20]:
            yield from _written_in(each, depth - 1)


def dumps(program: Callable[..., Any], task: Any) -> bytes:
    """A program and its task as bytes that any rank can load."""
    import cloudpickle

    try:
        return cloudpickle.dumps((program, task))
    except Exception as error:
        raise UsageError(
            f"{getattr(program, '__name__', program)!r} cannot be sent to the ranks ({error}); "
            "it or what it is given holds something that lives in this process only, such as an open file or a lock"
        ) from error


def _supervise(
    agent: Agent, board: Board, job: Job, control: Control, on_progress: Callable[[Progress], None] | None
) -> list[int]:
    """Wait for the agent, passing progress on; raise at the deadline, on Stop and before the memory is full.

    Returns:
        ranks whose loss the agent did not act upon, so that the others were ended here.
    """
    deadline = agent.started + job.deadline_s
    lost, watch = _Lost(board, agent), Watch(job.folder)
    memory, output = MemoryWatch(board, job.folder), OutputWatch(board, job.folder, job.world_size)
    while not agent.done.wait(_POLL_S):
        now = time.monotonic()
        if control.stopped:
            raise RunStopped(f"stopped after {now - agent.started:.1f} s; its ranks are ended")
        if now > deadline:
            raise reports.timeout(board, job)
        if job.seats is not None and job.seats.are_gone:
            raise LaunchError("the process that holds the hosts' network stacks was ended from outside; run again")
        memory.look(now)
        output.look(now)
        lost.look(now)
        if on_progress is not None:
            on_progress(watch.progress(board.rows(), now - agent.started, lost.seen))
    if on_progress is not None:
        on_progress(watch.progress(board.rows(), time.monotonic() - agent.started, lost.seen))
    return lost.acted_upon


class _Lost:
    """Ends an attempt of which a rank was lost, where the agent does not.

    The agent takes an exit code of 0 without a return value (`os._exit(0)`) for a rank that still runs, and gives ranks
    that ignore SIGTERM 30 s. Where no rank is left whose end would wake it, it is abandoned; but not once it has begun the
    next attempt, whose ranks can take seconds to come up where others use the cores.
    """

    def __init__(self, board: Board, agent: Agent) -> None:
        self.acted_upon: list[int] = []
        self.seen: tuple[int, ...] = ()
        self._board, self._agent = board, agent
        self._next_look = 0.0
        self._attempt = 0
        self._since: float | None = None

    def look(self, now: float) -> None:
        """Look at every rank now and then; kill the others once one has been lost for a while."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        rows = self._board.rows()
        attempt = max(row.attempt for row in rows)
        lost = [rank for rank, row in enumerate(rows) if row.attempt == attempt and row.is_lost]
        self.seen = tuple(lost)
        restarts = self._agent.rounds.begun > attempt + 1
        if not lost or attempt != self._attempt or restarts:
            self._attempt, self._since, self.acted_upon = attempt, None, []
        elif self._since is None:
            self._since = now
        elif now - self._since > _LOST_GRACE_S:
            self.acted_upon = self.acted_upon or lost
            for row in rows:
                if row.attempt == attempt:
                    row.kill()
            if now - self._since > _ABANDON_S and not any(row.is_alive for row in rows):
                self._agent.abandon()
