"""Do ranks get their data one after the other?

A lock that crosses processes leaves its mark in the fetches alone: beside others a rank's fetch takes as many times as
long as it is in the queue, and their ends are spaced by what one fetch takes, whichever rank it is. Something that is
shared by equal parts, such as a link or the cores, lets ranks end together. A `threading.Lock` leaves no mark: each process
has its own.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ...words import plural
from ..under_load import uneven
from ..verdict import Verdict, answering, either
from .measures import ENOUGH, judged_steps, most_inside, serial_share, share_alone, sharing, speed_up

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
        return _answer("not_applicable", cause="one rank waits for no other", fix="run with 2 ranks or more")
    if run.fact("workers", 0):
        return _answer(
            "not_applicable",
            cause="workers fetch ahead: what a rank waits says little of what they wait for",
            fix="run once without workers (num_workers=0)",
        )
    if Role.ALONE not in record.runs:
        return _answer(
            "not_applicable",
            cause="the record holds no run of one rank alone to compare with",
            fix=either(
                lab="run it with --set compare=all, or with --ranks 1 beside",
                script="start it on one rank too, and compare the data spans of the two runs",
            ),
        )
    shared = sharing(record)
    if shared is None:
        steps = plural(min(len(judged_steps(log)) for log in run.ranks), "step")
        return _answer("inconclusive", cause=f"too few to judge by: {steps}", fix=f"run {ENOUGH + 2} steps or more")
    gain, share = speed_up(record), share_alone(record)
    evidence = {
        "fetch_alone": Quantity(shared.alone_s * 1e3, "ms"),
        "slowest_fetch_together": Quantity(shared.slowdown, "times as long"),
        "fetches_served_at_once": Quantity(shared.at_once, f"at a time, on {run.ranks_said}"),
        "ends_spaced_apart": Quantity(shared.apart, "of the fetches"),
    }
    inside = most_inside(run)
    if inside is not None:
        evidence["ranks_inside_the_lock"] = Quantity(inside, "at most at one moment")
    if gain is not None and share is not None:
        meet = bool(run.fact("meets", False))
        evidence["speed_up"] = Quantity(gain, "x one rank alone")
        evidence["serial_share_fitted"] = Quantity(serial_share(gain, run.world_size, meet=meet), "of the work", "fitted")
    doubt = uneven(run, record.runs[Role.ALONE])
    beside = shared.slowdown * doubt <= NOT_SLOWER or shared.at_once / doubt >= min(2.0, 0.75 * run.world_size)
    if beside or shared.alone_s < 0.001:
        return _answer("clear", evidence, cause="ranks fetch beside each other as fast as alone, or several at a time")
    if shared.slowdown / doubt >= SLOWER and shared.at_once <= ONE and shared.apart >= APART:
        said = "" if gain is None else f": {run.world_size} ranks do {gain:.2f} times the work of one"
        return _answer(
            "found",
            evidence,
            cause="fetches end one after the other, half a fetch apart or more, whichever rank they are of, and take "
            f"{shared.slowdown:.1f} times as long as alone{said}",
            fix="find what all processes of this host take in turn (a file lock, a multiprocessing lock, a database of one "
            "writer) and let each rank have its own, or hold it for less of the work; a threading.Lock is not it",
            where=str(run.fact("loader_where", "")) or None,
            waste=None if gain is None else max(0.0, 1 - gain / run.world_size),
        )
    if shared.slowdown >= SLOWER and shared.apart < (APART + 1 / run.world_size) / 2:  # 1/W where all end together
        return _answer(
            "clear",
            evidence,
            cause="fetches take longer beside each other, but end together: something is shared by equal parts, not in turn",
        )
    return _answer(
        "inconclusive",
        evidence,
        cause="fetches take longer beside each other, and noise hides whether they come in turn or share by equal parts",
        fix="run more steps on a quiet machine",
    )
