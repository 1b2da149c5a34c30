"""Each fault of reading, moved to a random epoch and rank, is found there; what is right is never accused.

A fault may be too small to be told from chance or from padding: then it is left open. Where it must be found is said beside
each. Every property is tried quickly with all tests, and at length by `make soak`.
"""

import math

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from labkit import detect
from labkit.record.schema import Seen

from ..builders import content_of, record_of, run_of
from . import histories
from .histories import Plan, plans

READS = ("rank-duplicates", "worker-duplicates", "coverage", "order", "validation-leak")
CHECKS = [HealthCheck.filter_too_much, HealthCheck.too_slow]
QUICK = settings(max_examples=50, derandomize=True, deadline=None, database=None, suppress_health_check=CHECKS)
LONG = settings(max_examples=2000, derandomize=False, deadline=None, database=None, suppress_health_check=CHECKS)


def verdict(name, plan, reading, *, ids=True, complete=True, validation=(), **facts):
    facts = {"dataset_size": plan.size, "batch_size": plan.batch} | facts
    return detect.detector(name)(record_of(run_of(reading, ids=ids, complete=complete, validation=validation, **facts)))


def begins(found) -> int:
    return found.evidence["begins_in_epoch"].value if "begins_in_epoch" in found.evidence else 0


# What is wrong


def many(plan: Plan) -> bool:
    """Ranks that read so many samples twice do not pad, and do not draw with replacement."""
    return plan.ranks > 1 and plan.size >= 12 * plan.ranks and plan.size >= 40


def seen_apart(plan: Plan) -> bool:
    """An epoch before the fault has shown by its hashes that no two samples are equal."""
    return plan.begins > 0 and not plan.drop_last


def drawn_apart(plan: Plan) -> bool:
    """Draws with replacement would have repeated samples on one rank, too, in the epochs with the fault together."""
    return many(plan) and (plan.epochs - plan.begins) * plan.size / (2 * plan.ranks) > 15


def always(plan: Plan) -> bool:
    return True


FAULTS = {  # the fault, who must see it, in which plans, and in which of these by hashes alone
    "identical ranks": (histories.identical, "rank-duplicates", many, always),
    "one share for all": (histories.everyone_is_one_rank, "rank-duplicates", many, seen_apart),
    "own shuffles": (histories.own_shuffles, "rank-duplicates", many, always),
    "own permutations": (histories.own_permutations, "rank-duplicates", drawn_apart, seen_apart),
    "shards that overlap": (  # not in the last step alone, as of a loader that fills it up
        histories.overlap, "rank-duplicates", lambda p: drawn_apart(p) and 4 * p.batch * p.ranks <= p.size, seen_apart),
    "twins": (histories.twins, "rank-duplicates", drawn_apart, seen_apart),
    "half unread": (
        histories.half_unread, "coverage", lambda p: p.size >= max(16, 4 * p.ranks * p.batch), always),
    "sharded twice": (
        histories.double_sharded, "coverage", lambda p: p.ranks > 1 and p.size >= max(16, 4 * p.ranks * p.batch), always),
    "workers": (histories.workers, "worker-duplicates", many, seen_apart),
    "workers of one rank": (histories.workers_of_one_rank, "worker-duplicates", many, seen_apart),
}  # fmt: skip


def check_fault(fault: str, plan: Plan, ids: bool) -> None:
    wrong, name, enough, by_content = FAULTS[fault]
    assume(enough(plan))
    found = verdict(name, plan, plan.history(wrong), ids=ids)
    if ids or by_content(plan):
        assert (found.status, begins(found)) == ("found", plan.begins), found
    else:
        assert found.status != "clear", found


@pytest.mark.parametrize("fault", FAULTS)
@QUICK
@given(plan=plans(), ids=st.booleans())
def test_a_fault_is_found_in_the_epoch_in_which_it_begins(fault, plan, ids):
    check_fault(fault, plan, ids)


