"""Bucket sizes by wrong rules, each refused; right ones accepted, ten times on a busy machine."""

import itertools
import math

import numpy as np
import pytest
from answers import each

import labkit
from labkit.labs.overlap import exercise
from labkit.theory.overlap_model import MIB, best_cap, predict

pytestmark = pytest.mark.ranks
LAB = labkit.lab("overlap")


def by_parts(gradients, link):
    total = gradients.total_bytes * 1.01 / MIB
    sizes = [total / parts for parts in range(1, 60)]
    return min(sizes, key=lambda size: predict(gradients, link, size * MIB).step_s)


def by_every_size(gradients, link):
    return best_cap(gradients, link)[0]


def without_the_model(gradients, link):
    """Every size, the queue worked out by hand."""
    ready, sizes = gradients.ready_s, gradients.num_bytes

    def finished(cap):
        free, held = 0.0, 0
        for at, size in zip(ready, sizes, strict=True):
            held += int(size)
            if held >= cap:
                free, held = max(free, at) + link.seconds(held), 0
        return free if not held else max(free, ready[-1]) + link.seconds(held)

    return min({int(cap) for cap in np.cumsum(sizes)} | {1}, key=finished) / MIB


def total(gradients):
    return gradients.total_bytes / MIB


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda g, link: by_parts(g, link) if next(calls) < number else 25.0


def where(holds, other=lambda g, link: 25.0):
    return lambda g, link: other(g, link) if holds(g, link) else by_parts(g, link)


def parts(number):
    return lambda g, link: total(g) * 1.01 / number


THE_FIRST_CASES = {(12, 2, 1e-4): 1.0, (12, 2, 20e-3): 5.0, (200, 8, 2e-3): 3.0, (17, 4, 1e-3): 3.0}

WRONG = {
    "25 MiB": lambda g, link: 25.0,
    "1 MiB": lambda g, link: 1.0,
    "5 MiB": lambda g, link: 5.0,
    "0.1 MiB": lambda g, link: 0.1,
    "one bucket": lambda g, link: 2 * total(g),
    "one a gradient": lambda g, link: 1e-6,
    "two buckets": parts(2),
    "three buckets": parts(3),
    "four buckets": parts(4),
    "eight buckets": parts(8),
    "sixteen buckets": parts(16),
    "a bucket a rank": lambda g, link: total(g) / link.world_size,
    "the root of the gradients": lambda g, link: total(g) / math.sqrt(len(g.num_bytes)),
    "the largest gradient": lambda g, link: float(max(g.num_bytes)) / MIB,
    "the first gradient": lambda g, link: float(g.num_bytes[0]) / MIB,
    "the last gradient": lambda g, link: float(g.num_bytes[-1]) / MIB,
    "what the link sends in its latency": lambda g, link: link.alpha_s * link.bytes_per_s / MIB,
    "thrice what it sends in its latency": lambda g, link: 3 * link.world_size * link.alpha_s * link.bytes_per_s / MIB,
    "the first cases alone": lambda g, link: THE_FIRST_CASES.get((len(g.num_bytes), link.world_size, link.alpha_s), 25.0),
    "right for few gradients": where(lambda g, link: len(g.num_bytes) > 20),
    "right for two ranks": where(lambda g, link: link.world_size > 2, parts(2)),
    "right for the first three calls": for_so_many_calls(3),
    "half of the best": lambda g, link: by_parts(g, link) / 4,
    "as if there were no latency": lambda g, link: by_parts(g, type(link)(link.world_size, 0.0, link.bytes_per_s)),
    "as if bytes were free": lambda g, link: by_parts(g, type(link)(link.world_size, link.alpha_s, None)),
}


@each(WRONG)
def test_a_wrong_rule_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt and "(simulated)" in str(result)


@pytest.mark.parametrize("answer", [by_parts, by_every_size, without_the_model])
def test_a_right_rule_is_accepted_on_a_busy_machine(answer, busy, monkeypatch):
    monkeypatch.setattr(exercise, "MEASURED", {"layers": 4, "width": 128, "batch": 256})
    assert str(LAB.check(answer)) == "Solved: every check passed."


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("answer", [by_parts, by_every_size, without_the_model])
def test_a_right_rule_is_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10
