"""The Chrome trace, checked against its format: required keys, numbers, order, no partial overlap on one thread."""

import json
import math
from collections import defaultdict

import msgspec
import pytest

from labkit.record.schema import Event
from labkit.view.trace import chrome_trace

from ..crash_records import Attempt, crash_record, run_of_attempts
from ..detect.overlap_readings import ddp_step, run_of, same_on
from ..detect.overlap_readings import record as overlap_record


def traced(record):
    """As it is read back, by a decoder that knows no NaN."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON number")

    return json.loads(msgspec.json.encode(chrome_trace(record)), parse_constant=refuse)


def check_format(trace):
    """Complete, counter, instant and metadata events as the Trace Event Format wants them."""
    assert isinstance(trace["traceEvents"], list) and trace["traceEvents"]
    needed = {
        "X": {"name", "cat", "ts", "dur"},
        "C": {"name", "ts", "args"},
        "i": {"name", "ts", "s"},
        "M": {"name", "args"},
    }
    last, named, used, of_thread = -math.inf, set(), set(), defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in needed and needed[event["ph"]] | {"pid", "tid"} <= set(event)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in {
                "process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index",
            }  # fmt: skip
            named.add((event["pid"], event["tid"] if event["name"] == "thread_name" else None))
            continue
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0 and event["ts"] >= last
        last = event["ts"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
            used.add((event["pid"], event["tid"]))
            of_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in event["args"].values())
    assert used <= named and {(pid, None) for pid, _ in used} <= named, "every process and thread has a name"
    for of in of_thread.values():
        open_until: list[float] = []
        for start, end in sorted(of, key=lambda pair: (pair[0], -pair[1])):
            while open_until and open_until[-1] <= start + 1e-6:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-6, "events of one thread overlap in part"
            open_until.append(end)


def test_a_rank_is_a_process_and_a_lane_a_thread():
    trace = traced(overlap_record(same_on(3, buckets=((50, 120), (100, 150), (200, 260)))))
    check_format(trace)
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert names == {"rank 0", "rank 1", "rank 2"}
    threads = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert threads == {"steps", "compute", "comm", "comm 2"}, "two collectives were under way together"
    backward = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "backward"]
    assert len(backward) == 15 and backward[0]["dur"] == 200_000, "microseconds"
    assert "measured" in trace["otherData"]["provenance"]


def test_numbers_that_json_does_not_have_are_left_out_and_events_are_instants():
    step = msgspec.structs.replace(ddp_step(0), scalars={"loss_local": "nan", "lr": 0.1})
    run = run_of([[step]], events=[Event("fault", 0, 5, {"fault": "delay", "seconds": float("inf")})])
    trace = traced(msgspec.structs.replace(overlap_record([[step]]), runs={"variant": run}))
    check_format(trace)
    assert [e["name"] for e in trace["traceEvents"] if e["ph"] == "C"] == ["lr"]
    (instant,) = [e for e in trace["traceEvents"] if e["ph"] == "i"]
    assert instant["args"]["fault"] == "delay" and instant["args"]["seconds"] == "inf"


def test_each_launch_has_processes_of_its_own():
    record = overlap_record(same_on(2))
    both = msgspec.structs.replace(record, runs={"link": run_of(same_on(2)), **record.runs})
    trace = traced(both)
    check_format(trace)
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert names == ["rank 0", "rank 1", "link, rank 0", "link, rank 1"]


@pytest.mark.parametrize("fixture", ["broken", "fixed"])
def test_records_of_other_labs_can_be_traced_too(fixture, request):
    check_format(traced(request.getfixturevalue(fixture)))


def test_a_record_without_steps_is_a_trace_of_names():
    check_format({**traced(overlap_record(same_on(1))), "traceEvents": traced(overlap_record([[], []]))["traceEvents"]})


def test_a_crash_is_traced_with_all_attempts_the_lost_steps_and_the_gap_of_the_restart():
    run = run_of_attempts(Attempt(0, 13, saves=(5, 10)), Attempt(10, 16, killed=1), Attempt(10, 20, killed=None))
    trace = traced(crash_record(run))
    check_format(trace)
    pids = {e["args"]["name"]: e["pid"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert list(pids) == [f"rank {r}, attempt {a} of 3" for a in (1, 2, 3) for r in (0, 1)] + ["restarts"]

    def steps(name, category):
        of = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == pids[name] and e["cat"] == category]
        return [e["args"]["step"] for e in of]

    for rank in (0, 1):
        assert steps(f"rank {rank}, attempt 1 of 3", "step") == list(range(10))
        assert steps(f"rank {rank}, attempt 1 of 3", "lost step") == [10, 11, 12]
        assert steps(f"rank {rank}, attempt 2 of 3", "lost step") == list(range(10, 16))
        assert steps(f"rank {rank}, attempt 3 of 3", "step") == list(range(10, 20))
    gaps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == pids["restarts"]]
    assert [gap["args"]["lost_steps"] for gap in gaps] == [3, 6]

    def begins(name):
        return min(e["ts"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == pids[name])

    assert [gap["ts"] + gap["dur"] for gap in gaps] == [begins(f"rank 0, attempt {n} of 3") for n in (2, 3)]