@QUICK
@given(plan=plans(ranks=(2, 8), size=(96, 200), epochs=(2, 10)))
def test_ranks_that_are_identical_from_a_step_on_are_found_in_that_epoch_or_where_little_of_it_is_left_in_the_next(plan):
    assume(plan.begins < plan.epochs - 1)
    found = verdict("rank-duplicates", plan, plan.history(histories.identical_from_a_step_on))
    left = plan.size - plan.seed % plan.size
    assert found.status == "found" and begins(found) in {plan.begins, plan.begins + (left < plan.size // 2)}, found


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("fault", FAULTS)
@LONG
@given(plan=plans(), ids=st.booleans())
def test_a_fault_is_found_wherever_it_begins(fault, plan, ids):
    check_fault(fault, plan, ids)


def steps_of(plan: Plan) -> int:
    return math.ceil(plan.size // plan.ranks / plan.batch)


def orders_of(plan: Plan, times: int, ranks: int) -> float:
    """-log of the chance that so many epochs come in a given order on so many ranks, were they shuffled anew."""
    return times * ranks * math.lgamma(plan.size // plan.ranks + 1)


ORDERS = {  # the fault, how many epochs its period is, and how many ranks repeat
    "forgotten": (histories.forgotten, 1, lambda plan: plan.ranks),
    "alternating": (histories.alternating, 2, lambda plan: plan.ranks),
    "forgotten on one rank": (histories.forgotten_on_one_rank, 1, lambda plan: 1),
}


def check_order(fault: str, plan: Plan, ids: bool) -> None:
    wrong, period, ranks = ORDERS[fault]
    repeated = plan.epochs - plan.begins - period
    assume(repeated >= period)
    found = verdict("order", plan, plan.history(wrong), ids=ids)
    chance = orders_of(plan, repeated, ranks(plan)) - math.log(plan.epochs**2) - ranks(plan) * math.log(plan.ranks)
    if steps_of(plan) > 1 and chance > 2 * math.log(1e6):
        assert (found.status, begins(found)) == ("found", plan.begins + period), found
    else:
        assert found.status != "clear", found


@pytest.mark.parametrize("fault", ORDERS)
@QUICK
@given(plan=plans(epochs=(2, 10)), ids=st.booleans())
def test_an_order_that_repeats_is_found_from_the_epoch_on_in_which_it_does(fault, plan, ids):
    check_order(fault, plan, ids)


@pytest.mark.parametrize("fault", ORDERS)
@QUICK
@given(plan=plans(size=(2, 10), epochs=(2, 10)), ids=st.booleans())
def test_an_order_that_repeats_is_never_clear_at_tiny_sizes(fault, plan, ids):
    check_order(fault, plan, ids)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("fault", ORDERS)
@LONG
@given(plan=plans(epochs=(2, 10)), ids=st.booleans())
def test_an_order_that_repeats_is_found_wherever_it_begins(fault, plan, ids):
    check_order(fault, plan, ids)


def held_out(plan: Plan, epoch: int, rank: int) -> list[int]:
    """A fifth of the data, of the rank's own choice from `begins` on."""
    return plan.order(10_000, rank + 1 if epoch >= plan.begins else 0)[: plan.size // 5]


def leaky_run(plan: Plan, ids: bool):
    """Each rank trains on its share of what its split of the epoch leaves, and validates on the rest."""
    reading, passes = [], []
    for epoch in range(plan.epochs):
        held = [held_out(plan, epoch, rank) for rank in range(plan.ranks)]
        left = [[sample for sample in plan.order(epoch) if sample not in set(own)] for own in held]
        reading.append([histories.in_batches(own[r :: plan.ranks], plan.batch) for r, own in enumerate(left)])
        passes.append(held)
    run = run_of(reading, ids=ids, dataset_size=plan.size - plan.size // 5)
    logs = [
        msgspec.structs.replace(log, seen=tuple(
            Seen("validation", epoch, [content_of(one) for one in held[rank]], held[rank] if ids else [])
            for epoch, held in enumerate(passes)))
        for rank, log in enumerate(run.ranks)
    ]  # fmt: skip
    return record_of(msgspec.structs.replace(run, ranks=tuple(logs)))


@QUICK
@given(plan=plans(ranks=(2, 8), size=(100, 200)), ids=st.booleans())
def test_a_leak_is_found_in_the_epoch_in_which_it_begins(plan, ids):
    found = detect.detector("validation-leak")(leaky_run(plan, ids))
    if ids:
        assert (found.status, begins(found)) == ("found", plan.begins), found
    else:
        assert found.status != "clear", found


@QUICK
@given(plan=plans(size=(10, 200)), ids=st.booleans())
def test_one_split_for_all_epochs_and_ranks_never_leaks(plan, ids):
    whole = Plan(plan.ranks, plan.size, plan.batch, plan.epochs, plan.epochs, plan.rank, plan.seed, False)
    assert detect.detector("validation-leak")(leaky_run(whole, ids)).status == "clear"


# What is right


RIGHT = (
    histories.proper, histories.loader_drops_last, histories.with_replacement, histories.weighted, histories.filled,
    histories.by_hand_without_padding, histories.curriculum, histories.in_turn,
)  # fmt: skip


def check_right(how, plan: Plan, ids: bool, complete: bool) -> None:
    assume(how is not histories.loader_drops_last or plan.size // plan.ranks >= plan.batch)
    assume(how is not histories.in_turn or plan.size >= 2 * -(-plan.size // 3) + plan.ranks)
    assume(how is not histories.filled or plan.ranks * plan.batch < 2 * plan.size)
    reading = [how(plan, epoch) for epoch in range(plan.epochs)]
    for name in READS:
        if name == "coverage" and how in (histories.curriculum, histories.in_turn):
            whole = plan.epochs >= 3 if how is histories.in_turn else plan.size >= plan.ranks
            if not whole or plan.epochs == 1:
                continue  # one part of the data alone is what a fault would leave
        found = verdict(name, plan, reading, ids=ids, complete=complete)
        assert found.status != "found", found


@pytest.mark.parametrize("how", RIGHT, ids=lambda how: how.__name__)
@QUICK
@given(plan=plans(), ids=st.booleans(), complete=st.booleans())
def test_what_is_right_is_never_accused(how, plan, ids, complete):
    check_right(how, plan, ids, complete)


@pytest.mark.parametrize("how", RIGHT, ids=lambda how: how.__name__)
@QUICK
@given(plan=plans(size=(2, 12)), ids=st.booleans(), complete=st.booleans())
def test_what_is_right_is_never_accused_at_tiny_sizes(how, plan, ids, complete):
    check_right(how, plan, ids, complete)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("how", RIGHT, ids=lambda how: how.__name__)
@LONG
@given(plan=plans(), ids=st.booleans(), complete=st.booleans())
def test_what_is_right_is_never_accused_however_long_one_looks(how, plan, ids, complete):
    check_right(how, plan, ids, complete)
