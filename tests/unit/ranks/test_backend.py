"""One pure function decides where ranks run, over every machine."""

import pytest

from labkit.errors import UnknownName, UsageError
from labkit.ranks.backend import Placement, choose, threads_per_rank, usable_cores
from labkit.words import plural

MACHINES = [(ranks, gpus) for ranks in (1, 2, 3, 4, 8, 9) for gpus in range(9)]
on_every_machine = pytest.mark.parametrize(("ranks", "gpus"), MACHINES)


def where(placement: Placement) -> tuple[str, str, int]:
    return placement.backend, placement.device, placement.num_gpus


@on_every_machine
def test_each_rank_gets_a_gpu_or_shares_one_or_has_none(ranks, gpus):
    placement = choose(ranks, gpus)
    if gpus == 0:
        assert where(placement) == ("gloo", "cpu", 0)
    elif gpus < ranks:
        assert where(placement) == ("gloo", "cuda", gpus)
    else:
        assert where(placement) == ("nccl", "cuda", ranks)
    assert placement.reason


@on_every_machine
def test_nccl_never_puts_two_ranks_on_one_gpu_and_all_gpus_are_used_evenly(ranks, gpus):
    for backend in (None, "gloo"):
        placement = choose(ranks, gpus, backend=backend)
        devices = [placement.device_of(rank) for rank in range(ranks)]
        uses = [devices.count(device) for device in set(devices)]
        if placement.backend == "nccl":
            assert uses == [1] * ranks
        if placement.device == "cuda":
            assert max(uses) - min(uses) <= 1
            assert set(devices) <= {f"cuda:{gpu}" for gpu in range(gpus)}
        else:
            assert set(devices) == {"cpu"}


@on_every_machine
def test_the_cpu_can_be_asked_for_anywhere(ranks, gpus):
    for backend in (None, "gloo"):
        assert where(choose(ranks, gpus, "cpu", backend)) == ("gloo", "cpu", 0)


@on_every_machine
def test_gloo_can_be_asked_for_anywhere(ranks, gpus):
    assert choose(ranks, gpus, backend="gloo").backend == "gloo"
    assert choose(ranks, gpus, backend="gloo").device == ("cuda" if gpus else "cpu")


@on_every_machine
def test_nccl_is_refused_without_a_gpu_for_each_rank(ranks, gpus):
    if gpus >= ranks:
        assert where(choose(ranks, gpus, backend="nccl")) == ("nccl", "cuda", ranks)
        assert choose(ranks, gpus, "cuda", "nccl") == choose(ranks, gpus)
    else:
        with pytest.raises(
            UsageError, match=f"{plural(ranks, 'rank')}, {plural(gpus, 'GPU')}; use fewer ranks or --backend gloo"
        ):
            choose(ranks, gpus, backend="nccl")


def test_a_gpu_where_there_is_none_is_refused():
    with pytest.raises(UsageError, match="torch sees no GPU here; leave --device out, or give --device cpu"):
        choose(2, 0, "cuda")


def test_nccl_on_the_cpu_is_refused():
    with pytest.raises(UsageError, match="moves GPU tensors only; with --device cpu use --backend gloo"):
        choose(2, 8, "cpu", "nccl")


def test_unknown_devices_and_backends_are_refused():
    with pytest.raises(UnknownName, match="no device 'cuda:0'; there are: cpu, cuda. Did you mean 'cuda'"):
        choose(1, 1, "cuda:0")
    with pytest.raises(UnknownName, match="no backend 'mpi'; there are: gloo, nccl"):
        choose(1, 1, backend="mpi")


def test_ranks_share_the_cores_and_each_has_a_thread():
    assert threads_per_rank(1) == usable_cores() >= 1
    assert threads_per_rank(10_000) == 1
