"""Does a resumed run read on where it stopped?

A loader that begins its epoch anew after a resume reads the first part of it twice and, where the run ends by a number of
steps, leaves the last part out. A sampler that is told the wrong epoch repeats the order of another one. Both go by
unseen: the loss even looks better, on samples that were seen before.
"""

from __future__ import annotations

import re

from ...record.quantity import Quantity
from ...record.schema import RankLog, Record, Run
from ..verdict import Verdict, answering
from .passes import Part, ends, keys, parts, surplus
from .resumed import Resumed, resumes

NAME = "resume-position"
QUESTION = "Does a resumed run read on where it stopped?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 10
"""Samples whose order is no accident: 1 in 10! is below a millionth."""

TWICE = 0.1
"""Share of the rest of an epoch that may be read twice: a sampler pads, and a last batch is filled up."""

SLOW_S, SLOW = 1.0, 0.05
"""Seconds, and share of the run, that reading samples in vain may take."""


def detect(record: Record) -> Verdict:
    """Compare what was read before the save with what is read after the load."""
    run = record.run
    seen = [one for one in resumes(run) if one.goes_on]
    if not seen:
        return _answer("not_applicable", "no-resume-seen")
    if not any(keys(step) for step in run.ranks[0].steps):
        return _answer("not_applicable", "no-loader-resumed")
    verdicts = [verdict for one in seen for log in run.ranks for verdict in _of(run, log, one)]
    for status in ("found", "inconclusive", "clear"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return _answer("inconclusive", "position-not-known")


def _of(run: Run, log: RankLog, one: Resumed) -> list[Verdict]:
    """What one rank's reads say of one resume; nothing where they say nothing."""
    all_parts = parts(log, one.step)
    after = next((part for part in all_parts if part.first >= one.step), None)
    if after is None:
        return []
    dropped = surplus(log, one.step)
    loader = str(run.fact("loader_where", "")) or None
    tests = (_reads_in_vain(log, one, dropped), _wrong_epoch(log, one, all_parts, after, dropped), _begun_anew(log, one))
    if one.made_here:
        tests = (*tests[:2], _read_twice(log, one, all_parts, after, dropped))
    for test in tests:
        if test is not None:
            status, reason, evidence, numbers = test
            where = loader if reason == "resumes-in-another-epoch" else one.where
            return [_answer(status, reason, evidence, where=where if status == "found" else None, **numbers)]
    return []


def _at_end(log: RankLog, saved_at: int) -> bool:
    """Whether the save came with the last step of a pass."""
    return saved_at in ends(log)


def _read_twice(log: RankLog, one: Resumed, of: list[Part], after: Part, dropped: int):
    """Compare the rest of the epoch in which the save fell with what was read of it before."""
    saved_at = int(one.fields["made_step"])
    begun = next((part for part in of if part.first <= saved_at <= part.last and part.first < one.step), None)
    if begun is None or not begun.reads:
        return None
    if _at_end(log, saved_at):
        return "clear", "resumes-at-an-epoch", {}, {}
    per_step = {step.step: len(step.ids.get("train") or step.digests.get("train", [])) for step in log.steps}
    before = begun.reads[: sum(per_step[step] for step in per_step if begun.first <= step <= saved_at)]
    whole = [len(part.reads) for part in of if part.whole]
    size = max([*whole, len(begun.reads), len(after.reads) - dropped])
    rest = after.reads[dropped:][: max(0, size - len(before))]
    if len(set(before)) < len(before) or len(before) + len(rest) < ENOUGH or not rest or len(before) >= size:
        return None
    twice = len(set(before) & set(rest))
    evidence = {
        "read_before_the_save": Quantity(len(before), "samples of the epoch"),
        "read_after_the_load": Quantity(len(rest), "samples, up to the epoch's size"),
        "read_twice": Quantity(twice, "of them"),
    }
    if twice >= max(2, TWICE * len(rest)):
        return "found", "epoch-begun-anew", evidence, {"twice": twice, "rest": len(rest)}
    return "clear", "reads-on", evidence, {}


def _wrong_epoch(log: RankLog, one: Resumed, of: list[Part], after: Part, dropped: int):
    """Whether the first pass after the load has the order of a pass that was over before the save."""
    saved_at = int(one.fields["made_step"])
    fields = [event for event in log.events if event.name == "sampler_epoch"]
    if not one.made_here:
        return _epoch_of_file(one, fields, log)
    over = [part for part in of if part.whole and part.last <= saved_at]
    reads = after.reads[dropped:]
    orders = {part.reads[:ENOUGH] for part in of if part.whole and len(part.reads) >= ENOUGH}
    partial = [part for part in of if not part.whole and part.last < one.step and len(part.reads) >= ENOUGH]
    orders |= {part.reads[:ENOUGH] for part in partial}
    if len(orders) < 2 or len(reads) < ENOUGH:
        return None
    for number, part in enumerate(over):
        if reads[0] in part.reads:
            at = part.reads.index(reads[0])
            length = min(len(reads), len(part.reads) - at)
            if length >= ENOUGH and part.reads[at : at + length] == reads[:length]:
                evidence = {"in_the_order_of": Quantity(length, f"samples: those of epoch {number}")}
                if fields:
                    return "found", "resumes-in-another-epoch", evidence, {"epoch": number}
                return "inconclusive", "order-is-repeated", evidence, {"epoch": number}
    return None


def _epoch_of_file(one: Resumed, fields: list, log: RankLog):
    """The same for a file of another run: what epoch its counter says, and what epoch the sampler begins with."""
    counted = _counters(one)
    epochs = [value for name, value in counted.items() if "epoch" in name.lower()]
    after = [int(event.fields["epoch"]) for event in fields if event.step >= one.step - 1]
    if not epochs or not one.fields["optimizer_given"] or min(epochs) < 1 or not after:
        return None
    if after[0] == 0 and max(after) > 0:
        evidence = {"epoch_in_file": Quantity(min(epochs)), "epoch_of_sampler": Quantity(after[0])}
        return "found", "resumes-in-another-epoch", evidence, {"epoch": 0}
    return None


def _begun_anew(log: RankLog, one: Resumed):
    """For a file of another run: its counters say that it was saved within an epoch, and a whole epoch is read after it."""
    steps, counted = int(one.fields["file_steps"]), _counters(one)
    if one.made_here or steps < 1 or one.fields["has_scaler"] or not one.fields["optimizer_given"]:
        return None
    updates = {step.step: step.counts.get("updates", 0) for step in log.steps}
    cuts = [cut for cut in ends(log) if cut >= one.step]
    if len(cuts) < 2:
        return None
    first = sum(updates[step] for step in updates if one.step <= step <= cuts[0])
    second = sum(updates[step] for step in updates if cuts[0] < step <= cuts[1])
    within = steps % second if second else 0
    if not within or first != second or not {steps, within, within - 1} & set(counted.values()):
        return None
    evidence = {"updates_an_epoch": Quantity(second), "updates_in_file": Quantity(steps, "of the epochs before")}
    return "found", "epoch-begun-anew-by-count", evidence, {"within": within, "updates": second}


def _counters(one: Resumed) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"([^,=]+)=(-?\d+)", str(one.fields["counters"]))}


def _reads_in_vain(log: RankLog, one: Resumed, dropped: int):
    """Whether samples were loaded to be dropped, and that took long."""
    step = next((step for step in log.steps if step.step == one.step), None)
    if step is None or not dropped:
        return None
    spans = sorted((span.end_ns - span.start_ns for span in step.spans if span.name == "fetch"), reverse=True)
    seconds = sum(spans) / 1e9 * dropped / max(1, len(step.ids.get("train") or step.digests.get("train", [])))
    total = (log.steps[-1].end_ns - log.steps[0].start_ns) / 1e9
    if seconds < SLOW_S or seconds < SLOW * total:
        return None
    evidence = {"dropped": Quantity(dropped, "samples"), "took": Quantity(seconds, "s"), "run": Quantity(total, "s")}
    return "found", "skipped-by-reading", evidence, {"dropped": dropped, "seconds": seconds}
