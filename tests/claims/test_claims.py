"""Every verdict of data/claims.toml is recomputed here, from a measurement or a calculation; none is taken on trust."""

import functools
import math

import numpy as np
import pytest
import torch

from labkit.errors import RecordError
from labkit.facade import Lab
from labkit.hardware.devices import device, devices, peak_flops
from labkit.labs import slugs, spec
from labkit.record.claims import claims
from labkit.record.flops import mfu
from labkit.record.published import bands, share_below, training

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


def stage(variant, **settings):
    return run("zero-stages", variant, layers=1, hidden=24, steps=5, **settings).run


@recomputes("A26")
def _():
    from labkit.record.measures_zero import operations, peak_bytes

    fsdp, hsdp = (stage(variant, link="1gbit") for variant in ("fsdp2-reshard", "hsdp"))
    across = [sum(op.sent_bytes for op in operations(of) if op.hosts > 1) for of in (fsdp, hsdp)]
    return "conditional" if across[1] < across[0] and peak_bytes(hsdp).max() > peak_bytes(fsdp).max() else "holds"


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


@recomputes("C1")
def _():
    from labkit.record.zero import GB, fewest_ranks

    needs = [fewest_ranks(405e9, 80 * GB, kept=kept) for kept in ("weights only", "mixed Adam")]
    return "conditional" if needs == [11, 81] else "holds"


@recomputes("C5")
def _():
    from labkit.record.measures_zero import backend_bytes, sent_bytes

    ddp, stage_3 = stage("ddp", hosts=1), stage("fsdp2-reshard", hosts=1)
    assert math.isclose(sent_bytes(stage_3) / sent_bytes(ddp), 1.5)
    return "conditional" if math.isclose(backend_bytes(stage_3) / backend_bytes(ddp), 2.0) else "holds"


@recomputes("C6")
def _():
    from labkit.record.measures_zero import backend_bytes

    sent = [backend_bytes(stage(name, hosts=1)) for name in ("ddp", "fsdp2-no-reshard", "fsdp2-reshard")]
    return "conditional" if sent[0] < sent[1] < sent[2] else "holds"


@recomputes("C7")
def _():
    from labkit.record.zero import GB, choices, state

    assert state(72e9, 8, 2, "mixed Adam").parameters == 144 * GB
    share = mfu(
        tokens_per_s=8 * 120, flops_per_token=6 * 72e9, peak_flops=peak_flops(device("H100 SXM"), "bf16"), num_devices=8
    )
    assert round(share, 2) == 0.05
    return "wrong" if not choices(72e9, 8, 80 * GB)[2].fits else "holds"


@recomputes("C15")
def _():
    from labkit.record.zero import GB, state

    takes = [state(34e9, 4, 2, "mixed Adam").total, state(34e9, 4, 3, "mixed Adam").total]
    takes.append(state(405e9, 64, 3, "mixed Adam").total)
    return "wrong" if min(takes) > 80 * GB else "holds"


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
    wanted = {
        *(f"A{n}" for n in (*range(1, 8), *range(14, 16), *range(17, 29))),
        "A30",
        "B29",
        "C1",
        "C5",
        "C6",
        "C7",
        "C15",
    }
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
