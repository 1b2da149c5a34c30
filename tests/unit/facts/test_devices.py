"""The table of devices: figures hang together, each has its source, and no name is guessed."""

import subprocess
import sys

import pytest

from labkit.errors import UnknownName, UsageError
from labkit.facts.devices import DTYPES, UnsupportedDtype, device, devices, peak, peak_flops, plain

HALVES = 0.025  # vendors round dense and sparse figures each on its own
NOT_TWO_TO_ONE = {("gb300", "fp4")}  # 15 dense, 20 sparse, as printed
CONSUMER = {"rtx-3090", "rtx-4090", "rtx-5090"}


def pairs(numerator, denominator, **where):
    """Devices that print both types, with the quotient."""
    return {
        one.id: one.peak_flops[numerator] / one.peak_flops[denominator]
        for one in devices()
        if {numerator, denominator} <= one.peak_flops.keys() and all(getattr(one, k) == v for k, v in where.items())
    }


def test_at_least_28_devices_of_four_vendors_are_listed_once_each():
    assert len(devices()) >= 28
    assert len({one.id for one in devices()}) == len(devices())
    assert {one.vendor for one in devices()} == {"NVIDIA", "AMD", "Intel", "Google"}


@pytest.mark.parametrize("one", devices(), ids=lambda one: one.id)
def test_every_device_has_a_source_a_memory_and_a_half_precision_peak(one):
    assert one.source and one.address.startswith("https://")
    assert one.peak_flops.get("bf16") or one.peak_flops.get("fp16")
    assert 2015 < one.year < 2030
    assert set(one.peak_flops) <= set(DTYPES) and set(one.sparse_peak_flops) <= set(one.peak_flops)


@pytest.mark.parametrize("one", devices(), ids=lambda one: one.id)
def test_units_are_base_units(one):
    assert all(5e12 < value < 5e16 for value in one.peak_flops.values()), "FLOP/s, not TFLOP/s"
    assert 10e9 < one.memory_bytes < 1e12
    assert 100e9 < one.memory_bandwidth_bytes_s < 20e12
    assert one.link_bytes_s is None or 10e9 < one.link_bytes_s < 2e12
    assert one.tdp_w is None or 50 < one.tdp_w < 2000


@pytest.mark.parametrize("one", devices(), ids=lambda one: one.id)
def test_a_sparse_peak_is_twice_the_dense_one(one):
    for dtype, sparse in one.sparse_peak_flops.items():
        if (one.id, dtype) not in NOT_TWO_TO_ONE:
            assert sparse / one.peak_flops[dtype] == pytest.approx(2, rel=HALVES)


def test_tf32_runs_at_half_the_rate_of_bf16():
    ratios = pairs("bf16", "tf32")
    assert len(ratios) > 20
    assert ratios == {name: pytest.approx(2, rel=HALVES) for name in ratios}


def test_bf16_and_fp16_run_at_one_rate():
    assert set(pairs("bf16", "fp16").values()) == {1}


def test_fp8_doubles_bf16_but_on_gaudi_3():
    ratios = pairs("fp8", "bf16")
    assert ratios.pop("gaudi-3") == 1
    assert ratios == {name: pytest.approx(2, rel=HALVES) for name in ratios}


def test_consumer_cards_accumulate_in_fp32_at_half_the_rate_of_the_same_chips_in_workstations():
    bf16_per_fp32 = pairs("bf16", "fp32", vendor="NVIDIA")
    assert [bf16_per_fp32[name] for name in sorted(CONSUMER)] == pytest.approx([2, 2, 2], rel=HALVES)
    assert bf16_per_fp32["rtx-a6000"] == pytest.approx(4, rel=HALVES)
    assert bf16_per_fp32["rtx-6000-ada"] == pytest.approx(4, rel=HALVES)


def test_on_an_h100_bf16_is_fifteen_times_fp32_and_not_twenty():
    assert peak_flops("h100-sxm", "bf16") == 989.4e12
    assert peak_flops("h100-sxm", "fp32") == 66.9e12
    assert peak_flops("h100-sxm", "bf16") / peak_flops("h100-sxm", "fp32") == pytest.approx(14.8, abs=0.05)


def test_one_die_of_an_mi250x_is_half_of_the_module_and_torch_names_the_die():
    die, module = device("AMD Instinct MI250X"), device("mi250x")
    assert die.id == "mi250x-gcd"
    assert {dtype: 2 * value for dtype, value in die.peak_flops.items()} == dict(module.peak_flops)
    assert 2 * die.memory_bytes == module.memory_bytes


def test_a_link_is_given_in_one_direction():
    assert device("h100-sxm").link_bytes_s == 450e9
    assert device("t4").link_bytes_s == 16e9


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("nvidia h100 pcie", "h100-pcie"),
        ("H100-80GB", "h100-sxm"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("A100_SXM4_80GB", "a100-sxm-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("geforce rtx 4090", "rtx-4090"),
        ("TPU v5e", "tpu-v5e"),
    ],
)
def test_a_device_is_found_by_any_of_its_names(name, found):
    assert device(name).id == found


def test_every_alias_leads_to_its_own_device():
    assert all(device(name) is one for one in devices() for name in (one.id, one.name, *one.aliases))


@pytest.mark.parametrize("name", ["H100", "A100", "V100", "Radeon", "h100sxm6", "", "NVIDIA"])
def test_an_unknown_or_ambiguous_name_is_refused_with_the_list(name):
    with pytest.raises(UnknownName) as caught:
        device(name)
    assert all(one.id in str(caught.value) for one in devices())


def test_the_refusal_names_the_nearest_devices():
    with pytest.raises(UnknownName, match="Nearest: h100-pcie, h100-sxm, h100-nvl"):
        device("NVIDIA H100")
    with pytest.raises(UnknownName, match="Nearest: rtx-4090"):
        device("RTX 4080")


def test_a_type_without_units_is_refused_with_those_that_the_device_has():
    with pytest.raises(UnsupportedDtype, match="NVIDIA V100 SXM2 32 GB has no dense peak for bf16.*it has: fp32, fp16"):
        peak("v100-sxm2-32gb", "bf16")
    assert issubclass(UnsupportedDtype, UsageError)


def test_an_unknown_type_is_refused_with_the_list_and_the_nearest():
    with pytest.raises(UnknownName, match="no dtype 'bf61'.*bf16.*Did you mean 'bf16'"):
        peak("h100-sxm", "bf61")


@pytest.mark.parametrize("spelling", ["bf16", "torch.bfloat16", "bfloat16", "BF16"])
def test_torch_spellings_of_a_type_are_understood(spelling):
    assert peak_flops("h100-sxm", spelling) == 989.4e12


def test_a_sparse_peak_comes_only_when_asked_for_and_says_so():
    dense, sparse = peak("h100-sxm", "bf16"), peak("h100-sxm", "bf16", sparse=True)
    assert sparse.flops == pytest.approx(2 * dense.flops, rel=1e-3)
    assert sparse.sparse and "sparsity" in sparse.label
    assert not dense.sparse and "dense" in dense.label


def test_a_device_without_sparsity_has_no_sparse_peak():
    with pytest.raises(UnsupportedDtype, match="no sparse peak for fp16.*it has: none at all"):
        peak("v100-sxm2-16gb", "fp16", sparse=True)


def test_names_are_compared_without_vendor_case_spaces_dashes():
    assert plain("NVIDIA H100_80GB-HBM3") == "h10080gbhbm3"


def test_the_table_loads_without_torch():
    code = "import sys, labkit.facts.devices as d; d.devices(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
