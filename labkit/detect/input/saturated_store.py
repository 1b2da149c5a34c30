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
from ..verdict import Verdict, answering
from .measures import ENOUGH, counted, fetches, store_rates

NAME = "saturated-store"
QUESTION = "Is the store that all ranks share at its limit?"
TIMED = True
_answer = answering(NAME, QUESTION)

NO_MORE, MORE = 1.3, 1.7
"""All ranks together beside one alone: under the first the store is at its limit, over the second it is not."""


def detect(record: Record) -> Verdict:
    """Compare the bytes a second of all ranks with those of one rank alone."""
    run = record.run
    if not counted(run, "store_bytes"):
        return _answer("not_applicable", "no-store-bytes")
    if run.world_size == 1 or Role.ALONE not in record.runs:
        return _answer("not_applicable", "no-reader-alone")
    if run.fact("workers", 0):
        return _answer("not_applicable", "workers-read-ahead")
    if not counted(run, "store_bytes", later=True) and len({step.epoch for step in run.ranks[0].steps}) > 1:
        return _answer("clear", "store-read-once", _bytes(run))
    own, alone = _rate(run), _rate(record.runs[Role.ALONE])
    if own is None or alone is None:
        return _answer("inconclusive", "too-few-store-reads", _bytes(run), least=ENOUGH + 2)
    evidence, numbers = _rates(record, own, alone), {"ranks": run.world_size, "times": own / alone}
    doubt = uneven(run, record.runs[Role.ALONE])
    if own / alone <= NO_MORE / doubt:
        where, waste = str(run.fact("loader_where", "")) or None, max(0.0, 1 - own / alone / run.world_size)
        return _answer("found", "store-at-its-limit", evidence, where=where, waste=waste, **numbers)
    if own / alone >= doubt * min(MORE, 0.8 * run.world_size):
        return _answer("clear", "store-gives-more", evidence, **numbers)
    return _answer("inconclusive", "store-near-its-limit", evidence, **numbers)


def _rates(record: Record, own: float, alone: float) -> dict[str, Quantity]:
    source, rates = record.store_source, store_rates(record.run)
    evidence = {
        "rate_together": Quantity(own * 8 / 1e6, "Mbit/s", source),
        "rate_of_one_alone": Quantity(alone * 8 / 1e6, "Mbit/s", source),
        "together_beside_alone": Quantity(own / alone, f"x, on {record.run.ranks_said}", source),
    }
    if rates is not None:
        evidence["rate_of_each_rank"] = Quantity(float(rates.mean()) * 8 / 1e6, "Mbit/s", source)
    return evidence


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
