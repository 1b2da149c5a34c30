"""A record as a Chrome trace: a JSON object that Perfetto (ui.perfetto.dev) and chrome://tracing open.

A process is a rank in one attempt of a launch, a thread a lane of it; collectives that are under way together get threads
of their own, since events of one thread must not overlap in part. Where a launch was restarted, the steps that a later
attempt did again are marked as lost, and a process of its own shows the time from each crash to the next step. Times are
microseconds from the first event of all, all ranks and attempts on one clock.
The format: "Trace Event Format" by the Chromium project.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..detect.crash.measures import Crash, crashes, steps_that_count
from ..record.roles import Role
from ..record.schema import LANES, RankLog, Record, Run, Span, Step

STEPS_THREAD = 0
THREADS_A_LANE = 100
"""Threads set aside for each lane: its first, and those for spans that overlap."""


def chrome_trace(record: Record) -> dict[str, Any]:
    """Every launch, attempt, rank, step, span, scalar and event of a record, as one JSON object of numbers and text."""
    named: list[dict] = []
    timed: list[dict] = []
    pid = 0
    for role, run in _in_order(record.runs):
        counting = steps_that_count(run) if run.earlier else {}
        for number, logs in enumerate((*run.earlier, run.ranks)):
            for log in logs:
                pid += 1
                named += _process(pid, _name(role, log, number, run), role, log)
                timed += _of_rank(pid, log, named, counting.get(log.head.rank))
        restarts = crashes(run) if run.earlier else []
        if restarts:
            pid += 1
            name = "restarts" if role == Role.VARIANT else f"{role}, restarts"
            named += [*_named_process(pid, name), *_thread(pid, STEPS_THREAD, "from the crash to the next step")]
            timed += [_restart(pid, crash) for crash in restarts]
    origin = min((event["ts"] for event in timed), default=0)
    for event in timed:
        event["ts"] = (event["ts"] - origin) / 1000
        if "dur" in event:
            event["dur"] /= 1000
    timed.sort(key=lambda event: (event["ts"], -event.get("dur", 0)))
    return {
        "traceEvents": named + timed,
        "displayTimeUnit": "ms",
        "otherData": {"lab": record.lab, "variant": record.variant, "provenance": record.provenance.label()},
    }


def _in_order(runs: dict[str, Run]) -> list[tuple[str, Run]]:
    """The launch under study first."""
    return sorted(runs.items(), key=lambda item: item[0] != Role.VARIANT)


def _name(role: str, log: RankLog, number: int, run: Run) -> str:
    """A rank's, with its attempt where there were several."""
    name = f"rank {log.head.rank}" if role == Role.VARIANT else f"{role}, rank {log.head.rank}"
    return name if not run.earlier else f"{name}, attempt {number + 1} of {len(run.earlier) + 1}"


def _process(pid: int, name: str, role: str, log: RankLog) -> list[dict]:
    facts = {"role": role, "host": log.head.host, "device": log.head.device, "pid": log.head.pid}
    return [
        *_named_process(pid, name),
        _meta("process_labels", pid, labels=", ".join(f"{key} {value}" for key, value in facts.items())),
        *_thread(pid, STEPS_THREAD, "steps"),
    ]


def _named_process(pid: int, name: str) -> list[dict]:
    return [_meta("process_name", pid, name=name), _meta("process_sort_index", pid, sort_index=pid)]


def _restart(pid: int, crash: Crash) -> dict:
    """From a crash to the first step after it."""
    told = {"steps_done": crash.done, "resumed_at": crash.resumed_at, "lost_steps": crash.lost_steps}
    name = f"restart: {crash.lost_steps} steps lost"
    return _complete(name, "restart", pid, STEPS_THREAD, crash.crashed_ns, crash.resumed_ns - crash.crashed_ns, told)


def _meta(what: str, pid: int, tid: int = 0, **args: Any) -> dict:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _thread(pid: int, tid: int, name: str) -> list[dict]:
    return [_meta("thread_name", pid, tid, name=name), _meta("thread_sort_index", pid, tid, sort_index=tid)]


def _of_rank(pid: int, log: RankLog, named: list[dict], counting: dict[int, Step] | None) -> list[dict]:
    """One rank's events, times in nanoseconds still.

    Args:
        counting: the rank's steps that no later attempt did again; None where there was one attempt.
    """
    found: list[dict] = []
    ends: dict[int, int] = {}
    for step in log.steps:
        found.append(_step(pid, step, lost=counting is not None and counting.get(step.step) is not step))
        for span in sorted(step.spans, key=lambda span: (span.start_ns, -span.end_ns)):
            tid = _free_thread(span, ends)
            if tid not in ends:
                again = (tid - 1) % THREADS_A_LANE
                named += _thread(pid, tid, span.lane if not again else f"{span.lane} {again + 1}")
            ends[tid] = max(span.end_ns, span.start_ns)
            length = span.end_ns - span.start_ns
            found.append(_complete(span.name, span.lane, pid, tid, span.start_ns, length, {"step": step.step}))
        for name, value in _finite(step.scalars).items():
            found.append({"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": step.end_ns, "args": {name: value}})
    for event in log.events:
        args = {"step": event.step, **{key: _plain(value) for key, value in event.fields.items()}}
        place = {"pid": pid, "tid": 0, "ts": event.time_ns}
        found.append({"ph": "i", "s": "p", "name": event.name, "cat": "event", **place, "args": args})
    return found


def _step(pid: int, step: Step, lost: bool) -> dict:
    args = {"step": step.step, "epoch": step.epoch, **step.counts, **_finite(step.scalars)}
    length = step.end_ns - step.start_ns
    if not lost:
        return _complete(f"step {step.step}", "step", pid, STEPS_THREAD, step.start_ns, length, args)
    name = f"step {step.step}, lost: done again after the restart"
    return _complete(name, "lost step", pid, STEPS_THREAD, step.start_ns, length, args)


def _complete(name: str, category: str, pid: int, tid: int, start: int, length: int, args: dict) -> dict:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": max(0, length),
        "args": args,
    }


def _free_thread(span: Span, ends: dict[int, int]) -> int:
    """The first thread of the span's lane on which nothing runs any more."""
    first = 1 + (LANES.index(span.lane) if span.lane in LANES else len(LANES)) * THREADS_A_LANE
    for tid in range(first, first + THREADS_A_LANE - 1):
        if ends.get(tid, -1) <= span.start_ns:
            return tid
    return first + THREADS_A_LANE - 1


def _finite(scalars: Mapping[str, float | str]) -> dict[str, float]:
    """Scalars that JSON has a number for."""
    return {name: float(value) for name, value in scalars.items() if math.isfinite(float(value))}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
