"""What is left over sums exactly; units, times and gaps come out of plain numbers."""

import numpy as np
import pytest

from labkit.detect.sharding import measures as m
from labkit.detect.sharding.summary import stage_table, units, zero_measures

from ..zero_runs import cheaper_run, record, run_with

AFTER = {"parameters": 1004, "gradients": 1000, "optimizer_state": 2020, "unsharded": 0, "buffers": 8}
OWN = {"parameters": 1004, "gradients": 1000, "optimizer_state": 2020, "buffers": 0, "step_counters": 16}


def test_the_leftovers_and_the_papers_formula_sum_to_what_is_alive():
    run = run_with(kept={"backward_end": AFTER}, own=OWN)
    left = {one.name: one.num_bytes for one in m.leftovers(run)}
    assert left == {"Adam's counters of steps": 16, m.UNEVEN: 4 + 4 + 8}
    assert m.paper_state(run).total + sum(left.values()) == sum(AFTER.values())


def test_what_the_own_account_misses_is_said_by_category_over_all_ranks():
    run = run_with(kept={"backward_end": AFTER}, own=OWN)
    assert m.misses(run) == {"parameters": 0, "gradients": 0, "optimizer_state": 0, "unsharded": 0, "buffers": 4 * 8}


def test_traffic_in_units_is_what_the_paper_calls_2_and_3():
    run = run_with()
    assert units(run, m.sent_bytes(run)) == pytest.approx(3)
    assert units(run, m.paper_bytes(run)) == pytest.approx(3)
    assert m.backend_bytes(run) / m.sent_bytes(run) == pytest.approx(4 / 3)


def test_a_step_takes_as_long_as_its_slowest_rank():
    assert m.timed_steps_s(run_with(step_ms=(10, 20, 30))) == pytest.approx([0.01, 0.02, 0.03])


def test_the_loss_is_compared_with_one_process_where_there_is_one():
    run, single = run_with(loss=(5.0, 4.0)), run_with("alone", ranks=1, loss=(5.0, 4.4))
    assert m.loss_gap(record(run, single=single), run) == pytest.approx(0.4 / 4.4)
    assert m.loss_gap(record(run), run) is None


def test_a_run_of_another_lab_has_no_measures_here():
    from ..builders import record_of, run_of

    other = record_of(run_of([[[[1, 2]], [[3, 4]]]]))
    assert zero_measures(other) == {} and m.strategy_runs(other) == {}
    assert m.kept(other.run) == {} and m.peak_bytes(other.run) is None and m.wire(other.run) is None


def test_the_table_says_why_the_wire_was_not_counted():
    found = stage_table(record(run_with(kept={"backward_end": AFTER}, own=OWN), cheaper=cheaper_run()))
    assert [row[0] for row in found.rows] == ["fsdp2-reshard", "fsdp2-no-reshard"]
    assert any("not counted here" in note for note in found.notes)
    assert np.all([len(row) == len(found.columns) for row in found.rows])
