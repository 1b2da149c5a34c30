"""Launch real ranks and end them: the parent's side.

Built on torch's elastic agent, the engine under torchrun, so that crash, restart and rendezvous are those of
production. The agent runs on a thread: on the main thread it would take SIGINT and SIGTERM and never give them back.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..errors import LaunchError, RankFailed, RankLeftEarly, RankReport, RankTimeout, RunStopped, UsageError
from . import rendezvous
from .backend import Placement, choose, threads_per_rank, visible_gpus
from .board import Board, RankState, Row, started_ticks
from .entry import Job, enter, error_file, stack_file
from .faults import Fault
from .forkserver import starting_ranks
from .stacks import waits_in

MAX_RANKS = 256
DEADLINE_S = 300.0
_POLL_S = 0.02
_DUMP_WAIT_S = 0.5
_AGENT_LOGGERS = ("torch.distributed.elastic", "torch.distributed.launcher", "torch.multiprocessing.spawn")


@dataclass(frozen=True)
class Progress:
    """How far the ranks are.

    Attributes:
        steps: steps begun, by rank.
        total_steps: what the slowest-counting rank said it will do; 0 while unknown.
        running: ranks that have joined.
        elapsed_s: since the launch.
    """

    steps: tuple[int, ...]
    total_steps: int
    running: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Share of all ranks' steps begun, 0 to 1."""
        return sum(self.steps) / (len(self.steps) * self.total_steps) if self.total_steps else 0.0


@dataclass(frozen=True)
class Launched:
    """What a launch gave.

    Attributes:
        values: return value of each rank.
        wall_s: seconds from the launch to the last rank's exit.
        attempts: 1, and one more for each restart.
        faults_fired: injected faults that fired, over all ranks of the last attempt.
    """

    values: tuple[Any, ...]
    wall_s: float
    attempts: int
    faults_fired: int


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
    config: Any = None,
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
    control: Control | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Launched:
    """Run `program(context)` on `ranks` processes of this machine and wait for them.

    *Called on* the parent. Nothing is left running, whatever happens: an error, Stop, an interrupt, the death of the
    parent or of any process in between.

    Args:
        program: an importable function, or one from a notebook cell or a script (it travels by cloudpickle).
        config: given to each rank as `context.config`.
        ranks: 1 to 256.
        folder: an existing folder for the ranks' files; each launch needs its own.
        placement: backend and device; chosen from the machine if None.
        threads: intra-op threads of each rank; the cores divided by the ranks if None.
        deadline_s: then each rank's stack is dumped, the ranks are ended and RankTimeout is raised.
        max_restarts: attempts after a failure, by the elastic agent.
        faults: planned faults.
        group: False for a program that uses no process group.
        control: to stop the run from another thread.
        on_progress: called about every 20 ms while the ranks run, on the calling thread.

    Raises:
        UsageError: a bad argument, before anything starts.
        RankFailed, RankLeftEarly, RankTimeout: with a report for each rank.
        RunStopped: through `control`.
    """
    _check_arguments(ranks, deadline_s, faults)
    placement = placement or choose(ranks, visible_gpus())
    job = Job(
        program=dumps(program, config),
        origin=origin_of(program),
        folder=Path(folder).resolve(),
        world_size=ranks,
        placement=placement,
        threads=threads or threads_per_rank(ranks),
        seed=seed,
        deadline_s=deadline_s,
        faults=tuple(faults),
        group=group,
        env={name: os.environ[name] for name in ("GLOO_SOCKET_IFNAME", "CUBLAS_WORKSPACE_CONFIG") if name in os.environ},
    )
    board = Board.create(job.folder / "board", ranks)
    agent = _Agent(job, max_restarts)
    control = control or Control()
    try:
        agent.start()
        _supervise(agent, board, job, control, on_progress)
        wall_s = time.monotonic() - agent.started
        rows = board.rows()
        if agent.error is not None:
            raise _explain(agent.error, rows, job)
        return Launched(
            values=tuple(agent.values[rank] for rank in range(ranks)),
            wall_s=wall_s,
            attempts=1 + max(row.attempt for row in rows),
            faults_fired=sum(row.faults for row in rows),
        )
    finally:
        _end_ranks(board, agent)
        board.close()
        _tidy(job.folder)


