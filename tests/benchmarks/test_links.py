"""How long hosts take to come up, and how true their links are, real and emulated. Ratios within one run only."""

import statistics
import time

import pytest

from labkit.ranks.hosts import hosts
from labkit.ranks.launch import launch
from labkit.ranks.links import links
from labkit.theory.ceilings import all_reduce_s

pytestmark = pytest.mark.benchmark

NUM_FLOATS, REPEATS = 3_150_000, 5
RATE = "400mbit"


def reduces(context):
    """Seconds of an all-reduce of `config` floats, the first left out."""
    import torch
    import torch.distributed as dist

    tensor, seconds = torch.zeros(context.task), []
    for _ in range(REPEATS + 1):
        dist.barrier()
        start = time.monotonic()
        dist.all_reduce(tensor)
        seconds.append(time.monotonic() - start)
    return seconds[1:]


def test_hosts_are_up_before_their_ranks_are(tmp_path):
    """Two hosts against a launch of two ranks, both warm; most of it is the measuring of the rate."""
    up_s, launch_s = [], []
    for number in range(6):
        start = time.monotonic()
        with hosts(links(2, 2, RATE)):
            up_s.append(time.monotonic() - start)
        (tmp_path / str(number)).mkdir()
        start = time.monotonic()
        launch(reduces, 10, ranks=2, folder=tmp_path / str(number))
        launch_s.append(time.monotonic() - start)
    up, launched = statistics.median(up_s), statistics.median(launch_s[1:])
    print(f"\ntwo hosts up in {up:.3f} s (median of 6); a launch of two ranks takes {launched:.3f} s")
    assert up < 3 * launched


@pytest.mark.parametrize("emulate", [False, True])
def test_an_all_reduce_takes_what_the_ring_takes_on_that_link(tmp_path, emulate):
    with hosts(links(2, 2, RATE, emulate=emulate)) as up:
        if up.network.way == "emulated" and not emulate:
            pytest.skip(up.network.reason)
        seconds = launch(reduces, NUM_FLOATS, ranks=2, folder=tmp_path, seats=up.seats).values[0]
    bound = all_reduce_s(NUM_FLOATS * 4, world_size=2, alpha_s=0.0, bytes_per_s=4e8 / 8)
    median = statistics.median(seconds)
    print(f"\n{up.network.label()}: {median * 1e3:.0f} ms, {median / bound:.3f} of the ring's bound of {bound * 1e3:.0f} ms")
    assert 0.95 < median / bound < 1.3
