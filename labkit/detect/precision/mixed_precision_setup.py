"""Is mixed precision set up as its number format needs?

fp16 has small gradients that become 0, and so wants a scaler; bf16 and fp32 have the exponents of fp32, and want none.
Autocast keeps the casts of fp32 weights for as long as it stays open, so it is closed before the optimizer changes them.
Judged by what the script does, not by numbers: which format autocast is opened with, whether a scaler is asked for steps,
and whether autocast is open when an optimizer makes a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...record.quantity import Quantity
from ...record.schema import Record, Step
from ..runs import looked_at
from ..verdict import Verdict, answering

NAME = "mixed-precision-setup"
QUESTION = "Is mixed precision set up as its number format needs?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 2
"""Updates with autocast open before it is known to stay open from one to the next."""

SEVERAL = 3
"""Calls before they are known to be made in each step."""


def detect(record: Record) -> Verdict:
    """Look at what the script uses, on rank 0: every rank runs the same script."""
    run = record.run
    if run.fact("watched_by") != "doctor":
        return _answer("not_applicable", "use-of-precision-not-watched")
    events = [event for event in run.ranks[0].events if event.name == "precision_use"]
    used = {str(event.fields["what"]): str(event.fields["where"]) for event in events}
    formats = {what.removeprefix("autocast ") for what in used if what.startswith("autocast ")}
    steps = run.ranks[0].steps
    still_open = sum(step.counts.get("autocast_open_at_update", 0) for step in steps)
    evidence = {
        "updates": Quantity(sum(step.counts.get("updates", 0) for step in steps)),
        "with_autocast_open": Quantity(still_open, "of them"),
        "asked_of_a_scaler": Quantity(sum(step.counts.get("scaler_steps", 0) for step in steps), "steps"),
    }
    if still_open >= ENOUGH:
        where = used.get("autocast open at update") or None
        return _answer("found", "autocast-stays-open", evidence, where=where, updates=still_open)
    return _of_calls(steps, used, evidence) or _of_scaler(used, formats, evidence)


CALLS = (
    ("updates_while_scaled", "stepped while scaled", "stepped-without-the-scaler"),
    ("weights_cast_down", "trained weights cast down", "weights-cast-in-the-loop"),
    ("backward_in_autocast", "backward in autocast", "backward-in-autocast"),
)
"""Count -> how its first place is told, and what is said where it happens again and again."""


def _of_calls(steps: Sequence[Step], used: dict[str, str], evidence: dict[str, Quantity]) -> Verdict | None:
    """Where calls that belong elsewhere are made in most steps; None where none are."""
    steps = looked_at(steps)
    updates = sum(step.counts.get("updates", 0) for step in steps)
    counted = {name: sum(step.counts.get(name, 0) for step in steps) for name, _, _ in CALLS}
    for name, told, reason in CALLS:
        times = counted[name]
        if times >= SEVERAL and times * 2 >= updates:
            more = evidence | {name: Quantity(times)}
            return _answer("found", reason, more, where=used.get(told) or None, times=times, updates=updates)
    return None


def _of_scaler(used: dict[str, str], formats: set[str], evidence: dict[str, Quantity]) -> Verdict:
    half = "float16" in formats or "fp16 weights" in used
    if half and "scaler" not in used:
        where = used.get("autocast float16") or used.get("fp16 weights") or None
        return _answer("found", "fp16-without-a-scaler", evidence, where=where)
    if "scaler" in used and not half:
        reason = "bf16-with-a-scaler" if "bfloat16" in formats else "scaler-without-fp16"
        return _answer("found", reason, evidence, where=used["scaler"] or None)
    if not formats and "scaler" not in used:
        return _answer("not_applicable", "no-mixed-precision-used")
    return _answer("clear", "mixed-precision-as-it-should-be", evidence)
