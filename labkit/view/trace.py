"""A record as a Chrome trace: a JSON object that Perfetto (ui.perfetto.dev) and chrome://tracing open.

A process is a rank of a launch, a thread a lane of it; collectives that are under way together get threads of their own,
since events of one thread must not overlap in part. Times are microseconds from the first event of all, ranks aligned.
The format: "Trace Event Format" by the Chromium project.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..record.measures_overlap import aligned_offsets
from ..record.schema import LANES, RankLog, Record, Run, Span

STEPS_THREAD = 0
THREADS_A_LANE = 100
"""Threads set aside for each lane: its first, and those for spans that overlap."""

ROLE_SPACE = 10_000
"""Process numbers set aside for each launch."""


def chrome_trace(record: Record) -> dict[str, Any]:
    """Every launch, rank, step, span, scalar and event of a record, as one JSON object of numbers and text."""
    named: list[dict] = []
    timed: list[dict] = []
    for number, (role, run) in enumerate(_in_order(record.runs)):
        offsets = aligned_offsets(run)
        for log, offset in zip(run.ranks, offsets, strict=True):
            pid = number * ROLE_SPACE + log.head.rank
            named += _process(pid, role, log, number)
            timed += _of_rank(pid, log, int(offset), named)
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
    return sorted(runs.items(), key=lambda item: item[0] != "variant")


def _process(pid: int, role: str, log: RankLog, number: int) -> list[dict]:
    name = f"rank {log.head.rank}" if role == "variant" else f"{role}, rank {log.head.rank}"
    facts = {"role": role, "host": log.head.host, "device": log.head.device, "pid": log.head.pid}
    return [
        _meta("process_name", pid, name=name),
        _meta("process_labels", pid, labels=", ".join(f"{key} {value}" for key, value in facts.items())),
        _meta("process_sort_index", pid, sort_index=number * ROLE_SPACE + log.head.rank),
        *_thread(pid, STEPS_THREAD, "steps"),
    ]


def _meta(what: str, pid: int, tid: int = 0, **args: Any) -> dict:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _thread(pid: int, tid: int, name: str) -> list[dict]:
    return [_meta("thread_name", pid, tid, name=name), _meta("thread_sort_index", pid, tid, sort_index=tid)]


def _of_rank(pid: int, log: RankLog, offset: int, named: list[dict]) -> list[dict]:
    """One rank's events, times in nanoseconds still."""
    found: list[dict] = []
    ends: dict[int, int] = {}
    for step in log.steps:
        start, length = step.start_ns - offset, step.end_ns - step.start_ns
        args = {"step": step.step, "epoch": step.epoch, **step.counts, **_finite(step.scalars)}
        found.append(_complete(f"step {step.step}", "step", pid, STEPS_THREAD, start, length, args))
        for span in sorted(step.spans, key=lambda span: (span.start_ns, -span.end_ns)):
            tid = _free_thread(span, ends)
            if tid not in ends:
                again = (tid - 1) % THREADS_A_LANE
                named += _thread(pid, tid, span.lane if not again else f"{span.lane} {again + 1}")
            ends[tid] = max(span.end_ns, span.start_ns)
            found.append(
                _complete(
                    span.name, span.lane, pid, tid, span.start_ns - offset, span.end_ns - span.start_ns, {"step": step.step}
                )
            )
        for name, value in _finite(step.scalars).items():
            found.append({"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": step.end_ns - offset, "args": {name: value}})
    for event in log.events:
        args = {"step": event.step, **{key: _plain(value) for key, value in event.fields.items()}}
        at = event.time_ns - offset
        found.append({"ph": "i", "s": "p", "name": event.name, "cat": "event", "pid": pid, "tid": 0, "ts": at, "args": args})
    return found


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
