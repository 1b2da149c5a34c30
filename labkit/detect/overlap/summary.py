"""The measures of a record about overlap, by name, with their units: a step, its parts alone, and what of it is hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...record.quantity import Quantity, share
from ...record.roles import Role
from ...record.schema import Record, Run, Source
from ...theory.ceilings import MIN_SIZES, LinkFit, fit_link
from ...theory.overlap_model import Gradients, Link, Predicted, predict
from ..sharding.measures import operations
from ..spread import median_interval
from ..survey.repeats import link_repeats
from .measures import (
    Exposure,
    alone_steps,
    buckets,
    ddp_fact,
    exposure,
    is_sweep,
    longest_s,
    measured_steps,
    reductions,
    weights_equal_on_ranks,
)

MIB = 2**20


@dataclass(frozen=True)
class Alone:
    """The parts of a step, each measured by itself.

    Attributes:
        compute_s: by step: in which nothing is sent, in turn with the measured steps; empty where not measured.
        comm_s: one all-reduce of all gradients, the median; None where it was not measured.
    """

    compute_s: np.ndarray
    comm_s: float | None


def parts_alone(record: Record) -> Alone:
    """The parts of a record's step by themselves, as far as they were measured."""
    link = record.runs.get(Role.LINK)
    repeats = link_repeats(link) if link is not None else {}
    seconds = [longest_s(of_ranks) for of_ranks in alone_steps(record.run)]
    return Alone(np.array(seconds), float(np.median(repeats[max(repeats)])) if repeats else None)


def more_than_computing_s(record: Record) -> np.ndarray | None:
    """By step: seconds by which it is longer than the step in turn with it that computes alone."""
    steps, alone = [longest_s(of_ranks) for of_ranks in measured_steps(record.run)], parts_alone(record).compute_s
    if not len(alone) or len(alone) != len(steps):
        return None
    return np.array(steps) - alone


def link_of(record: Record) -> LinkFit | None:
    """The line through the all-reduces that were timed on this record's own link; None where there were none."""
    run = record.runs.get(Role.LINK)
    repeats = link_repeats(run) if run is not None else {}
    if run is None or run.world_size < 2 or len(repeats) < MIN_SIZES:
        return None
    return fit_link(list(repeats), [float(np.median(seconds)) for seconds in repeats.values()], run.world_size)


def gradients_of(run: Run) -> Gradients | None:
    """When each gradient was ready where nothing was sent, by the median step of rank 0; None where it was not watched.

    Of several micro-batches the last backward pass, the one that reduces, counts; all before it is `other_s`.
    """
    steps = [of_ranks[0] for of_ranks in alone_steps(run) if of_ranks[0].series.get("param_ready_ns")]
    if not steps:
        return None
    first = steps[0].series
    passes = len(first["backward_start_ns"])
    each = len(first["param_bytes"]) // passes  # of the last pass, the one that reduces
    ready = [np.array(s.series["param_ready_ns"][-each:]) - s.series["backward_start_ns"][-1] for s in steps]
    backward = [s.series["backward_computed_ns"][-1] - s.series["backward_start_ns"][-1] for s in steps]
    step_ns = float(np.median([step.end_ns - step.start_ns for step in steps]))
    backward_ns = float(np.median(backward))
    return Gradients(
        np.array(first["param_bytes"][-each:], dtype=np.int64),
        np.median(ready, axis=0) / 1e9,
        backward_ns / 1e9,
        (step_ns - backward_ns) / 1e9,
    )


@dataclass(frozen=True)
class Tried:
    """One bucket size of a sweep.

    Attributes:
        cap_mib: as given; 0 is a bucket a parameter.
        buckets: how many it made.
        step_s: of each step.
        predicted: by the model, or None where its parts were not measured.
    """

    cap_mib: float
    buckets: int
    step_s: np.ndarray
    predicted: Predicted | None

    @property
    def median_s(self) -> float:
        return float(np.median(self.step_s))


def model_of(record: Record) -> tuple[Gradients, Link] | None:
    """What the model of queueing buckets needs, from a record's own parts; None where they were not measured."""
    gradients, fit = gradients_of(record.run), link_of(record)
    if gradients is None or fit is None:
        return None
    return gradients, Link(fit.world_size, fit.alpha_s, fit.bytes_per_s)


def sweep_of(record: Record) -> list[Tried]:
    """The bucket sizes that a sweep tried, the largest first; empty for another run."""
    of_cap: dict[float, list] = {}
    for of_ranks in measured_steps(record.run):
        if "cap_mib" in of_ranks[0].scalars:
            of_cap.setdefault(of_ranks[0].scalar("cap_mib"), []).append(of_ranks)
    parts = model_of(record)
    found = []
    for cap, steps in of_cap.items():
        made = buckets(record.run, steps[-1][0])
        seconds = np.array([longest_s(of_ranks) for of_ranks in steps])
        expected = predict(*parts, max(1.0, cap * MIB)) if parts is not None else None
        found.append(Tried(cap, len(made.num_bytes) if made else 0, seconds, expected))
    return sorted(found, key=lambda tried: tried.buckets)