def _check_arguments(ranks: int, deadline_s: float, faults: tuple[Fault, ...]) -> None:
    if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= MAX_RANKS:
        raise UsageError(f"ranks must be a whole number from 1 to {MAX_RANKS}; given {ranks!r}")
    if not deadline_s > 0:
        raise UsageError(f"the deadline must be above 0 seconds; given {deadline_s!r}")
    for fault in faults:
        if fault.rank >= ranks:
            raise UsageError(f"a fault is planned for rank {fault.rank}, but ranks count from 0 to {ranks - 1}")


def origin_of(program: Callable[..., Any]) -> str:
    """The file in which a function was written, or an empty string."""
    code = getattr(program, "__code__", None)
    return code.co_filename if code else ""


def dumps(program: Callable[..., Any], config: Any) -> bytes:
    """A program and its configuration as bytes that any rank can load."""
    import cloudpickle

    try:
        return cloudpickle.dumps((program, config))
    except Exception as error:
        raise UsageError(
            f"{getattr(program, '__name__', program)!r} cannot be sent to the ranks ({error}); "
            "it or its configuration holds something that lives in this process only, such as an open file or a lock"
        ) from error


class _Agent:
    """The elastic agent on its thread."""

    def __init__(self, job: Job, max_restarts: int) -> None:
        self.done = threading.Event()
        self.refuse = threading.Event()
        self.values: dict[int, Any] = {}
        self.error: BaseException | None = None
        self.started = time.monotonic()
        self._job, self._max_restarts = job, max_restarts
        self._thread = threading.Thread(target=self._run, daemon=True, name="labkit-agent")

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.values = self._launch()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def _launch(self) -> dict[int, Any]:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        for name in _AGENT_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=self._job.world_size,
            run_id=uuid.uuid4().hex,
            rdzv_backend=rendezvous.register(),
            rdzv_endpoint="localhost",
            rdzv_configs={"refuse": self.refuse},
            max_restarts=self._max_restarts,
            monitor_interval=0.005,
            start_method="forkserver",
            local_addr="127.0.0.1",
            logs_specs=DefaultLogsSpecs(log_dir=str(self._job.folder / "agent")),
        )
        with starting_ranks():
            return elastic_launch(config, enter)(self._job)


def _supervise(
    agent: _Agent, board: Board, job: Job, control: Control, on_progress: Callable[[Progress], None] | None
) -> None:
    """Wait for the agent, passing progress on; end the ranks at the deadline, on Stop and on an interrupt."""
    deadline = agent.started + job.deadline_s
    while not agent.done.wait(_POLL_S):
        now = time.monotonic()
        if control.stopped:
            raise RunStopped(f"stopped after {now - agent.started:.1f} s; its ranks are ended")
        if now > deadline:
            raise _timeout(board, job)
        if on_progress is not None:
            on_progress(_progress(board, now - agent.started))
    if on_progress is not None:
        on_progress(_progress(board, time.monotonic() - agent.started))


def _progress(board: Board, elapsed_s: float) -> Progress:
    rows = board.rows()
    return Progress(
        steps=tuple(row.step for row in rows),
        total_steps=max(row.total_steps for row in rows),
        running=sum(row.state >= RankState.RUNNING for row in rows),
        elapsed_s=elapsed_s,
    )


def _timeout(board: Board, job: Job) -> RankTimeout:
    """Take every rank's stack, then say where each waits."""
    rows = board.rows()
    waiting = [rank for rank, row in enumerate(rows) if _alive(row) and row.state < RankState.RETURNED]
    for rank in waiting:
        if rows[rank].state >= RankState.STARTING and stack_file(job.folder, rank).exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(rows[rank].pid, signal.SIGUSR1)
    patience = time.monotonic() + _DUMP_WAIT_S
    while time.monotonic() < patience and any(not _dump(job, rank) for rank in waiting):
        time.sleep(0.02)
    time.sleep(0.02)
    reports = {rank: _report(rank, rows[rank], job) for rank in range(job.world_size)}
    return RankTimeout(
        f"{len(waiting)} of {job.world_size} ranks had not finished after {job.deadline_s:g} s:", reports, str(job.folder)
    )


