"""Do ranks wait for communication that could have been hidden?

Judged by spans within each step: what of the collectives lies outside all computing. Only a backward pass can hide a
reduction, so no more can be asked than the shorter of the two; and the last bucket always sets out when all is computed.
Where communication is a few percent of the step, there is nothing to gain here and nothing to learn about another link.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run, Source
from ...theory.overlap_model import MIB, first_try_mib
from ...words import plural
from ..spread import FLOOR_S, median_interval
from ..under_load import is_heavy, pressure
from ..verdict import Verdict, answering, either
from .measures import Exposure, buckets, computing_is_known, exposure, is_sweep

NAME = "exposed-communication"
QUESTION = "Do ranks wait for communication that the backward pass could hide?"
TIMED = True
_answer = answering(NAME, QUESTION)

FEW = 0.05
"""Communication under this share of the step gains too little, whatever becomes of it, to be told from noise."""

WORTH = 0.08
"""Share of the step that could be saved, below which it is not worth a change."""

HALF = 0.5
"""Hidden, of what could be hidden: less is found, more is clear."""

ENOUGH_STEPS = 3

LATENCY_BYTES = 2**16
"""Gradients of less than this take a latency to send, and hardly more, on any link that one trains over."""


def detect(record: Record) -> Verdict:
    """Judge the measured steps of the run under study."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", cause="one rank has nobody to send to", fix="run with 2 ranks or more")
    if is_sweep(run):
        return _answer(
            "not_applicable",
            cause="the run tried several bucket sizes; each has an answer of its own",
            fix=either(
                lab="look at the figure bucket-sweep, or run one size: --variant fixed --set bucket_mb=1",
                script="look at the figure bucket-sweep, or run one size",
            ),
        )
    if not computing_is_known(run):
        return _answer(
            "not_applicable",
            cause="collectives lie within what the program calls computing, and nobody saw when its own computing ended: "
            "loss.backward() of a DDP module ends when its reductions have",
            fix="watch the DDP module with watch_ddp(ddp, probe), which tells computing from waiting",
        )
    seen = exposure(run)
    if seen is None:
        return _answer(
            "not_applicable",
            cause="no collective was timed",
            fix="watch the DDP module with watch_ddp(ddp, probe) before its first pass, and register no communication hook "
            "before that",
        )
    if not seen.backward_s.any():
        return _answer(
            "not_applicable",
            cause="no backward pass was timed, and only that could hide a reduction",
            fix="watch the DDP module with watch_ddp(ddp, probe), which tells computing from waiting",
        )
    return _judge(run, seen, record.link_source)


def _judge(run: Run, seen: Exposure, source: Source | None) -> Verdict:
    hideable = np.minimum(seen.comm_s, seen.backward_s)
    hidden = np.clip((seen.comm_s - seen.exposed_s) / np.maximum(hideable, 1e-12), 0, 1)  # behind the forward pass too
    avoidable = np.maximum(0, seen.exposed_s - np.maximum(0, seen.comm_s - seen.backward_s)) / seen.step_s
    share, saved = float(np.median(seen.comm_s / seen.step_s)), float(np.median(avoidable))
    evidence = _evidence(run, seen, hidden, avoidable, source)
    where = str(run.fact("wrap_where", "")) or None
    if share < FEW:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"communication is {share:.1%} of the step: whether it is hidden or not, nobody would notice on this link",
            fix=either(
                lab="measure on the link that you will train on, or set a slower one (--hosts 2 --link 400mbit)",
                script="measure on the link that you will train on",
            ),
        )
    if len(hidden) < ENOUGH_STEPS:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{plural(len(hidden), 'measured step')} cannot show how much steps differ",
            fix=either(
                lab=f"run {ENOUGH_STEPS + 2} steps or more (--steps {ENOUGH_STEPS + 2})",
                script=f"run {ENOUGH_STEPS + 2} steps or more",
            ),
        )
    (low, high), (least, most) = median_interval(hidden), median_interval(avoidable)
    # what others take of the cores makes steps longer, and so a share of them smaller, but not what is waited for
    little = most * pressure(run) < WORTH and not is_heavy(run)
    if little or low >= HALF:
        return _answer(
            "clear",
            evidence,
            cause=f"{np.median(hidden):.0%} of the communication that the backward pass can hide is hidden; {saved:.0%} of "
            "the step is left to gain",
        )
    if least >= WORTH and high < HALF and float(np.median(avoidable * seen.step_s)) > FLOOR_S:
        return _answer("found", evidence, cause=_cause(run, seen, hidden), fix=_fix(run), where=where, waste=saved)
    return _answer(
        "inconclusive",
        evidence,
        cause=f"between {low:.0%} and {high:.0%} of what could be hidden is hidden, by the step, and {least:.0%} to "
        f"{most:.0%} of the step is left to gain: noise decides",
        fix=either(
            lab="run more steps (--steps 20) on a machine that does nothing else",
            script="run more steps on a machine that does nothing else",
        ),
    )


def _cause(run: Run, seen: Exposure, hidden: np.ndarray) -> str:
    made, exposed = buckets(run), float(np.median(seen.exposed_s)) * 1e3
    waits = f"of each step ranks wait {exposed:.0f} ms for communication alone"
    if made is None:
        return f"{waits}: gradients are reduced after the backward pass, when nothing is left to compute meanwhile"
    if len(made.num_bytes) == 1:
        return (
            f"{waits}: one bucket holds all {int(made.num_bytes.sum()):,} bytes of gradients, and is full when the backward "
            "pass is over"
        )
    largest = int(made.num_bytes.max())
    return (
        f"{waits}, {float(np.median(hidden)):.0%} of what could be hidden is: of {len(made.num_bytes)} buckets the largest "
        f"holds {largest / made.num_bytes.sum():.0%} of the bytes"
    )


def _fix(run: Run) -> str:
    made = buckets(run)
    if made is None:
        return "let DistributedDataParallel reduce during the backward pass, in buckets, instead of a loop after it"
    if made.num_bytes.sum() < LATENCY_BYTES:
        return (
            "smaller buckets do not help gradients that are so few bytes, for each costs a latency: let a step compute more "
            "(a larger batch, or several micro-batches with no_sync)"
        )
    start = first_try_mib(float(made.num_bytes.sum()))
    if made.num_bytes.max() <= start * MIB:
        return (
            "try half and twice the bucket size (bucket_cap_mb): the last bucket is waited for as a whole, and each costs a "
            "latency; if neither helps, send less (several micro-batches with no_sync)"
        )
    return (
        f"give DDP smaller buckets: bucket_cap_mb={start:.2g} (MiB) is a start; then try half and twice as much, since each "
        "bucket costs a latency"
    )


def _evidence(
    run: Run, seen: Exposure, hidden: np.ndarray, avoidable: np.ndarray, source: Source | None
) -> dict[str, Quantity]:
    made = buckets(run)
    found = {
        "step": Quantity(float(np.median(seen.step_s)) * 1e3, "ms", source),
        "computing": Quantity(float(np.median(seen.compute_s)) * 1e3, "ms"),
        "communication": Quantity(float(np.median(seen.comm_s)) * 1e3, "ms, union of the collectives", source),
        "exposed": Quantity(float(np.median(seen.exposed_s)) * 1e3, "ms", source),
        "hidden": Quantity(float(np.median(hidden)), "of what the backward pass can hide", source),
        "avoidable": Quantity(float(np.median(avoidable)), "of the step", source),
        "steps": Quantity(len(seen.step_s), "measured"),
    }
    return found if made is None else found | {"collectives": Quantity(len(made.num_bytes), "a reduction")}