def overlap_measures(record: Record) -> dict[str, Quantity]:
    """The measures of a record, by name."""
    run = record.run
    found: dict[str, Quantity] = {}
    done = reductions(run)
    if done is not None:
        found["micro_batches"] = Quantity(_whole(done.passes), "a step")
        found["reductions"] = Quantity(_whole(done.reduced), "a step")
    if not is_sweep(run):
        found |= _of_buckets(run)
        found |= _of_time(record, exposure(run), _whole(done.reduced) if done is not None else 1)
    else:
        found |= _of_sweep(record)
    size = ddp_fact(run.ranks[0], "ddp_gradient_bytes")
    if isinstance(size, int):
        found["gradient_bytes"] = Quantity(size, "bytes")
    given = sum(one.num_bytes for one in operations(run) if one.kind == "all_reduce")
    if given:  # DDP's broadcast of where its buckets begin is no part of it
        found["dispatched_bytes"] = Quantity(given, "bytes a step")
    found |= _of_wire(run, size if isinstance(size, int) else 0)
    equal = weights_equal_on_ranks(run)
    if equal is not None:
        found["weights_equal_on_ranks"] = Quantity(equal)
    return found


def _of_buckets(run: Run) -> dict[str, Quantity]:
    made = buckets(run)
    by_hand = [of_ranks[0].counts.get("all_reduce", 0) for of_ranks in measured_steps(run)]
    if made is not None:
        found = {"collectives_per_reduction": Quantity(len(made.num_bytes), "collectives")}
        return found | {"largest_bucket": Quantity(int(made.num_bytes.max()), "bytes")}
    return {"collectives_by_hand": Quantity(int(by_hand[-1]), "a step")} if by_hand and by_hand[-1] else {}


def _of_time(record: Record, seen: Exposure | None, times: float) -> dict[str, Quantity]:
    steps = [longest_s(of_ranks) for of_ranks in measured_steps(record.run)]
    if not steps:
        return {}
    source = record.link_source
    found = {"step_time": _ms(float(np.median(steps)), source)} | _alone(record)
    more, comm_s = more_than_computing_s(record), parts_alone(record).comm_s
    if more is not None and comm_s and times:
        low, high = np.array(median_interval(more)) / (times * comm_s)
        hidden = 1 - float(np.median(more)) / (times * comm_s)
        found["hidden"] = share(hidden, "of communication alone", source, spread=float(high - low) / 2)
        if found["hidden"].spread is not None:
            found["hidden_give_or_take"] = Quantity(found["hidden"].spread, "of communication alone", source)
    if seen is None:
        return found
    exposed, union, total = (float(np.median(a)) for a in (seen.exposed_s, seen.comm_s, seen.sum_s))
    found["exposed"] = _ms(exposed, source)
    found["exposed_share"] = Quantity(float(np.median(seen.exposed_s / seen.step_s)), "of the step", source)
    found["collectives_union"] = _ms(union, source)
    found["collectives_sum"] = _ms(total, source)
    found["hidden_by_union"] = Quantity(float(np.median(seen.hidden)), "of the union of spans", source)
    if total > 0:
        found["hidden_by_sum_which_lies"] = Quantity(1 - exposed / total, "of the sum of spans", source)
    return found


def _of_sweep(record: Record) -> dict[str, Quantity]:
    tried = sweep_of(record)
    if not tried:
        return {}
    best, source = min(tried, key=lambda one: one.median_s), record.link_source
    found = {f"step_time_{one.buckets}_buckets": _ms(one.median_s, source) for one in tried}
    found["best_bucket"] = Quantity(best.cap_mib or "a parameter each", "MiB" if best.cap_mib else "", source)
    if best.predicted is not None:
        errors = [one.predicted.step_s / one.median_s - 1 for one in tried if one.predicted is not None]
        found["prediction_off_by"] = Quantity(float(np.abs(errors).max()), "x the step's time", "simulated")
    return found | _alone(record)


def _alone(record: Record) -> dict[str, Quantity]:
    alone = parts_alone(record)
    found = {"compute_alone": _ms(float(np.median(alone.compute_s)))} if len(alone.compute_s) else {}
    return found | ({"communication_alone": _ms(alone.comm_s, record.link_source)} if alone.comm_s is not None else {})


def _of_wire(run: Run, gradient_bytes: int) -> dict[str, Quantity]:
    """Bytes that left each host while steps were measured, a reduction, over the gradients' bytes."""
    sent = reduced = 0
    for of_ranks in measured_steps(run):
        sent += sum(step.counts.get("wire_sent_bytes", 0) for step in of_ranks)
        reduced += of_ranks[0].counts.get("reductions", 0)
    if not sent or not reduced or not gradient_bytes:
        return {}
    hosts = len({log.head.host for log in run.ranks})
    per_host = sent / reduced / hosts
    return {"wire_sent_per_host": Quantity(round(per_host), "bytes a reduction")} | {
        "wire_over_gradients": Quantity(per_host / gradient_bytes, "x")
    }


def _ms(seconds: float, source: Source | None = None) -> Quantity:
    return Quantity(seconds * 1e3, "ms", source)


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value
