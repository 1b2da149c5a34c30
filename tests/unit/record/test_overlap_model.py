"""The model of buckets that queue: counted by torch's rules, timed by hand."""

import numpy as np
import pytest

from labkit.errors import UsageError
from labkit.record.overlap_model import MIB, Gradients, Link, best_cap, bucket_ends, caps_to_try, evenly, predict


@pytest.mark.parametrize(
    ("tensors", "mib", "cap", "first", "buckets"),
    [(16, 4, 25, 1, 4), (64, 1, 25, 1, 4), (16, 4, 25, None, 3), (64, 1, 25, None, 3), (1, 64, 25, 1, 1), (5, 1, 0, None, 5),
     (5, 1, 1000, None, 1), (6, 1, 3, None, 2)],
)  # fmt: skip
def test_buckets_fill_as_torchs_do(tensors, mib, cap, first, buckets):
    sizes = np.full(tensors, mib * MIB)
    ends = bucket_ends(sizes, max(1, cap * MIB), None if first is None else first * MIB)
    assert len(ends) == buckets and ends[-1] == tensors and ends == sorted(set(ends))


def four(backward_s=0.4):
    return evenly([1000] * 4, forward_s=0.2, backward_s=backward_s)


def test_one_bucket_sets_out_when_all_is_computed():
    found = predict(four(), Link(2, 0.0, 40_000.0), 10**9)
    assert (found.buckets, found.exposed_s, found.step_s) == (1, pytest.approx(0.1), pytest.approx(0.7))


def test_small_buckets_leave_one_exposed():
    """2(W-1)/W is 1 on two ranks: 1,000 bytes at 40 kB/s take 25 ms, and a gradient is ready every 100."""
    found = predict(four(), Link(2, 0.0, 40_000.0), 1000)
    assert found.buckets == 4 and found.exposed_s == pytest.approx(0.025)
    assert found.spans[0] == pytest.approx((0.1, 0.1, 0.125))


def test_buckets_queue_where_the_link_is_the_limit():
    """Each takes 200 ms: the last arrives at 100 + 4·200."""
    found = predict(four(), Link(2, 0.0, 5_000.0), 1000)
    assert found.exposed_s == pytest.approx(0.5)
    assert [start for _, start, _ in found.spans] == pytest.approx([0.1, 0.3, 0.5, 0.7])


def test_each_bucket_costs_a_latency():
    slow = Link(4, 0.05, None)
    assert slow.seconds(1) == pytest.approx(2 * 3 * 0.05)
    assert predict(four(), slow, 1).step_s > predict(four(), slow, 2000).step_s
    assert best_cap(four(), slow)[1].buckets == 1


def test_the_best_is_no_worse_than_any_other():
    link = Link(3, 0.003, 100_000.0)
    _, best = best_cap(four(), link)
    assert all(best.step_s <= predict(four(), link, cap).step_s + 1e-12 for cap in (1, 999, 1000, 1001, 2500, 4000, 10**6))


def test_one_rank_sends_nothing():
    assert predict(four(), Link(1, 1.0, 1.0), 1).exposed_s == 0


def test_the_sizes_of_a_sweep_go_from_one_bucket_to_one_a_parameter():
    caps = caps_to_try(12 * MIB)
    assert caps == sorted(caps, reverse=True) and caps[0] > 12 and caps[-1] == 0


def test_a_size_without_a_time_is_refused():
    with pytest.raises(UsageError, match="given 2 sizes, 1 times"):
        Gradients(np.array([1, 2]), np.array([0.1]), 0.1, 0.1)