def _dump(job: Job, rank: int) -> str:
    path = stack_file(job.folder, rank)
    return path.read_text(errors="replace") if path.exists() else ""


def _report(rank: int, row: Row, job: Job) -> RankReport:
    """What is known of one rank."""
    path = error_file(job.folder, rank, row.attempt)
    if path.exists():
        error = json.loads(path.read_text())
        state = "lost its peer" if error["victim"] else "failed"
        return RankReport(rank, state, error["message"], error["where"], error["text"])
    dump = _dump(job, rank)
    if dump:
        function, where = waits_in(dump, job.origin)
        return RankReport(rank, "waiting", f"in {function}, step {max(0, row.step - 1)}", where, dump)
    if row.state >= RankState.RETURNED:
        return RankReport(rank, "returned", f"after {row.step} steps")
    if row.pid == 0:
        return RankReport(rank, "not started", "the process did not reach labkit's code")
    return RankReport(rank, "ended", f"with the others, in step {max(0, row.step - 1)}")


def _explain(error: BaseException, rows: list[Row], job: Job) -> Exception:
    """Turn what the agent raised into the named error that tells the cause first."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    if not isinstance(error, ChildFailedError):
        return LaunchError(f"the ranks could not be started: {type(error).__name__}: {error}")
    first, failure = next(iter(error.failures.items()))
    reports = {rank: _report(rank, rows[rank], job) for rank in range(job.world_size)}
    left = [rank for rank, row in enumerate(rows) if row.state in (RankState.RETURNED, RankState.DONE)]
    failed = [rank for rank, report in reports.items() if report.state == "failed"]
    if reports[first].state not in ("failed", "lost its peer"):
        name = signal.Signals(-failure.exitcode).name if failure.exitcode < 0 else f"exit code {failure.exitcode}"
        reports[first] = RankReport(first, "killed", f"by {name} in step {max(0, rows[first].step - 1)}")
        failed.insert(0, first)
    if failed:
        cause = failed[0]
        summary = f"rank {cause} {reports[cause].state}; the other ranks were ended:"
        return RankFailed(summary, _first(cause, reports), str(job.folder))
    if left:
        summary = f"rank {left[0]} returned while others still waited for it in a collective:"
        return RankLeftEarly(summary, _first(left[0], reports), str(job.folder))
    return RankFailed(f"rank {first} failed:", _first(first, reports), str(job.folder))


def _first(cause: int, reports: dict[int, RankReport]) -> dict[int, RankReport]:
    return {cause: reports[cause], **{rank: report for rank, report in reports.items() if rank != cause}}


def _alive(row: Row) -> bool:
    return row.pid > 0 and started_ticks(row.pid) == row.started_ticks


def _end_ranks(board: Board, agent: _Agent) -> None:
    """Kill what is left of the ranks, and their children; refuse another round; wait for the agent to notice.

    Needed after Stop, a deadline and an interrupt; and when the forkserver was killed, for then the agent believes that
    its ranks are gone while they run on.
    """
    agent.refuse.set()
    board.stop()
    patience = time.monotonic() + 10
    while True:
        for row in board.rows():
            if _alive(row):
                _kill_tree(row.pid)
        if agent.join(0.02):
            break
        if time.monotonic() > patience:
            raise LaunchError("the elastic agent did not end within 10 s after its ranks were killed; restart this process")
    while any(_alive(row) for row in board.rows()) and time.monotonic() < patience:
        time.sleep(0.005)


def _kill_tree(pid: int) -> None:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        process.kill()
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()


def _tidy(folder: Path) -> None:
    """Remove what only served the launch; empty outputs and stacks too."""
    shutil.rmtree(folder / "agent", ignore_errors=True)
    for path in [folder / "board", *folder.glob("store.*"), *folder.glob("*.part")]:
        path.unlink(missing_ok=True)
    for path in [*folder.glob("rank-*.stack"), *folder.glob("rank-*.out")]:
        if path.stat().st_size == 0:
            path.unlink(missing_ok=True)
