"""Every verdict of data/claims.toml is recomputed here, from a measurement or a calculation; none is taken on trust."""

import functools
import math

import numpy as np
import pytest
import torch

from labkit.detect.cost import cost_of
from labkit.errors import RankFailed, RecordError
from labkit.facade import Lab
from labkit.hardware.devices import device, devices, peak_flops
from labkit.labs import slugs, spec
from labkit.record.claims import claims
from labkit.record.flops import mfu
from labkit.record.published import bands, share_below, training
from labkit.record.reliability import (
    gpus_from_which_failures_are_due,
    interruption_probability,
    mtbf_hours,
    quoted_gpu_hours,
)

RECOMPUTED = {}


def recomputes(name):
    def register(function):
        RECOMPUTED[name] = function
        return function

    return register


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        run.cache_clear()
        yield


@functools.cache
def run(slug, variant, **settings):
    return Lab(spec(slug)).run(variant, **settings)


def measures(slug, variant, **settings):
    return Lab(spec(slug)).measures(run(slug, variant, **settings))


def digits(variant, **settings):
    return measures("duplicate-data", variant, num_samples=400, ranks=2, **settings)


@recomputes("A1")
def _():
    below = share_below(training(), 0.30)
    return "holds" if below > 0.5 else "conditional" if below > 0.05 else "wrong"


@recomputes("A2")
def _():
    h100 = device("H100 SXM")
    times = peak_flops(h100, "bf16") / peak_flops(h100, "fp32")
    assert round(times, 1) == 14.8 and 7 < peak_flops(h100, "tf32") / peak_flops(h100, "fp32") < 8
    return "holds" if math.isclose(times, 20, rel_tol=0.1) else "wrong"


@recomputes("A3")
def _():
    others = {dtype for d in devices() if d.id.startswith("h100") for dtype in d.peak_flops} - {
        "fp16",
        "bf16",
        "fp32",
        "fp64",
    }
    return "wrong" if {"tf32", "fp8", "int8"} <= others else "holds"


@recomputes("A4")
def _():
    from labkit.labs.precision.numerics import stall

    return "holds" if float(stall("float16").value) == 0.25 else "wrong"


@recomputes("A5")
def _():
    from labkit.labs.precision.numerics import dot_errors

    errors = dot_errors("float16", length=4096)
    return "holds" if errors.sum_in_32 < 1e-4 < 1e-3 < errors.sum_in_16 else "wrong"


@recomputes("A6")
def _():
    assert hasattr(torch.amp, "GradScaler") and hasattr(torch.amp, "autocast")
    without = Lab(spec("precision")).judge(run("precision", "broken"))["gradient-underflow"].status
    scaled = Lab(spec("precision")).judge(run("precision", "fixed"))["gradient-underflow"].status
    return "holds" if (without, scaled) == ("found", "clear") else "wrong"


@recomputes("A7")
def _():
    bf16, fp32, fp16 = torch.finfo(torch.bfloat16), torch.finfo(torch.float32), torch.finfo(torch.float16)
    same_range = bf16.tiny == fp32.tiny and bf16.max / fp32.max > 0.99 and fp16.tiny > 1e-5
    price = torch.tensor(256.0, dtype=torch.bfloat16) + 1 == 256
    return "holds" if same_range and price else "wrong"


@recomputes("A14")
def _():
    same, own = digits("broken"), digits("overlapping")
    assert same["samples_per_epoch"] == own["samples_per_epoch"]
    identical = same["unique_share_of_global_batch"].value == 0.5
    return "conditional" if identical and own["unique_share_of_global_batch"].value > 0.9 else "holds"


@recomputes("A15")
def _():
    return "holds" if digits("broken")["weights_equal_single"].value else "wrong"


@recomputes("A17")
def _():
    from torch.utils.data import DistributedSampler

    data, ranks = list(range(10)), 4
    order = torch.randperm(10, generator=torch.Generator().manual_seed(3)).tolist()
    order += order[: -len(order) % ranks]
    dealt = [list(DistributedSampler(data, ranks, rank, seed=3)) for rank in range(ranks)]
    return "holds" if dealt == [order[rank::ranks] for rank in range(ranks)] else "wrong"


@recomputes("A18")
def _():
    return (
        "holds" if digits("no-set-epoch")["order_repeats"].value and not digits("fixed")["order_repeats"].value else "wrong"
    )


