"""Do all ranks together get no more from the store than one gets alone?

A store that gives one rank R gives W ranks R/W each. By the bytes that the program counts as read (`store_bytes`), over
the time in which ranks fetch, beside those of one rank that reads alone.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..runs import union_ns
from ..under_load import uneven
from ..verdict import Verdict, answering, either
from .measures import ENOUGH, counted, fetches, store_rates

NAME = "saturated-store"
QUESTION = "Is the store that all ranks read from at its limit?"
TIMED = True
_answer = answering(NAME, QUESTION)

NO_MORE, MORE = 1.3, 1.7
"""All ranks together beside one alone: under the first the store is at its limit, over the second it is not."""


def detect(record: Record) -> Verdict:
    """Compare the bytes a second of all ranks with those of one rank alone."""
    run = record.run
    if not counted(run, "store_bytes"):
        return _answer(
            "not_applicable",
            cause="the program counted no bytes read from a store",
            fix='count them: probe.count("store_bytes", num_bytes)',
        )
    if run.world_size == 1 or Role.ALONE not in record.runs:
        return _answer(
            "not_applicable",
            cause="there is nothing to compare with: it takes several ranks, and one that reads alone",
            fix=either(
                lab="run with 2 ranks or more and --set compare=all",
                script="start it on one rank too, and compare the bytes a second of the two runs",
            ),
        )
    if run.fact("workers", 0):
        return _answer(
            "not_applicable",
            cause="workers read ahead: what a rank waits is not the time in which it reads",
            fix="run once without workers (num_workers=0)",
        )
    if not counted(run, "store_bytes", later=True) and len({step.epoch for step in run.ranks[0].steps}) > 1:
        return _answer("clear", _bytes(run), cause="the store is read in the first epoch, and no more after it")
    own, alone = _rate(run), _rate(record.runs[Role.ALONE])
    if own is None or alone is None:
        return _answer(
            "inconclusive", _bytes(run), cause="too few steps read from the store", fix=f"run {ENOUGH + 2} steps or more"
        )
    source = record.store_source
    times, rates = own / alone, store_rates(run)
    evidence = {
        "rate_together": Quantity(own * 8 / 1e6, "Mbit/s", source),
        "rate_of_one_alone": Quantity(alone * 8 / 1e6, "Mbit/s", source),
        "together_beside_alone": Quantity(times, f"x, on {run.ranks_said}", source),
    }
    if rates is not None:
        evidence["rate_of_each_rank"] = Quantity(float(rates.mean()) * 8 / 1e6, "Mbit/s", source)
    doubt = uneven(run, record.runs[Role.ALONE])
    if times <= NO_MORE / doubt:
        return _answer(
            "found",
            evidence,
            cause=f"{run.world_size} ranks together read {times:.2f} times what one reads alone: each gets "
            f"1/{run.world_size} of it, and further ranks would get less",
            fix="keep what was read on each host's own disk (a cache), so that the store is read once; or a store whose "
            "rate grows with its readers",
            where=str(run.fact("loader_where", "")) or None,
            waste=max(0.0, 1 - times / run.world_size),
        )
    if times >= doubt * min(MORE, 0.8 * run.world_size):
        return _answer(
            "clear", evidence, cause=f"{run.world_size} ranks together read {times:.2f} times what one reads alone"
        )
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{run.world_size} ranks together read {times:.2f} times what one reads alone: near its limit, or noise",
        fix="run with more ranks, or more steps",
    )


def _rate(run: Run) -> float | None:
    """Bytes a second of all ranks together, over the time in which any of them fetches."""
    rates, spans = store_rates(run), fetches(run)
    if rates is None:
        return None
    seconds = np.array([sum(s.end_ns - s.start_ns for s in own) / 1e9 for own in spans])
    return float((rates * seconds).sum() / (union_ns(span for own in spans for span in own) / 1e9))


def _bytes(run: Run) -> dict[str, Quantity]:
    return {
        "bytes_first_epoch": Quantity(counted(run, "store_bytes", later=False), "bytes"),
        "bytes_later": Quantity(counted(run, "store_bytes", later=True), "bytes"),
    }
