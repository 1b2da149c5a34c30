"""The ways in which a step was made, out of records."""

import pytest

from labkit.detect.sharding.summary import zero_measures, zero_tables
from labkit.detect.sharding.ways import ways

from ..zero_runs import record, run_with, with_events

FIELDS = {
    **{"strategy": "fsdp2-reshard", "micro_batches": 2, "last_alone": True, "gathered_as": "bfloat16"},
    **{"reduced_as": "float32", "gathered_bytes": 8000, "reduced_bytes": 4000, "sent_bytes": 9000.0, "between_bytes": 4000},
}
"""1,000 parameters on 4 ranks: gathered four times at 2 bytes, reduced once at 4, 3/4 of it sent."""


@pytest.fixture
def counted():
    return with_events("way_of_a_step", [FIELDS] * 4, num_parameters=1000)


def test_bytes_are_counted_by_the_parameter_and_compared_with_the_formula(counted):
    (way,) = ways(counted.run)
    assert way.seen == way.by_formula
    assert (way.seen.gathered, way.seen.reduced, way.seen.sent_units, way.seen.gradients) == (8, 4, 12, 4)


def test_what_departs_from_the_formula_stands_next_to_it_in_the_table():
    found = with_events("way_of_a_step", [FIELDS | {"sent_bytes": 9750.0}] * 4, num_parameters=1000)
    (table,) = zero_tables(found)
    (row,) = table.rows
    assert row == ("fsdp2-reshard", "2", "the last", "bfloat16, float32", "8.00", "4.00", "13.00", "12", "4.00", "4.00")
    assert set(zero_measures(found)) == {"parameters"}


def test_a_run_of_a_strategy_has_no_ways():
    assert ways(run_with()) == [] and ways(record(run_with()).run) == []
