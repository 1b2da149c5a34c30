"""Do ranks get their data one after the other?

A lock that crosses processes leaves its mark in the fetches alone: beside others a rank's fetch takes as many times as
long as it is in the queue, and their ends are spaced by what one fetch takes, whichever rank it is. Something that is
shared by equal parts, such as a link or the cores, lets ranks end together. A `threading.Lock` leaves no mark: each process
has its own.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..catalogue import said
from ..under_load import uneven
from ..verdict import Verdict, answering
from .measures import ENOUGH, Sharing, counted, judged_steps, most_inside, serial_share, share_alone, sharing, speed_up

NAME = "cross-process-lock"
QUESTION = "Do the ranks get their data one after the other?"
TIMED = True
_answer = answering(NAME, QUESTION)

SLOWER, NOT_SLOWER = 1.5, 1.2
ONE = 1.35
"""Fetches served at a time, up to which it is one after the other; two or more where nothing is in the way."""

APART = 0.8
"""Share of ends that must be spaced out."""


def detect(record: Record) -> Verdict:
    """Compare the fetches of all ranks with those of one that runs alone."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-waits-for-none")
    if run.fact("workers", 0):
        return _answer("not_applicable", "workers-fetch-ahead")
    if Role.ALONE not in record.runs:
        return _answer("not_applicable", "no-rank-alone")
    shared = sharing(record)
    if shared is None:
        steps = min(len(judged_steps(log)) for log in run.ranks)
        return _answer("inconclusive", "too-few-fetches", steps=steps, least=ENOUGH + 2)
    gain, doubt = speed_up(record), uneven(run, record.runs[Role.ALONE])
    evidence = _evidence(record, shared, gain)
    beside = shared.slowdown * doubt <= NOT_SLOWER or shared.at_once / doubt >= min(2.0, 0.75 * run.world_size)
    if beside or shared.alone_s < 0.001:
        return _answer("clear", "ranks-fetch-beside-each-other", evidence)
    if counted(run, "store_bytes"):  # one link serves requests in turn too, where other programs hold a rank up
        return _answer("inconclusive", "store-serves-in-turn", evidence)
    if shared.slowdown / doubt >= SLOWER and shared.at_once <= ONE and shared.apart >= APART:
        return _in_turn(run, shared, gain, evidence)
    if shared.slowdown >= SLOWER and shared.apart < (APART + 1 / run.world_size) / 2:  # 1/W where all end together
        return _answer("clear", "fetches-share-equally", evidence)
    return _answer("inconclusive", "in-turn-or-equally", evidence)


def _in_turn(run: Run, shared: Sharing, gain: float | None, evidence: dict[str, Quantity]) -> Verdict:
    where = str(run.fact("loader_where", "")) or None
    if gain is None:
        return _answer("found", "fetches-in-turn", evidence, where=where, times=shared.slowdown)
    waste, notes = max(0.0, 1 - gain / run.world_size), (said("work-of-all-ranks", ranks=run.world_size, gain=gain),)
    return _answer("found", "fetches-in-turn", evidence, where=where, waste=waste, notes=notes, times=shared.slowdown)


def _evidence(record: Record, shared: Sharing, gain: float | None) -> dict[str, Quantity]:
    run = record.run
    evidence = {
        "fetch_alone": Quantity(shared.alone_s * 1e3, "ms"),
        "slowest_fetch_together": Quantity(shared.slowdown, "times as long"),
        "fetches_served_at_once": Quantity(shared.at_once, f"at a time, on {run.ranks_said}"),
        "ends_spaced_apart": Quantity(shared.apart, "of the fetches"),
    }
    inside = most_inside(run)
    if inside is not None:
        evidence["ranks_inside_the_lock"] = Quantity(inside, "at most at one moment")
    if gain is not None and share_alone(record) is not None:
        meet = bool(run.fact("meets", False))
        evidence["speed_up"] = Quantity(gain, "x one rank alone")
        evidence["serial_share_fitted"] = Quantity(serial_share(gain, run.world_size, meet=meet), "of the work", "fitted")
    return evidence
