"""What every topic asks of runs: names, steps, shares of lanes, weights. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..record.once import once
from ..record.schema import RankLog, Record, Run, Span, Step


def names_of(records: Sequence[Record]) -> list[str]:
    """A name for each record: its variant, with the settings in which records of one variant differ.

    What was run beside a record (`compare`) is no part of its name.
    """
    names = []
    for record in records:
        twins = [other for other in records if other.variant == record.variant]
        facts = [{**twin.config, "ranks": twin.run.world_size, "seed": twin.provenance.seed} for twin in twins]
        own = {**record.config, "ranks": record.run.world_size, "seed": record.provenance.seed}
        own.pop("compare", None)
        differing = [f"{key} {_shown(value)}" for key, value in own.items() if any(fact.get(key) != value for fact in facts)]
        names.append(record.variant + (f" ({', '.join(differing)})" if differing else ""))
    return names


def train_steps(log: RankLog) -> tuple[Step, ...]:
    """A rank's steps but those of a pass of something else, such as validation, that was read through `probe.batches`."""
    return once(log, "train_steps", lambda: _train_steps(log.steps))


def looked_at(steps: Iterable[Step]) -> list[Step]:
    """The steps without those that the doctor only followed between two bursts: what these do not tell of may have been."""
    return [step for step in steps if not step.counts.get("between_bursts")]


def _train_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not any("train" in step.digests for step in steps):
        return steps
    return tuple([step for step in steps if not step.digests or "train" in step.digests])


def steps_together(run: Run) -> list[tuple[Step, ...]]:
    """By rank: the steps of training that all ranks take together, as many on each, in order.

    In a script that the doctor watched a rank may have trained something by itself before. Its numbers are ahead of the
    others' then: only steps with communication are taken, which are those of all ranks.
    """
    return once(run, "steps_together", lambda: _steps_together(run))


def _steps_together(run: Run) -> list[tuple[Step, ...]]:
    of_ranks = [train_steps(log) for log in run.ranks]
    if run.fact("watched_by") == "doctor" and not _overlap(of_ranks):
        of_ranks = [tuple(step for step in steps if any(s.lane == "comm" for s in step.spans)) for steps in of_ranks]
        of_ranks = of_ranks if _overlap(of_ranks) else [() for _ in of_ranks]
    fewest = min(map(len, of_ranks), default=0)
    return [steps[:fewest] for steps in of_ranks]


def _overlap(of_ranks: Sequence[Sequence[Step]]) -> bool:
    """Whether most steps of one number are under way on all ranks at one time."""
    at_once = [
        max(step.start_ns for step in steps) < min(step.end_ns for step in steps) for steps in zip(*of_ranks, strict=False)
    ]
    return not at_once or sum(at_once) > len(at_once) / 2


def union_ns(spans: Iterable[Span]) -> int:
    """Length of the union of intervals: spans that queue or overlap are not counted twice."""
    intervals = [(span.start_ns, span.end_ns) for span in spans]
    if len(intervals) == 1:
        return intervals[0][1] - intervals[0][0]
    total, reach = 0, None
    for start, end in sorted(intervals):
        if reach is None or start > reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


def lane_shares(log: RankLog) -> dict[str, float]:
    """Share of a rank's time in steps that each lane covers. Lanes may overlap, so the sum may exceed 1."""
    return once(log, "lane_shares", lambda: _lane_shares(log))


def _lane_shares(log: RankLog) -> dict[str, float]:
    steps = looked_at(log.steps) or log.steps
    elapsed = sum(step.end_ns - step.start_ns for step in steps)
    lanes = sorted({span.lane for step in steps for span in step.spans})
    return {lane: sum(union_ns(s for s in step.spans if s.lane == lane) for step in steps) / elapsed for lane in lanes}


def comm_share(run: Run) -> float | None:
    """Share of the steps' time in which a collective was under way, mean over ranks; None where none was timed."""
    shares = [lane_shares(log).get("comm") for log in run.ranks if log.steps]
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None


def weights_gap(run: Run, reference: Run) -> float | None:
    """Relative distance |w - w_ref| / |w_ref| (Euclidean) of the final weights; None where either is missing."""
    own, other = run.arrays.get("weights"), reference.arrays.get("weights")
    if own is None or other is None or own.shape != other.shape:
        return None
    return float(np.linalg.norm(own - other) / np.linalg.norm(other))


def weights_equal(run: Run, reference: Run) -> bool | None:
    """Whether the final weights are equal to the bit, by their hashes; None where either is missing."""
    hashes = [log.digests.get("weights") for log in (*run.ranks, *reference.ranks)]
    return None if None in hashes else len(set(hashes)) == 1


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
