"""A share is from 0 to 1 or is said not to be measurable, whatever noise does to the times that it is made of."""

import math

import numpy as np
import pytest

from labkit import detect, labs
from labkit.detect.overlap.measures import alone_steps
from labkit.detect.overlap.summary import overlap_measures
from labkit.record.quantity import NOT_MEASURABLE, Quantity, share
from labkit.record.schema import Record

from ..crash_records import crash_record, saved_and_resumed, uninterrupted
from ..detect import overlap_readings, test_mfu_detectors
from ..detect.precision_readings import beside_fp32, made_of, timed, update
from ..detect.staleness_readings import beside_sync, falling, in_step, paced, served
from ..input_runs import queue, steady
from ..input_runs import record as input_record
from ..shaken import shaken
from ..surveys import SIZES, link_run, survey


def with_parts_alone(steps=6) -> Record:
    """A run of lab 05: steps in turn with those that compute alone, and the link by itself."""
    in_turn = [
        [s for n in range(steps) for s in (overlap_readings.ddp_step(2 * n, buckets=((150, 260),)),
                                           overlap_readings.ddp_step(2 * n + 1, buckets=(), alone=1))]
        for _ in range(2)
    ]  # fmt: skip
    found = overlap_readings.record(in_turn)
    return Record(
        "overlap", "fixed", {}, found.provenance, {**found.runs, "link": link_run(distort=dict.fromkeys(SIZES, 6.0))}
    )


RECORDS = {
    "overlap": with_parts_alone,
    "overlap, queued": lambda: overlap_readings.record(
        overlap_readings.same_on(2, buckets=tuple((50 * n, 60 * n + 40) for n in range(1, 7)))
    ),
    "mfu": lambda: test_mfu_detectors.record(0.8, cpu_s=0.9, tuned_speed=1.2),
    "input": lambda: input_record(queue(20, 18, 3), alone=steady(20, 18), dummy=steady(0, 18, ranks=3)),
    "store": lambda: input_record(steady(30, 5, ranks=3, store_bytes=1000), alone=steady(10, 5, store_bytes=1000)),
    "stale": lambda: beside_sync(served((0, 1, 2, 3) * 25, falling(100), lr=0.1), in_step(falling(25))),
    "paced": lambda: paced([[1.0] * 20] * 3 + [[4.0] * 20], [[3.2] * 20] * 3 + [[0.2] * 20]),
    "survey": survey,
    "crash": lambda: crash_record(saved_and_resumed(), uninterrupted()),
    "precision": lambda: beside_fp32(
        made_of([update()] * 8, events=timed([2.0] * 9, [1.0] * 9), precision="bf16"), made_of([update()] * 8)
    ),
}


def quantities(record: Record) -> dict[str, Quantity]:
    """All measures of all labs that can be made of a record, and the evidence of all detectors."""
    found = {}
    for spec in labs.specs():
        try:
            found |= {f"{spec.slug}: {name}": one for name, one in spec.measures(record).items()}
        except (KeyError, AttributeError, IndexError, TypeError):
            assert record.lab != spec.slug  # what another lab records is not this one's
    for name in detect.names():
        found |= {f"{name}: {what}": one for what, one in detect.ask(name, record).evidence.items()}
    return found


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_share_leaves_0_to_1_and_no_spread_is_printed_that_leaves_nothing_of_it(kind, seed):
    record = shaken(RECORDS[kind](), np.random.default_rng(seed), sigma=0.3 * (1 + seed))
    for name, one in quantities(record).items():
        if one.is_share:
            assert 0 <= float(one.value) <= 1, f"{name} is {one.value}"
            assert one.spread is None or one.spread <= 0.2, name
            assert NOT_MEASURABLE not in str(one)
        if isinstance(one.value, float):
            assert not math.isnan(one.value), name


def test_what_is_hidden_is_not_said_where_steps_differ_by_more_than_communication():
    """Seen as "146.2 % ± 44.7 %", "-126 % ± 183 %" and "11.6 %, give or take 50.2 %"."""
    steady_machine = overlap_measures(with_parts_alone())["hidden"]
    assert steady_machine.is_share and 0 <= steady_machine.value <= 1
    said = set()
    for seed in range(20):
        hidden = overlap_measures(shaken(with_parts_alone(), np.random.default_rng(seed)))["hidden"]
        said.add(str(hidden))
        assert hidden.value == NOT_MEASURABLE or (0 <= hidden.value <= 1 and (hidden.spread or 0) <= 0.2)
    assert NOT_MEASURABLE in said and len(alone_steps(with_parts_alone().run)) == 6


@pytest.mark.parametrize(
    ("value", "spread", "printed"),
    [
        (0.611, 0.05, "61.1% ± 5.0% of it"),
        (0.611, 0.0, "61.1% of it"),
        (1.01, 0.0, "100.0% of it"),
        (-0.05, 0.1, "0.0% ± 10.0% of it"),
        (1.462, 0.447, NOT_MEASURABLE),
        (0.116, 0.502, NOT_MEASURABLE),
        (-1.26, 1.83, NOT_MEASURABLE),
        (1.2, 0.1, NOT_MEASURABLE),
        (math.nan, 0.0, NOT_MEASURABLE),
    ],
)
def test_a_share_is_printed_with_its_spread_or_not_at_all(value, spread, printed):
    assert str(share(value, "of it", spread=spread)) == printed


def test_a_share_that_was_not_made_as_one_is_not_printed_outside_of_0_to_100_per_cent():
    assert (
        str(Quantity(1.46, "of the step")) == NOT_MEASURABLE and str(Quantity(12.5, "ms", spread=0.25)) == "12.5 ± 0.25 ms"
    )
