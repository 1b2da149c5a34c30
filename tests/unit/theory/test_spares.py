"""What spares buy, beside limits that can be worked out by hand, and beside a simulation that knows no formula."""

import pytest

from labkit.errors import UsageError
from labkit.theory.reliability import Costs, goodput
from labkit.theory.spares import best_spares, goodput_a_node, simulate_waits, waits_for_repair

COSTS = Costs(save=60, restart=900, mtbf=3 * 3600)


@pytest.mark.parametrize(("repair", "mtbf"), [(1, 10), (24, 3), (5, 5)])
def test_without_spares_a_job_runs_for_m_and_waits_for_t(repair, mtbf):
    assert waits_for_repair(0, repair, mtbf) == pytest.approx(repair / (mtbf + repair))


def test_erlangs_own_formula_written_out():
    load, servers = 24 / 12, 4
    terms = [1, load, load**2 / 2, load**3 / 6, load**4 / 24]
    assert waits_for_repair(servers - 1, 24, 12) == pytest.approx(terms[-1] / sum(terms))


@pytest.mark.parametrize("spares", [0, 1, 3])
def test_a_simulation_of_repairs_that_all_take_as_long_agrees(spares):
    drawn = simulate_waits(spares, 10.0, 8.0, failures=20_000, seed=1)
    assert drawn == pytest.approx(waits_for_repair(spares, 10.0, 8.0), rel=0.04)


def test_a_repair_that_takes_no_time_needs_no_spares_and_a_spare_that_is_never_needed_is_paid_for():
    assert waits_for_repair(0, 0.0, 5.0) == 0
    plain = goodput(1138, COSTS)
    assert goodput_a_node(1138, COSTS, nodes=9, spares=1, repair=0.0) == pytest.approx(plain * 9 / 10)
    assert best_spares(1138, COSTS, nodes=9, repair=0.0) == 0


def test_the_best_number_of_spares_is_better_than_its_neighbours_and_follows_the_repair():
    found = []
    for hours in (1, 24, 72):
        how = {"nodes": 256, "repair": hours * 3600.0}
        best = best_spares(1138, COSTS, **how)
        at = [goodput_a_node(1138, COSTS, spares=spares, **how) for spares in (max(0, best - 1), best, best + 1)]
        assert at[1] == max(at)
        found.append(best)
    assert found == sorted(set(found))


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="spares and repair start at 0"):
        waits_for_repair(-1, 1, 1)
    with pytest.raises(UsageError, match="at least one node"):
        goodput_a_node(1.0, COSTS, nodes=0, spares=0, repair=1.0)
