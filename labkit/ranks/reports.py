"""What became of each rank, and the named error that tells the cause first."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import time

from ..errors import LabkitError, LaunchError, RankFailed, RankLeftEarly, RankReport, RankTimeout
from ..words import plural
from .agent import Abandoned
from .board import Board, RankState, Row
from .job import Job, error_file, stack_file
from .stacks import waits_in

_DUMP_WAIT_S = 0.5

OUT_OF_MEMORY = "; where nobody sent it, the system did, for want of memory: give smaller sizes or fewer ranks"
"""What a reader should think of when a rank was killed, and no fault was planned that did it."""


def timeout(board: Board, job: Job) -> RankTimeout:
    """Take the stack of every rank that runs, then say where each waits. *Called on* the parent, at the deadline."""
    rows = board.rows()
    waiting = [rank for rank, row in enumerate(rows) if row.is_alive and row.state < RankState.FAILED]
    for rank in waiting:
        if stack_file(job.folder, rank).exists():  # from then on a rank takes SIGUSR1 as a request for its stack
            with contextlib.suppress(ProcessLookupError):
                os.kill(rows[rank].pid, signal.SIGUSR1)
    patience = time.monotonic() + _DUMP_WAIT_S
    while time.monotonic() < patience and any(not _dump(job, rank) for rank in waiting):
        time.sleep(0.02)
    time.sleep(0.02)  # the last of them may still be writing
    reports = {rank: _report(rank, rows[rank], job) for rank in range(job.world_size)}
    for rank in waiting:
        if not _dump(job, rank):
            reports[rank] = RankReport(rank, "waiting", f"in step {_step(rows[rank])}; its stack could not be taken")
    unfinished = sum(row.state < RankState.DONE for row in rows)
    summary = f"{unfinished} of {plural(job.world_size, 'rank')} had not finished after {job.deadline_s:g} s:"
    return RankTimeout(summary, reports, str(job.folder))


def explain(error: BaseException, rows: list[Row], job: Job, lost: list[int], server_died: bool) -> LabkitError:
    """Turn what the agent raised into the named error that tells the cause first.

    Args:
        error: from the agent. It names one rank, which may only have met the consequences.
        rows: the board, once all ranks have ended.
        lost: ranks that the supervisor found gone although the agent did not notice.
        server_died: whether the process that ranks are forked from is gone.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    if server_died:
        return LaunchError(
            "the warm server that ranks are started from was killed, and the ranks with it; "
            "run again: the next launch starts a new one"
        )
    if isinstance(error, ChildFailedError):
        first, failure = next(iter(error.failures.items()))
    elif isinstance(error, Abandoned) and lost:
        first, failure = lost[0], None
    else:
        return LaunchError(f"the ranks could not be started: {type(error).__name__}: {error}")
    reports = {rank: _report(rank, row, job) for rank, row in enumerate(rows)}
    failed = [rank for rank, report in reports.items() if report.state == "failed"]
    # a rank that failed for want of another is lost too, and not the cause
    gone = [rank for rank in lost if rows[rank].state != RankState.FAILED] or _gone_by_victims(reports, rows, job)
    returned = [rank for rank, row in enumerate(rows) if row.state in (RankState.RETURNED, RankState.DONE)]
    if failed:
        cause = first if first in failed else failed[0]
    elif failure is not None and not lost and reports[first].state != "lost its peer":
        cause = first
        name = signal.Signals(-failure.exitcode).name if failure.exitcode < 0 else f"exit code {failure.exitcode}"
        hint = OUT_OF_MEMORY if name == "SIGKILL" and not rows[first].faults else ""
        reports[first] = RankReport(first, "killed", f"by {name} in step {_step(rows[first])}{hint}")
    elif gone:
        cause = gone[0]
        what = f"in step {_step(rows[cause])}: its process ended without returning and without an error"
        reports[cause] = RankReport(cause, "vanished", what)
    elif returned:
        cause = returned[0]
        summary = f"rank {cause} returned while others still waited for it in a collective:"
        return RankLeftEarly(summary, _cause_first(cause, reports), str(job.folder))
    else:
        cause = first
    summary = f"rank {cause} {reports[cause].state}; the other ranks were ended:"
    return RankFailed(summary, _cause_first(cause, reports), str(job.folder))


def _report(rank: int, row: Row, job: Job) -> RankReport:
    """What is known of one rank."""
    error = _error(rank, row, job)
    if error is not None:
        state = "lost its peer" if error["victim"] else "failed"
        return RankReport(rank, state, error["message"], error["where"], error["text"])
    if row.state == RankState.FAILED and row.errno == errno.ENOENT:
        gone = f"and its error could not be written: {job.folder} is gone, as if the program had deleted it"
        return RankReport(rank, "failed", f"in step {_step(row)}, {gone}")
    if row.state == RankState.FAILED and row.errno:
        why = f"in step {_step(row)}, and its error could not be written: {os.strerror(row.errno)}"
        return RankReport(rank, "failed", f"{why}; make room at {job.folder}, or choose another place for the record")
    dump = _dump(job, rank)
    if dump:
        function, where = waits_in(dump, job.origin)
        return RankReport(rank, "waiting", f"in {function}, step {_step(row)}", where, dump)
    if row.state in (RankState.RETURNED, RankState.DONE):
        return RankReport(rank, "returned", f"after {plural(row.step, 'step')}")
    if row.pid == 0:
        return RankReport(rank, "not started", "the process did not reach labkit's code")
    return RankReport(rank, "ended", f"with the others, in step {_step(row)}")


def _error(rank: int, row: Row, job: Job) -> dict | None:
    path = error_file(job.folder, rank, row.attempt)
    return json.loads(path.read_text()) if path.exists() else None


def _gone_by_victims(reports: dict[int, RankReport], rows: list[Row], job: Job) -> list[int]:
    """Ranks whose process was gone already when those that waited for them noticed."""
    errors = [_error(rank, rows[rank], job) for rank, report in reports.items() if report.state == "lost its peer"]
    return sorted({rank for error in errors if error is not None for rank in error["gone"]})


def _step(row: Row) -> int:
    return max(0, row.step - 1)


def _dump(job: Job, rank: int) -> str:
    path = stack_file(job.folder, rank)
    return path.read_text(errors="replace") if path.exists() else ""


def _cause_first(cause: int, reports: dict[int, RankReport]) -> dict[int, RankReport]:
    return {cause: reports[cause], **{rank: report for rank, report in reports.items() if rank != cause}}
