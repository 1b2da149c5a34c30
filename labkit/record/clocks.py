"""Which ranks share a clock, and how those that do not are put on one. The only place where times are shifted.

Ranks of one machine read one monotonic clock, so their times compare as they are. Shifting each by its own exit from a
barrier would add what the exits differ by: milliseconds on busy cores, enough to draw a collective that ends on one rank
before it begins on another. Ranks of several machines have a barrier in common and nothing else: each machine is shifted
by the earliest exit of its ranks, which is the least delayed.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import xxhash

from .schema import Event, Head, RankLog, Run, Span, Step
from .vocabulary import INSTANTS

ONE_CLOCK_NS = 5_000_000_000
"""Of records that name no clock: stamps of the barrier that are less apart than this are of one machine."""


def clock_id() -> str:
    """What the monotonic clock of this process is shared with, as a short hash: one boot, in one time namespace.

    Hosts that are network namespaces of one machine share it.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        boot += os.readlink("/proc/self/ns/time")
    except OSError:
        boot = socket.gethostname()
    return xxhash.xxh3_64_hexdigest(boot.encode())[:8]


def one_clock(run: Run) -> bool:
    """Whether all ranks of a run read one clock.

    Where an older record names none, stamps of the common barrier that are close together tell.
    """
    named = [log.head.clock for log in run.ranks]
    if all(named):
        return len(set(named)) == 1
    stamps = [log.head.barrier_ns for log in run.ranks]
    return max(stamps) - min(stamps) < ONE_CLOCK_NS


def on_one_clock(run: Run) -> Run:
    """The run with all times on the first rank's clock: as it is where ranks share one, else each machine shifted.

    A record is passed through here once, as it is read.
    """
    if one_clock(run):
        return run
    left: dict[str, int] = {}
    for log in run.ranks:
        own = _clock_of(log.head)
        left[own] = min(left.get(own, log.head.barrier_ns), log.head.barrier_ns)
    origin = left[_clock_of(run.ranks[0].head)]

    def shifted(log: RankLog) -> RankLog:
        # a machine that took part in an earlier attempt alone has no barrier in common with the others
        return _shifted(log, origin - left.get(_clock_of(log.head), log.head.barrier_ns))

    return msgspec.structs.replace(
        run,
        ranks=tuple(map(shifted, run.ranks)),
        earlier=tuple(tuple(map(shifted, logs)) for logs in run.earlier),
    )


def _clock_of(head: Head) -> str:
    return head.clock or f"of rank {head.rank}"


def _shifted(log: RankLog, by: int) -> RankLog:
    if not by:
        return log
    return msgspec.structs.replace(
        log,
        steps=tuple(_shifted_step(step, by) for step in log.steps),
        events=tuple(Event(event.name, event.step, event.time_ns + by, event.fields) for event in log.events),
    )


def _shifted_step(step: Step, by: int) -> Step:
    return msgspec.structs.replace(
        step,
        start_ns=step.start_ns + by,
        end_ns=step.end_ns + by,
        spans=[Span(span.name, span.lane, span.start_ns + by, span.end_ns + by) for span in step.spans],
        series={name: [v + by for v in values] if name in INSTANTS else values for name, values in step.series.items()},
    )
