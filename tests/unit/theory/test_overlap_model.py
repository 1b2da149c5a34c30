"""The model of buckets that queue: counted by torch's rules, timed by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed import _compute_bucket_assignment_by_size

from labkit.errors import UsageError
from labkit.theory.overlap_model import (
    MIB,
    Gradients,
    Link,
    best_cap,
    bucket_ends,
    caps_to_try,
    evenly,
    first_try_mib,
    predict,
)

from ..quick import quick


@pytest.mark.parametrize(
    ("tensors", "mib", "cap", "first", "buckets"),
    [(16, 4, 25, 1, 4), (64, 1, 25, 1, 4), (16, 4, 25, None, 3), (64, 1, 25, None, 3), (1, 64, 25, 1, 1), (5, 1, 0, None, 5),
     (5, 1, 1000, None, 1), (6, 1, 3, None, 2)],
)  # fmt: skip
def test_buckets_fill_as_torchs_do(tensors, mib, cap, first, buckets):
    sizes = np.full(tensors, mib * MIB)
    ends = bucket_ends(sizes, max(1, cap * MIB), None if first is None else first * MIB)
    assert len(ends) == buckets and ends[-1] == tensors and ends == sorted(set(ends))


@quick
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20),
    cap=st.integers(1, 120),
    first=st.none() | st.integers(1, 120),
)
def test_buckets_end_where_torch_itself_ends_them(sizes, cap, first):
    """By the function that DistributedDataParallel calls; sizes are of float32 elements."""
    caps = [4 * cap] if first is None else [4 * first, 4 * cap]
    buckets, _ = _compute_bucket_assignment_by_size([torch.empty(size) for size in sizes], caps)
    ends = bucket_ends(4 * np.array(sizes), 4 * cap, None if first is None else 4 * first)
    assert ends == [bucket[-1] + 1 for bucket in buckets]


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


LAB = evenly([1_050_624] * 12, forward_s=0.15, backward_s=0.28)
"""The network of the lab; its link has 400 Mbit/s."""


@pytest.mark.parametrize("cap", [1, 1000, 2500, 4000, 10**9])
def test_the_last_bucket_leaves_when_the_backward_pass_is_over_so_all_of_it_is_exposed(cap):
    found = predict(four(), Link(2, 0.001, 40_000.0), cap)
    ready, starts, ends = found.spans[-1]
    assert ready == pytest.approx(0.4) and starts >= ready
    assert found.exposed_s >= ends - starts


@pytest.mark.parametrize("parts", [8, 16])
def test_an_eighth_or_a_sixteenth_is_near_the_best_on_the_labs_link(parts):
    link = Link(2, 1e-4, 50e6)
    _, best = best_cap(LAB, link)
    assert predict(LAB, link, LAB.total_bytes / parts).step_s < 1.15 * best.step_s < predict(LAB, link, 10**9).step_s


def test_what_to_begin_with_is_an_eighth_and_never_more_than_torchs_default():
    assert first_try_mib(16 * MIB) == 2
    assert first_try_mib(14e9) == 25 < 14e9 / 16 / MIB


def test_the_smallest_buckets_are_not_the_best_where_each_pays_a_millisecond():
    many = evenly([66_048] * 400, forward_s=0.05, backward_s=0.1)
    _, best = best_cap(many, Link(2, 1e-3, 125e6))
    assert predict(many, Link(2, 1e-3, 125e6), 1).step_s > 2 * best.step_s


@pytest.mark.parametrize("cap_mib", [25, 1000])
def test_all_gradients_of_the_lab_fit_into_one_bucket_of_25_mib(cap_mib):
    assert len(bucket_ends(LAB.num_bytes, cap_mib * MIB)) == 1


def test_no_bucket_size_hides_what_is_longer_than_the_backward_pass():
    """forward + max(backward, communication) is what a step takes at least."""
    for bytes_per_s in (5_000.0, 20_000.0, 80_000.0):
        sends_s = 4000 / bytes_per_s
        for cap in (1, 2000, 10**9):
            assert predict(four(), Link(2, 0.0, bytes_per_s), cap).step_s >= 0.2 + max(0.4, sends_s)


def test_a_larger_latency_lifts_the_end_with_many_buckets():
    def rise(alpha_s):
        link = Link(2, alpha_s, 50e6)
        return predict(LAB, link, 1).step_s - best_cap(LAB, link)[1].step_s

    assert rise(20e-3) > 0.1 > 0.02 > rise(1e-4)


def test_one_rank_sends_nothing():
    assert predict(four(), Link(1, 1.0, 1.0), 1).exposed_s == 0


def test_the_sizes_of_a_sweep_go_from_one_bucket_to_one_a_parameter():
    caps = caps_to_try(12 * MIB)
    assert caps == sorted(caps, reverse=True) and caps[0] > 12 and caps[-1] == 0


def test_a_size_without_a_time_is_refused():
    with pytest.raises(UsageError, match="given 2 sizes, 1 times"):
        Gradients(np.array([1, 2]), np.array([0.1]), 0.1, 0.1)
