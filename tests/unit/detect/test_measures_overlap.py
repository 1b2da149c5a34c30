"""What of a step is hidden, exposed, and neither: intervals by hand."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.detect import runs
from labkit.detect.overlap import measures
from labkit.detect.overlap.summary import overlap_measures
from labkit.record.schema import Step

from ..builders import span
from ..detect.overlap_readings import MS, ddp_step, record, run_of, same_on, spans
from ..quick import quick

INTERVALS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda two: (min(two), max(two))), max_size=6)
"""In any order; they may overlap, touch, lie within each other, and be empty."""


def of_bits(bits):
    """Intervals that lie apart: stretches of ones."""
    found = []
    for tick in range(bits.bit_length()):
        if bits >> tick & 1:
            found.append((found.pop()[0] if found and found[-1][1] == tick else tick, tick + 1))
    return found


APART = st.integers(0, 2**14 - 1).map(of_bits)


def ticks(intervals):
    return {tick for start, end in intervals for tick in range(start, end)}


def apart(intervals):
    """Whether intervals are in order, none is empty, and no two of them touch."""
    ends = [end for _, end in intervals]
    later = [start for start, _ in intervals][1:]
    return all(start < end for start, end in intervals) and all(a < b for a, b in zip(ends[:-1], later, strict=True))


def step(*parts, length=100):
    return Step(0, 0, 0, length * MS, spans=spans(*parts))


def test_a_steps_time_is_computing_exposed_and_other():
    found = measures.split(step(("f", "compute", 0, 30), ("all_reduce", "comm", 20, 60), ("all_reduce", "comm", 40, 70)))
    assert (found.compute_ns, found.comm_ns, found.exposed_ns, found.sum_ns) == (30 * MS, 50 * MS, 40 * MS, 70 * MS)
    assert found.other_ns == 30 * MS


@quick
@given(INTERVALS)
def test_a_union_is_the_same_time_in_intervals_that_lie_apart(intervals):
    union = measures.union_of(intervals)
    assert ticks(union) == ticks(intervals) and apart(union) and measures.union_of(union) == union
    assert measures.length_ns(union) == len(ticks(intervals)) == runs.union_ns(span(*each) for each in intervals)


@quick
@given(APART, APART)
def test_what_lies_outside_and_what_is_left_are_those_of_counting_by_the_tick(intervals, cover):
    left, expected = measures.without(intervals, cover), ticks(intervals) - ticks(cover)
    assert ticks(left) == expected and apart(left)
    assert measures.outside_ns(intervals, cover) == measures.length_ns(left) == len(expected)


@quick
@given(compute=INTERVALS, comm=INTERVALS, idle=INTERVALS)
def test_every_tick_of_a_step_is_computing_exposed_or_other(compute, comm, idle):
    lanes = {"compute": compute, "comm": comm, "idle": idle}
    parts = [span(*each, lane) for lane, intervals in lanes.items() for each in intervals]
    found = measures.split(Step(0, 0, 0, 40, spans=parts))
    busy = ticks(compute) - ticks(idle)
    assert (found.compute_ns, found.comm_ns) == (len(busy), len(ticks(comm)))
    assert (found.exposed_ns, found.other_ns) == (len(ticks(comm) - busy), 40 - len(busy | ticks(comm)))


def test_of_a_step_the_rank_that_waits_for_no_other_counts():
    early, late = ([ddp_step(n, backward=backward, buckets=((backward, 500),)) for n in range(3)] for backward in (200, 490))
    found = measures.exposure(run_of([early, late]))
    assert found.exposed_s == pytest.approx([0.01] * 3) and found.comm_s == pytest.approx([0.01] * 3)


def test_the_warm_up_is_what_was_declared_else_two_steps_and_never_all():
    assert len(measures.measured_steps(run_of(same_on(2, steps=5), warm_up=3))) == 2
    undeclared = run_of(same_on(2, steps=5))
    logs = [msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts={})) for log in undeclared.ranks]
    bare = msgspec.structs.replace(undeclared, ranks=tuple(logs))
    assert len(measures.measured_steps(bare)) == 3
    one = msgspec.structs.replace(bare, ranks=tuple(msgspec.structs.replace(log, steps=log.steps[:1]) for log in logs))
    assert len(measures.measured_steps(one)) == 1


def test_the_sum_of_spans_makes_more_of_the_overlap_than_the_union_does():
    queued = tuple((50 * n, 60 * n + 40) for n in range(1, 7))
    found = overlap_measures(record(same_on(2, buckets=queued)))
    assert found["collectives_sum"].value > found["collectives_union"].value
    assert found["hidden_by_sum_which_lies"].value > found["hidden_by_union"].value


def test_parts_alone_are_compared_step_by_step():
    steps = [[s for n in range(3) for s in (ddp_step(n, buckets=((200, 260),)), ddp_step(n, buckets=(), alone=1))]] * 2
    found = overlap_measures(record(steps))
    assert found["compute_alone"].value == pytest.approx(300) and found["step_time"].value == pytest.approx(360)
    assert "hidden" not in found, "without the link alone there is no share of it"


def test_a_record_of_something_else_has_no_measures_of_overlap():
    from ..builders import record_of
    from ..builders import run_of as reads

    found = overlap_measures(record_of(reads([[[[1, 2]], [[3, 4]]]])))
    assert "hidden" not in found and "exposed" not in found and "reductions" not in found
