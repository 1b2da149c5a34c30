"""Ranks of one machine are compared by its clock as it is; machines by the barrier that their ranks left together."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from physics import impossible

from labkit.record import clocks
from labkit.record.probe import Probe
from labkit.record.schema import Event, RankLog, Run, Span, Step
from labkit.record.store import read_record

from ..builders import head, record_of
from ..quick import quick

FAR = 3_600_000_000_000


def log_of(rank: int, start: int, *, clock="", barrier=0, host="host", world_size=2) -> RankLog:
    written = msgspec.structs.replace(head(rank, world_size), clock=clock, barrier_ns=barrier, host=host)
    step = Step(0, 0, start, start + 50, [Span("all_reduce", "comm", start + 10, start + 40)],
                series={"bucket_ready_ns": [start + 10], "bucket_end_ns": [start + 40], "bucket_bytes": [7]})  # fmt: skip
    return RankLog(written, (step,), (Event("save", 0, start + 45),))


def starts(run: Run) -> list[int]:
    return [log.steps[0].start_ns for log in run.ranks]


def test_ranks_of_one_machine_keep_their_times_whatever_their_exits_from_the_barrier():
    run = Run("variant", (log_of(0, 100, clock="a"), log_of(1, 105, clock="a", barrier=6_400_000)), 1.0)
    assert clocks.one_clock(run) and clocks.on_one_clock(run) is run


def test_machines_are_shifted_by_their_earliest_exit_from_the_barrier_and_ranks_of_one_alike():
    logs = (
        log_of(0, 1000, clock="a", barrier=0, world_size=4),
        log_of(1, 1003, clock="a", barrier=500, world_size=4),
        log_of(2, FAR + 1001, clock="b", barrier=FAR + 900, world_size=4),
        log_of(3, FAR + 1002, clock="b", barrier=FAR, world_size=4),
    )
    run = clocks.on_one_clock(Run("variant", logs, 1.0, 2, earlier=((log_of(3, FAR - 7000, clock="b", world_size=4),),)))
    assert not clocks.one_clock(run) and starts(run) == [1000, 1003, 1001, 1002]
    step, event = run.ranks[3].steps[0], run.ranks[3].events[0]
    assert (step.end_ns, step.spans[0].start_ns, step.spans[0].end_ns, event.time_ns) == (1052, 1012, 1042, 1047)
    assert step.series == {"bucket_ready_ns": [1012], "bucket_end_ns": [1042], "bucket_bytes": [7]}
    assert run.earlier[0][0].steps[0].start_ns == -7000, "by the same shift as in the attempt that is under study"


def test_older_records_name_no_clock_and_stamps_of_one_machine_lie_close_together():
    near = Run("variant", (log_of(0, 100), log_of(1, 105, barrier=6_400_000)), 1.0)
    assert clocks.on_one_clock(near) is near
    far = Run("variant", (log_of(0, 100, host="x"), log_of(1, FAR + 105, barrier=FAR, host="y")), 1.0)
    assert starts(clocks.on_one_clock(far)) == [100, 105]


def test_probes_of_one_machine_name_one_clock_and_a_record_is_read_as_it_was_stamped(tmp_path):
    for rank, barrier in enumerate((0, 6_400_000)):
        with Probe(tmp_path / f"rank-{rank:05d}.jsonl", rank=rank, world_size=2, barrier_ns=barrier) as probe:
            probe.begin_step()
            probe.add_span("all_reduce", "comm", probe._start, probe._start + 1)
    record = read_record(tmp_path)
    assert len({log.head.clock for log in record.run.ranks}) == 1 and record.run.ranks[0].head.clock
    first, second = starts(record.run)
    assert 0 < second - first < FAR, "not shifted by the exits"


def meeting(draw) -> Run:
    """Ranks on one to three machines, whose clocks are hours apart, meet in all-reduces."""
    machines, ranks = draw.randint(1, 3), draw.randint(2, 6)
    ahead = [draw.randrange(10**13) for _ in range(machines)]
    logs = []
    times = [4_000_000 * place for place in sorted(draw.sample(range(10, 300), 6))]
    for rank in range(ranks):
        at = rank % machines
        exit_ns = 0 if rank < machines else draw.randrange(10_000_000)  # one of each machine leaves at once
        steps = []
        for number, meet in enumerate(times):
            begin = meet - draw.randrange(1, 2_000_000) + ahead[at]
            end = meet + draw.randrange(1, 1_000_000) + ahead[at]
            steps.append(Step(number, 0, begin, end, [Span("all_reduce", "comm", begin, end)]))
        written = msgspec.structs.replace(head(rank, ranks), clock=f"of {at}", barrier_ns=exit_ns + ahead[at])
        logs.append(RankLog(written, tuple(steps)))
    return Run("variant", tuple(logs), 1.0)


@quick
@given(draw=st.randoms())
def test_whatever_the_machines_and_the_exits_what_could_happen_is_read_as_possible(draw):
    """Within a machine nothing may be impossible; between machines no more than the first to leave the barrier was late."""
    assert not impossible(record_of(clocks.on_one_clock(meeting(draw))))


@quick
@given(draw=st.randoms())
def test_a_machine_is_moved_as_a_whole_and_the_first_ones_not_at_all(draw):
    before = meeting(draw)
    after = clocks.on_one_clock(before)
    by: dict[str, set[int]] = {}
    for was, now in zip(before.ranks, after.ranks, strict=True):
        for one, other in zip(was.steps, now.steps, strict=True):
            moved = {other.start_ns - one.start_ns, other.end_ns - one.end_ns}
            moved |= {b.start_ns - a.start_ns for a, b in zip(one.spans, other.spans, strict=True)}
            by[was.head.clock] = by.get(was.head.clock, set()) | moved
    assert all(len(moved) == 1 for moved in by.values()) and by["of 0"] == {0}
    left = {clock: min(log.head.barrier_ns for log in before.ranks if log.head.clock == clock) for clock in by}
    assert len({left[clock] + moved.pop() for clock, moved in by.items()}) == 1, "the first exits are one instant"


def test_the_property_can_fail():
    late = log_of(1, 10_000)
    run = Run("variant", (log_of(0, 100), late), 1.0)
    (apart, bucket) = impossible(record_of(run))
    assert "all_reduce 0 ended on one rank" in apart and "bucket 0 ended on one rank" in bucket
