"""Other programs on the cores: a time proves less, and what was found is never cleared by them."""

import msgspec
import pytest

from labkit import detect
from labkit.detect.catalogue import said
from labkit.detect.under_load import hindered, uneven
from labkit.record.load import Load
from labkit.record.schema import Record

from ..builders import crowded, record_of
from ..input_runs import queue, steady
from ..input_runs import record as input_record
from ..surveys import SIZES, link_run, survey
from . import test_mfu_detectors
from .overlap_readings import ddp_step, same_on
from .overlap_readings import record as overlap_record
from .precision_readings import beside_fp32, made_of, timed, update
from .staleness_readings import paced

FAULTS = {
    "cross-process-lock": lambda: input_record(queue(20, 18, 3), alone=steady(20, 18)),
    "exposed-communication": lambda: overlap_record(same_on(2, steps=6, buckets=((200, 400),))),
    "late-rank": lambda: overlap_record(
        [
            [ddp_step(n, backward=200 + 200 * rank, buckets=((200 + 200 * rank, 450),)) for n in range(12)]
            for rank in range(2)
        ]
    ),
    "link-fit": lambda: survey(link=link_run(distort={SIZES[5]: 4.0})),
    "needless-workers": lambda: input_record(steady(30, 10, workers=2), inline=steady(3, 10)),
    "precision-speed": lambda: beside_fp32(made_of([update()] * 4, events=timed([2.0] * 9, [1.0] * 9), precision="bf16")),
    "saturated-store": lambda: input_record(steady(30, 5, ranks=3, store_bytes=1000), alone=steady(10, 5, store_bytes=1000)),
    "starved-input": lambda: input_record(steady(30, 10)),
    "straggler": lambda: paced([[1.0] * 20] * 3 + [[4.0] * 20], [[3.2] * 20] * 3 + [[0.2] * 20]),
    "utilisation": lambda: test_mfu_detectors.record(0.1),
}
NOT_BY_SPREAD = {"busy-not-useful", "checkpoint-interval", "page-cache", "worker-restarts", "wrong-stage"}
"""Tested with their own records."""


def only(record: Record, role: str) -> Record:
    """Of a crowded machine only where one of the runs is concerned."""
    quiet = {name: run if name == role else msgspec.structs.replace(run, load=None) for name, run in record.runs.items()}
    return msgspec.structs.replace(record, runs=quiet)


def test_the_table_names_every_detector_of_times():
    assert FAULTS.keys() | NOT_BY_SPREAD == {name for name in detect.names() if detect.is_timed(name)}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("during", [0.5, 1.0, 1.8])
def test_what_is_found_is_not_clear_with_other_programs_beside_it_and_they_are_said(name, during):
    quiet = FAULTS[name]()
    assert detect.ask(name, quiet).status == "found"
    for busy in (crowded(quiet, during), only(crowded(quiet, during), next(iter(quiet.runs)))):
        verdict = detect.ask(name, busy)
        assert verdict.status in ("found", "inconclusive")
        if busy.run.load is not None and busy.run.load.matters:
            assert verdict.evidence["other_programs"].value == f"{during:.1f} of 2"
            note = said("other-programs-meanwhile", used=during, cores=2)
            assert (note in verdict.notes) == (verdict.status == "inconclusive")
            assert (f"; other programs used {during:.1f} of 2 cores meanwhile" in verdict.cause) == (note in verdict.notes)


@pytest.mark.parametrize("name", ["cross-process-lock", "saturated-store", "needless-workers", "utilisation"])
def test_a_run_that_others_hindered_is_not_held_against_one_that_they_did_not(name):
    """It may be slow by as much as others took of its cores."""
    assert detect.ask(name, only(crowded(FAULTS[name](), 1.8), "variant")).status == "inconclusive"


def test_a_rank_that_is_late_by_half_a_step_may_share_its_core_with_others():
    """Seen of a right script: rank 0 came 9 ms later in 52 of 94 reductions, while others used 1.7 of 2 cores."""
    late = FAULTS["late-rank"]()
    assert detect.ask("late-rank", late).status == "found"
    assert detect.ask("late-rank", crowded(late, 1.7)).status == "inconclusive"


def test_a_rank_that_is_four_times_slower_may_share_its_core_with_others():
    """Seen of a script whose ranks do the same, on a machine with a dozen programs beside it."""
    slow = FAULTS["straggler"]()
    assert detect.ask("straggler", slow).status == "found"
    assert detect.ask("straggler", crowded(slow, 1.7)).status == "inconclusive"


def test_a_script_without_work_has_no_input_that_starves():
    """It computes 0.03 ms a batch: that it waits for data most of the time is all that it does."""
    verdict = detect.ask("starved-input", input_record(steady(5, 0.03)))
    assert (verdict.status, verdict.reason) == ("inconclusive", "next-to-nothing-computed")
    assert verdict.numbers == {"compute_ms": pytest.approx(0.03)}


def test_a_program_that_calls_its_fetches_otherwise_is_judged_as_well():
    def renamed(run):
        spans = lambda step: [msgspec.structs.replace(s, name="load") if s.lane == "data" else s for s in step.spans]  # noqa: E731
        logs = [
            msgspec.structs.replace(log, steps=tuple(msgspec.structs.replace(s, spans=spans(s)) for s in log.steps))
            for log in run.ranks
        ]
        return msgspec.structs.replace(run, ranks=tuple(logs))

    record = input_record(renamed(queue(20, 18, 3)), alone=renamed(steady(20, 18)))
    assert detect.ask("cross-process-lock", record).status == "found"


def test_the_load_of_two_runs_is_compared_and_none_of_it_matters_where_nobody_looked():
    run = record_of(steady(1, 1)).run
    busy = msgspec.structs.replace(run, load=Load(cores=2, wanted=2, before=0, during=1.0, own=1.0, seconds=2.0))
    assert hindered(run) == 1 and uneven(run, run) == 1
    assert hindered(busy) == pytest.approx(2) and uneven(run, busy) == uneven(busy, run) == pytest.approx(2)
    assert uneven(busy, busy) == 1.25


def test_each_detector_of_times_says_so_itself():
    for name in FAULTS.keys() | NOT_BY_SPREAD:
        assert detect.is_timed(name)
