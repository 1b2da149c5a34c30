"""What only a GPU can show. None of this has run yet: see the README."""

import pytest

import labkit
from labkit.detect.utilisation.measures import flops_by_convention, tokens_per_second
from labkit.facts.devices import device, peak_flops
from labkit.labs.mfu import BILLION

pytestmark = [pytest.mark.gpu, pytest.mark.ranks]


def test_two_ranks_on_one_gpu_find_the_duplicate_data_by_gloo_over_cuda_tensors():
    lab = labkit.lab("duplicate-data")
    record = lab.run("broken", ranks=2, backend="gloo")
    assert record.run.ranks[0].head.device.startswith("cuda") and record.provenance.backend == "gloo"
    assert lab.judge(record)["rank-duplicates"].status == "found"


def test_a_gpu_for_each_rank_means_nccl():
    import torch

    lab = labkit.lab("duplicate-data")
    record = lab.run("fixed", ranks=torch.cuda.device_count())
    assert record.provenance.backend == "nccl"
    assert lab.judge(record)["coverage"].status == "clear"


def test_tf32_multiplies_with_ten_bits():
    lab = labkit.lab("precision")
    record = lab.run("tf32")
    assert record.run.ranks[0].finished


def test_the_tuned_ladder_passes_sixty_percent_of_the_dense_peak():
    record = labkit.lab("mfu").run("fixed", **{**BILLION, "batch": 16, "compile": True})
    peak = peak_flops(device(record.provenance.device), "bf16")
    used = tokens_per_second(record.run) * flops_by_convention(record.run)["attention"]
    assert used / peak >= 0.60