@recomputes("A19")
def _():
    from torch.utils.data import DataLoader, DistributedSampler

    try:
        DataLoader([1, 2], shuffle=True, sampler=DistributedSampler([1, 2], 2, 0))
    except ValueError:
        return "holds"
    return "wrong"


@recomputes("A20")
def _():
    from labkit.record.probe import digest_rows

    one, other = np.array([[1.0, 4.0]]), np.array([[2.0, 3.0]])
    return "conditional" if one.sum() == other.sum() and digest_rows(one) != digest_rows(other) else "holds"


@recomputes("A21")
def _():
    value = mfu(tokens_per_s=18_000, flops_per_token=6 * 7e9, peak_flops=989e12, num_devices=8)
    return "holds" if round(value, 4) == 0.0956 else "wrong"


@recomputes("A22")
def _():
    from labkit.labs.mfu.programs import count_step_flops
    from labkit.workloads.gpt import GPTShape

    shape = GPTShape(seq=64)
    plain, again = (count_step_flops(shape, attention="naive", recompute=r, batch=1) for r in (False, True))
    return "wrong" if again > 1.2 * plain else "holds"  # more work for the same tokens


@recomputes("A23")
def _():
    from labkit.labs.mfu.programs import count_step_flops
    from labkit.workloads.gpt import GPTShape

    shape = GPTShape(seq=128)
    counted = count_step_flops(shape, attention="naive", recompute=False, batch=1) / shape.seq
    attention = 12 * shape.layers * shape.hidden * shape.seq
    return "conditional" if counted == 6 * shape.matmul_params + attention else "holds"


@recomputes("A24")
def _():
    small = {"seq": 64, "hidden": 32, "heads": 2, "steps": 3}
    moving = measures("mfu", "busy-not-useful", **small)["busy_share"].value
    waiting = measures("mfu", "starved", data_wait_ms=300.0, **small)["busy_share"].value
    return "conditional" if moving > 3 * waiting else "holds"


@recomputes("A25")
def _():
    share = {(band.low, band.high): band.share for band in bands(training(), (0.20, 0.30, 0.55, 0.60))}
    rare = share[(0.0, 0.20)] < 0.05 and share[(0.60, None)] < 0.05
    return "holds" if rare and share[(0.30, 0.55)] > 0.5 else "wrong"


@recomputes("A26")
def _():
    """Bytes by formula: 2 nodes of 8, a model of 1e9 weights in 16 bits, gathered twice and reduced once a step."""
    nodes, inside, weights = 2, 8, 1e9
    total = nodes * inside
    fsdp_slow = 3 * 2 * weights * (total - inside) / total  # what a rank fetches from the other node
    hsdp_slow = 2 * 2 * weights / inside * (nodes - 1) / nodes  # its shard of the gradients, all-reduced
    fsdp_state, hsdp_state = 16 * weights / total, 16 * weights / inside
    return "conditional" if hsdp_slow < fsdp_slow and hsdp_state == nodes * fsdp_state else "wrong"


@recomputes("A27")
def _():
    h100 = device("H100 SXM")
    ridge = peak_flops(h100, "bf16") / h100.memory_bandwidth_bytes_s

    def intensity(tokens, hidden=4096):
        return 2 * tokens * hidden**2 / (2 * (2 * tokens * hidden + hidden**2))

    return "conditional" if intensity(128) < ridge < intensity(2048) else "holds"


@recomputes("A28")
def _():
    from torch.utils._python_dispatch import TorchDispatchMode

    from labkit.workloads.gpt import Attention, GPTShape

    class Traffic(TorchDispatchMode):
        """Bytes of all tensors that operations read and write, views left out."""

        moved = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if not func.is_view:
                tensors = [t for t in (*args, *(out if isinstance(out, tuple) else (out,))) if isinstance(t, torch.Tensor)]
                self.moved += sum(t.numel() * t.element_size() for t in tensors)
            return out

    def moved(kind, seq):
        layer = Attention(GPTShape(seq=seq, hidden=32, heads=2), kind)
        with torch.no_grad(), Traffic() as traffic:
            layer(torch.zeros(1, seq, 32))
        return traffic.moved

    short, long = (moved("naive", seq) / moved("sdpa", seq) for seq in (64, 512))
    return "holds" if 1 < short < long else "wrong"


