"""What of a step is hidden, exposed, and neither: intervals by hand."""

import random

import msgspec
import pytest

from labkit.detect.overlap import measures
from labkit.detect.overlap.summary import overlap_measures
from labkit.record.schema import Step

from ..detect.overlap_readings import MS, ddp_step, record, run_of, same_on, spans


def step(*parts, length=100):
    return Step(0, 0, 0, length * MS, spans=spans(*parts))


def test_a_steps_time_is_computing_exposed_and_other():
    found = measures.split(step(("f", "compute", 0, 30), ("all_reduce", "comm", 20, 60), ("all_reduce", "comm", 40, 70)))
    assert (found.compute_ns, found.comm_ns, found.exposed_ns, found.sum_ns) == (30 * MS, 50 * MS, 40 * MS, 70 * MS)
    assert found.other_ns == 30 * MS


def test_the_part_outside_is_that_of_counting_by_the_tick():
    rng = random.Random(4)
    for _ in range(50):
        comm, cover = ([tuple(sorted(rng.sample(range(40), 2))) for _ in range(rng.randint(0, 6))] for _ in range(2))
        ticks = {t for a, b in comm for t in range(a, b)} - {t for a, b in cover for t in range(a, b)}
        assert measures.outside_ns(measures.union_of(comm), measures.union_of(cover)) == len(ticks)


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