@recomputes("A30")
def _():
    def step(input_ms, compute_ms):
        return max(input_ms, compute_ms)

    start, kernel, loader, both = step(100, 100), step(100, 40), step(20, 100), step(20, 40)
    return "conditional" if start == kernel == loader > both else "holds"


@recomputes("B29")
def _():
    record = Lab(spec("start-here")).run(ranks=2)
    return "conditional" if (kept := record.baseline) and kept.matmul_flops_per_s and kept.link_bytes_per_s else "wrong"


def crash(variant="fixed", **settings):
    return measures("crash-recovery", variant, num_samples=301, global_batch=50, ranks=2, kill_step=13, **settings)


@recomputes("B23")
def _():
    without, saved = crash("broken"), crash("fixed")
    assert cost_of(1.0, num_gpus=64, hours=47, price_per_gpu_hour=1.0).gpu_hours == 3008
    return "holds" if without["lost_steps"].value == 13 and saved["lost_steps"].value == 3 else "wrong"


@recomputes("B24")
def _():
    rate = quoted_gpu_hours()
    assert round(rate, -2) == 50_700
    sizes = {days: gpus_from_which_failures_are_due(rate, 24 * days) for days in (7, 54)}
    assert sizes == {7: 302, 54: 40}
    return "conditional" if mtbf_hours(rate, 16384) < 24 * 54 and mtbf_hours(rate, 8) > 24 * 54 else "wrong"


@recomputes("B25")
def _():
    full, light = crash("fixed"), crash("light")
    assert light["lost_steps"].value < full["lost_steps"].value and light["departs_at"].value != "never"
    return "holds" if full["weights_equal_uninterrupted"].value and full["departs_at"].value == "never" else "wrong"


@recomputes("B26")
def _():
    own, shared = crash("local-disk", kill="node"), crash("fixed", kill="node")
    served = crash("local-disk", kill="rank")
    assert served["lost_steps"].value == shared["lost_steps"].value
    return "holds" if own["lost_steps"].value == 13 and shared["lost_steps"].value == 3 else "wrong"


@recomputes("B28")
def _():
    with pytest.raises(RankFailed):
        crash("fixed", max_restarts=0)
    undisturbed = 1 - interruption_probability(quoted_gpu_hours(), 64, 7 * 24)
    return "conditional" if crash("fixed", max_restarts=1)["restarts"].value == 1 and undisturbed > 0.8 else "holds"


@recomputes("C14")
def _():
    chances = [interruption_probability(quoted_gpu_hours(gpu_causes_alone=g), 64, 7 * 24) for g in (False, True)]
    assert [round(chance, 2) for chance in chances] == [0.19, 0.12]
    return "wrong" if max(chances) < 0.5 else "holds"


@pytest.mark.ranks
@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)
def test_the_verdict_on_a_claim_is_what_its_recomputation_gives(claim):
    assert RECOMPUTED[claim.id]() == claim.verdict


def test_every_claim_is_recomputed_and_every_recomputation_has_its_claim():
    assert set(RECOMPUTED) == {claim.id for claim in claims()}


def test_every_claim_names_a_lab_that_exists_or_says_that_it_comes_later():
    for claim in claims():
        assert claim.lab in slugs() or claim.lab.startswith("later: "), claim.id


def test_the_claims_of_these_labs_are_all_there():
    wanted = {*(f"A{n}" for n in (*range(1, 8), *range(14, 16), *range(17, 29))), "A30", "B29"}
    wanted |= {"B23", "B24", "B25", "B26", "B28", "C14"}
    assert wanted <= {claim.id for claim in claims()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[X1]\nclaim = "a"\nverdict = "true"\ncondition = ""\nshows = ""\nlab = ""', "verdict 'true'.*holds"),
        ('[X1]\nclaim = "a"', "an entry has claim, verdict"),
        ('[X1]\nclaim = "a"\nverdict = "wrong"\ncondition = ""\nshows = ""\nlab = ""', "needs its condition"),
        ("not toml", "claims.toml"),
    ],
)
def test_a_claim_that_is_not_whole_is_refused_with_its_place(tmp_path, text, message):
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(RecordError, match=message):
        claims(tmp_path / "claims.toml")
