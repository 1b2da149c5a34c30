"""The oracles of lab 01: numbers to the bit, then each variant in a real process beside fp32."""

import math
import time

import numpy as np
import pytest
import torch
from asking import statuses, value

import labkit
from labkit.detect.precision import measures
from labkit.errors import RankFailed, UnknownName, UsageError
from labkit.labs.precision import SPEC, numerics
from labkit.labs.precision.loops import LOOPS, loss_of, round_at_random
from labkit.theory.formats import BF16, FP16
from labkit.workloads.digits import Digits
from labkit.workloads.models import build

LAB = labkit.lab("precision")
QUICK = {"repeats": 0}  # its speed is not measured unless asked for
HERE = [variant.name for variant in SPEC.variants if variant.name != "tf32"]
needs_processes = pytest.mark.ranks


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As the lab's own processes have it; two that wait for each other on a busy machine are slow."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# The numbers, to the bit


def test_the_largest_and_the_smallest_fp16_numbers():
    half = torch.tensor([65504.0, 65519.0, 65520.0, 2.0**-24, 2.0**-25], dtype=torch.float64).half()
    assert half.tolist() == [65504.0, 65504.0, math.inf, 2.0**-24, 0.0]
    assert (FP16.largest, FP16.smallest_subnormal) == (65504.0, 2.0**-24)


def test_small_terms_are_lost_beside_large_ones():
    def plus(dtype, a, b):
        return float(torch.tensor(a, dtype=dtype) + torch.tensor(b, dtype=dtype))

    assert plus(torch.float16, 2048, 1) == 2048 and plus(torch.float16, 2048, 2) == 2050
    assert plus(torch.float16, 1, 2.0**-11) == 1 and plus(torch.float16, 1, 2.0**-10) > 1
    assert plus(torch.bfloat16, 256, 1) == 256 and plus(torch.bfloat16, 256, 2) == 258
    assert plus(torch.bfloat16, 1, 2.0**-8) == 1 and plus(torch.float32, 2048, 1) == 2049
    assert FP16.round(2049).value == 2048 and BF16.round(257).value == 256


def test_adding_a_ten_thousandth_stalls_at_a_quarter_in_fp16_and_at_a_thirty_second_in_bf16():
    assert numerics.stall("float16") == numerics.Stall(0.25, 2181)
    assert numerics.stall("bfloat16") == numerics.Stall(0.03125, 273)


def test_in_fp32_a_hundred_thousand_additions_give_ten_and_a_rounding_error():
    assert numerics.add_up("float32") == pytest.approx(10.006, abs=5e-4)
    with pytest.raises(UsageError, match="still changes the sum after 10,000 additions"):
        numerics.stall("float32")


def test_with_a_second_number_that_keeps_what_rounding_takes_a_sum_in_16_bits_arrives():
    for dtype, form in (("bfloat16", BF16), ("float16", FP16)):
        exact = 10_000 * form.round(1e-4).value
        assert abs(numerics.add_up_with_the_rest(dtype) - exact) <= form.epsilon * exact
    assert numerics.stall("bfloat16").value == 0.03125


def test_in_bf16_a_ring_of_512_ranks_makes_a_mean_of_a_half_out_of_ones():
    """256 + 1 is 256, so the ranks from the 257th on add nothing."""
    for ranks, mean in ((256, 1.0), (512, 0.5), (1024, 0.25)):
        assert numerics.mean_in_turn(torch.ones(ranks, 3, dtype=torch.bfloat16)).tolist() == [mean] * 3
    assert numerics.mean_in_turn(torch.ones(512, 3)).tolist() == [1.0] * 3
    parts = torch.randn(512, 500, generator=torch.Generator().manual_seed(0)) + 1

    def error(ranks, kind):
        exact = parts[:ranks].double().mean(0)
        return float((numerics.mean_in_turn(parts[:ranks].to(kind)).double() - exact).norm() / exact.norm())

    assert 1e-3 < error(8, torch.bfloat16) < error(64, torch.bfloat16) < error(512, torch.bfloat16) < 0.1
    assert error(512, torch.float32) < 1e-6


def test_a_long_dot_product_keeps_its_digits_only_if_it_is_added_up_in_32_bits():
    errors = numerics.dot_errors("float16")
    unit = 2.0**-24  # fp32's: the bound of a sum of n terms is about n units
    assert errors.sum_in_32 < 4096 * unit
    assert errors.sum_in_16 > 1e-2 and errors.sum_in_16 > 1000 * errors.sum_in_32
    assert errors.device <= 2.0**-11 * 1.1  # rounded to fp16 once, at the end
    worse = numerics.dot_errors("bfloat16")
    assert worse.sum_in_16 > 0.5 and worse.sum_in_32 < 4096 * unit


def test_an_unknown_dtype_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'float16'"):
        numerics.stall("float61")


def test_backward_inside_autocast_changes_nothing_to_the_bit():
    """So it is no fault, and not taught as one."""

    def weights(inside: bool):
        model, data = build("mlp", seed=0), Digits(64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(data.images), data.labels)
                if inside:
                    loss.backward()
            if not inside:
                loss.backward()
            optimizer.step()
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    assert torch.equal(weights(True), weights(False))


# What each variant does


@needs_processes
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_without_a_scaler_small_gradients_become_0_and_with_one_none_does(run, model):
    broken, fixed = run("broken", model=model), run("fixed", model=model)
    assert value(broken, "zero_gradients") > 0.5 > 0.35 > value(broken, "zero_gradients_fp32")
    assert value(fixed, "zero_gradients") == pytest.approx(value(fixed, "zero_gradients_fp32"), abs=0.01)
    # how far it gets without them depends on the processor's order of sums: 1.47 on one, above 1.5 on others
    assert value(broken, "final_loss") > 1.2 and value(broken, "final_loss_fp32") < 0.4
    assert value(fixed, "final_loss") == pytest.approx(value(fixed, "final_loss_fp32"), rel=0.1)


@needs_processes
def test_what_becomes_0_is_what_lies_below_half_of_fp16s_smallest_number(run):
    """The true gradients, of fp32, say so beforehand: half of those other than 0 and more lie there."""
    record = run("broken")
    assert measures.share_below(record.runs["reference"], FP16) > 0.5
    powers, counts = measures.gradient_exponents(record.run)
    assert counts[powers < -24].sum() == 0 and counts.sum() > 0
    bf16 = run("bf16-autocast")
    assert measures.share_below(bf16.runs["reference"], BF16) == 0


@needs_processes
def test_bf16_needs_no_scaler(run):
    record = run("bf16-autocast")
    assert value(record, "zero_gradients") == pytest.approx(value(record, "zero_gradients_fp32"), abs=0.01)
    assert value(record, "final_loss") == pytest.approx(value(record, "final_loss_fp32"), rel=0.1)


@needs_processes
def test_updates_of_16_bit_weights_round_away(run):
    half, bf16 = run("half-weights"), run("bf16-weights")
    assert value(half, "lost_updates") > 0.85 and value(half, "lost_updates_fp32") < 0.02
    assert value(bf16, "lost_updates") > 0.8 and value(bf16, "lost_updates_fp32") < 0.02
    assert value(bf16, "final_loss") > value(bf16, "final_loss_fp32") + 0.2
    for record in (half, bf16):
        assert 2 * value(record, "weights_bytes") == value(run("fp32"), "weights_bytes") == 4 * 9610


@needs_processes
def test_a_second_number_or_chance_brings_back_what_rounding_takes_from_bf16_weights(run):
    """Single updates change as few weights as before; the weights move all the same, and end where fp32's do."""
    lost = run("bf16-weights")
    assert value(lost, "never_moved") > 0.6 and value(lost, "weights_gap_to_fp32") > 0.2
    for variant, gap in (("bf16-kahan", 0.01), ("bf16-stochastic", 0.06)):
        record = run(variant)
        assert value(record, "lost_updates") > 0.6 and value(record, "never_moved") < 0.02
        assert value(record, "weights_gap_to_fp32") < gap
        assert value(record, "final_loss") == pytest.approx(value(record, "final_loss_fp32"), rel=0.01)
        assert value(record, "weights_bytes") == value(lost, "weights_bytes")


def test_rounding_by_chance_is_right_in_the_mean_and_leaves_bf16_numbers_as_they_are():
    torch.manual_seed(0)
    for number in (1.001, -1.001, 3e-5, -700.3):
        upper = torch.tensor(number).bfloat16()
        assert torch.equal(round_at_random(upper.float().repeat(50)), upper.repeat(50))
        rounded = round_at_random(torch.full((20_000,), number)).double()
        low, high = rounded.unique().tolist()
        assert low < number < high and high - low <= BF16.epsilon * abs(number)
        up = (number - low) / (high - low)
        assert abs(float((rounded == high).double().mean()) - up) < 4 * math.sqrt(up * (1 - up) / 20_000)


@needs_processes
def test_adam_on_half_weights_is_nan_at_once(run):
    """eps rounds to 0, and so do squared gradients: 0/0 at the first update, a NaN loss at the second step."""
    record = run("half-weights", optimizer="adam")
    assert torch.tensor(1e-12).half() == 0 and torch.tensor(1e-8).half() == 0
    assert value(record, "first_nonfinite_step") == "0 (weights)"
    assert [bool(math.isnan(loss)) for loss in measures.losses(record.run)[:3]] == [False, True, True]
    assert statuses(record)["non-finite"] == "found"


@needs_processes
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_under_one_autocast_the_loss_on_one_batch_is_one_number_while_the_weights_move(run, model):
    record = run("autocast-whole-loop", model=model)
    assert len(set(measures.losses(record.run))) == 1 and len(record.run.ranks[0].steps) == 20
    assert len(set(measures.losses(record.runs["reference"]))) == 20
    assert value(record, "weights_gap_to_fp32") > 0.1 and value(record, "lost_updates") < 0.05


@needs_processes
def test_a_gpt_under_one_autocast_moves_a_little_and_is_stale_all_the_same(run):
    """LayerNorm and embeddings are not cast, so their updates are seen; those of the linear layers are not."""
    record = run("autocast-whole-loop", model="gpt", batch=4)
    own, fp32 = measures.losses(record.run), measures.losses(record.runs["reference"])
    assert len(set(own)) > 1
    assert own[0] - own[-1] < 0.6 * (fp32[0] - fp32[-1])
    assert statuses(record)["stale-casts"] == "found"


@needs_processes
def test_clipped_before_the_scale_is_out_the_norm_is_one_over_the_scale(run):
    record = run("clip-before-unscale")
    norms = np.array([step.scalar("grad_norm") for step in record.run.ranks[0].steps])
    assert norms == pytest.approx(1 / 65536, rel=1e-3)
    first, last = measures.losses(record.run)[0], value(record, "final_loss")
    assert abs(first - last) < 0.1 < first - value(record, "final_loss_fp32")
    right = run("fixed", clip_norm=1.0, optimizer="sgd", lr=0.1, loss_weight=1.0)
    assert statuses(right)["clip-before-unscale"] in ("clear", "inconclusive")
    assert value(right, "final_loss") == pytest.approx(value(right, "final_loss_fp32"), rel=0.05)


@needs_processes
def test_a_scale_that_probes_skips_steps_and_the_model_learns_all_the_same(run):
    record = run("fixed", init_scale=2.0**40, growth_interval=10)
    scaler = measures.scaling(record.run)
    assert 5 <= scaler.skipped.sum() < 30 and scaler.skipped[0] and scaler.scale[0] == 2.0**40
    assert value(record, "updates") == 116 - scaler.skipped.sum()
    assert statuses(record)["skipped-steps"] == "clear"
    assert value(record, "final_loss") < 0.4


@needs_processes
def test_a_loss_that_overflows_whatever_the_scale_is_a_dead_run(run):
    record = run("fixed", loss_weight=1e38)
    verdict = LAB.judge(record)["skipped-steps"]
    assert (verdict.status, verdict.waste) == ("found", 1.0)
    assert value(record, "updates") == 0 and value(record, "skipped_steps") == 116
    assert measures.scaling(record.run).scale[-1] == 65536.0 / 2**115


# Beside fp32


@needs_processes
def test_fp32_beside_itself_is_equal_to_the_bit_and_equal_to_a_loop_that_knows_nothing_of_labkit(run):
    record = run("fp32", steps=40, seed=5)
    assert value(record, "weights_equal_fp32") and value(record, "weights_gap_to_fp32") == 0
    data, model = Digits(), build("mlp", seed=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-12)
    for step in record.run.ranks[0].steps:
        ids = step.ids["train"]
        loss = 1e-5 * torch.nn.functional.cross_entropy(model(data.images[ids]), data.labels[ids])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trained = torch.cat([p.detach().reshape(-1).double() for p in model.parameters()]).numpy()
    assert np.array_equal(trained, record.run.arrays["weights"])


@needs_processes
def test_in_fp32_a_small_weight_of_the_loss_makes_hardly_a_difference_to_what_adam_learns(tmp_path):
    how = {"loss_weight": 1.0}, {}  # 1e-5 unless another one is asked for
    runs = [LAB.run("fp32", record_dir=tmp_path / str(n), **QUICK, epochs=2, **one) for n, one in enumerate(how)]
    plain, weighted = (value(record, "final_loss") for record in runs)
    assert plain == pytest.approx(weighted, rel=0.02)


@needs_processes
@pytest.mark.parametrize("variant", HERE)
def test_a_variant_and_its_reference_start_from_the_same_weights_and_read_the_same_batches(run, variant):
    record = run(variant)
    logs = [record.runs[role].ranks[0] for role in ("variant", "reference")]
    assert len({log.digests["initial_weights"] for log in logs}) == 1
    assert [step.ids for step in logs[0].steps] == [step.ids for step in logs[1].steps]
    assert (logs[0].head.threads, logs[0].head.backend, logs[0].head.world_size) == (1, "none", 1)


@needs_processes
def test_one_seed_gives_one_order_and_one_set_of_weights_and_another_seed_others(run):
    one, same, other = (run("fixed", again=n, seed=s, steps=40) for n, s in ((0, 0), (1, 0), (0, 1)))
    read = [[step.ids["train"] for step in record.run.ranks[0].steps] for record in (one, same, other)]
    assert read[0] == read[1] and read[0][0] != read[2][0]
    assert read[0][0] != read[0][29]  # the second epoch comes in another order
    weights = [record.run.ranks[0].digests["weights"] for record in (one, same, other)]
    assert weights[0] == weights[1] != weights[2]


@needs_processes
def test_speed_is_timed_in_turn_with_fp32_and_only_where_asked_for(run):
    record = run("bf16-autocast", repeats=6, timed_steps=4, steps=5)
    times = measures.speed(record.run)
    assert len(times.own_s) == 6 and (times.own_s > 0).all() and (times.fp32_s > 0).all()
    first = [event.fields["loop"] for event in record.run.ranks[0].events if event.name == "timed"][::2]
    assert first.count("fp32") == first.count("variant") == 3
    assert statuses(record)["precision-speed"] != "not_applicable"
    assert measures.speed(record.runs["reference"]) is None
    assert statuses(run("bf16-autocast"))["precision-speed"] == "not_applicable"


# What the detectors say of each variant

NONE = "not_applicable"
TABLE = {
    #                       underflow       stale    clip     lost     skipped  non-finite
    "broken":              ("found",        "clear", NONE,    "clear", NONE,    "clear"),
    "fp32":                ("clear",        "clear", NONE,    "clear", NONE,    "clear"),
    "bf16-autocast":       ("clear",        "clear", NONE,    "clear", NONE,    "clear"),
    "half-weights":        ("clear",        "clear", NONE,    "found", NONE,    "clear"),
    "bf16-weights":        ("clear",        "clear", NONE,    "found", NONE,    "clear"),
    "bf16-kahan":          ("clear",        "clear", NONE,    "clear", NONE,    "clear"),
    "bf16-stochastic":     ("clear",        "clear", NONE,    "clear", NONE,    "clear"),
    "autocast-whole-loop": ("clear",        "found", NONE,    "clear", NONE,    "clear"),
    "clip-before-unscale": ("clear",        "clear", "found", "found", "clear", "clear"),
    "fixed":               ("clear",        "clear", NONE,    "clear", "clear", "clear"),
}  # fmt: skip


@needs_processes
@pytest.mark.parametrize("variant", TABLE)
def test_each_variant_has_its_own_verdicts(run, variant):
    found = statuses(run(variant))
    assert tuple(found.values()) == (*TABLE[variant], NONE)
    assert tuple(found) == SPEC.detectors


def test_the_table_is_complete():
    assert {*TABLE, "tf32"} == {variant.name for variant in SPEC.variants}


@needs_processes
def test_what_is_found_points_at_the_loop_and_comes_first(run):
    of_variant = {
        "broken": "gradient-underflow",
        "half-weights": "lost-updates",
        "autocast-whole-loop": "stale-casts",
        "clip-before-unscale": "clip-before-unscale",
    }
    for variant, detector in of_variant.items():
        headline = LAB.judge(run(variant)).headline
        assert headline.detector == detector
        line = LOOPS[variant].__code__.co_firstlineno
        assert headline.where == f"labkit/labs/precision/loops.py:{line}"


@needs_processes
def test_a_record_comes_back_from_its_folder(run):
    record = run("fixed")
    back = labkit.read_record(record.folder)
    assert back.run.ranks == record.run.ranks and statuses(back) == statuses(record)
    assert LAB.invariants(record) == LAB.invariants(back)
    assert "precision-speed" not in LAB.invariants(record) and "  skipped-steps: clear" in LAB.invariants(record)


# Wrong use


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UnknownName, match="Did you mean 'bf16-weights'"):
        LAB.run("bf16_weights")
    with pytest.raises(UnknownName, match="no device 'gpu'; there are: cpu, cuda"):
        LAB.run("broken", device="gpu")
    with pytest.raises(UnknownName, match="Did you mean 'loss_weight'"):
        LAB.run("broken", lossweight=1.0)
    with pytest.raises(UnknownName, match="no model 'cmn'"):
        LAB.run("broken", model="cmn")
    with pytest.raises(UsageError, match="loss_weight must be from 1e-12 to 1e\\+38; given 0"):
        LAB.run("broken", loss_weight=0)
    with pytest.raises(UsageError, match="precision studies one process; given 2 ranks; give --ranks 1"):
        LAB.run("broken", ranks=2)


def test_tf32_without_a_gpu_is_refused_with_what_to_run_instead():
    with pytest.raises(UsageError, match="tf32 is a mode of a GPU's matrix units.*run fp32 or bf16-autocast here"):
        LAB.run("tf32")


def test_an_fp16_gpt_on_a_cpu_is_refused_with_what_to_run_instead():
    with pytest.raises(UsageError, match="fixed with model=gpt computes in fp16.*use model=mlp or cnn"):
        LAB.run("fixed", model="gpt")


@pytest.mark.gpu
def test_tf32_rounds_the_inputs_of_matrix_products_on_a_gpu(tmp_path):
    record = LAB.run("tf32", device="cuda", record_dir=tmp_path / "record", repeats=0, steps=20)
    assert not value(record, "weights_equal_fp32") and statuses(record)["gradient-underflow"] == "clear"


# The exercise


def unrepaired(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16):
        for inputs, targets in batches:
            loss = loss_of(model(inputs), targets, config)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()


def repaired(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        scaler.step(optimizer)
        scaler.update()


def no_kept_casts(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16, cache_enabled=False):
        repaired_inside(model, optimizer, scaler, batches, config)


def repaired_inside(model, optimizer, scaler, batches, config):
    for inputs, targets in batches:
        loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        scaler.step(optimizer)
        scaler.update()


def only_the_casts_left(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16):
        repaired_inside(model, optimizer, scaler, batches, config)


def only_the_order_left(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        scaler.step(optimizer)
        scaler.update()


def only_the_scaler_left(model, optimizer, scaler, batches, device, config):
    LOOPS["broken"](model, optimizer, scaler, batches, device, config)


def scales_and_steps_past_the_scaler(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        optimizer.step()


def clips_nothing(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def trains_in_fp32(model, optimizer, scaler, batches, device, config):
    LOOPS["fp32"](model, optimizer, scaler, batches, device, config)


def never_steps(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss_of(model(inputs), targets, config)


def stops_at_once(model, optimizer, scaler, batches, device, config):
    for _ in batches:
        return


def yields(model, optimizer, scaler, batches, device, config):
    repaired(model, optimizer, scaler, batches, device, config)
    yield "done"


def raises(model, optimizer, scaler, batches, device, config):
    raise KeyError("a mistake")


def takes_too_little(model):
    pass


def leaves(model, optimizer, scaler, batches, device, config):
    import os

    os._exit(3)


@needs_processes
@pytest.mark.parametrize("right", [repaired, no_kept_casts])
def test_the_checker_accepts_a_right_loop(right):
    result = LAB.check(right)
    assert result.findings == [] and result.passed


@needs_processes
def test_the_checker_names_what_is_left_of_three_faults():
    findings = LAB.check(unrepaired).findings
    assert (
        len(findings) == 2 and findings[0].startswith("the scaler is missing") and findings[1].startswith("casts are kept")
    )


@needs_processes
@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (only_the_casts_left, "casts are kept over the whole loop"),
        (only_the_order_left, "the order of clipping"),
        (only_the_scaler_left, "the scaler is missing"),
        (scales_and_steps_past_the_scaler, "the scaler is never asked for a step"),
        (clips_nothing, "the gradients are not clipped"),
        (trains_in_fp32, "the forward pass is not in fp16"),
        (never_steps, "the optimizer never took a step"),
        (stops_at_once, "the loop took 1 of "),
        (yields, "the function yields"),
        (raises, "KeyError: 'a mistake'"),
        (takes_too_little, "is called with (model, optimizer, scaler, batches, device, config), and yours takes (model)"),
        (leaves, "did not finish"),
    ],
    ids=lambda wrong: getattr(wrong, "__name__", ""),
)
def test_the_checker_names_the_one_thing_that_is_wrong(wrong, finding):
    result = LAB.check(wrong)
    assert not result and len(result.findings) == 1 and finding in result.findings[0], result.findings


@needs_processes
def test_a_loop_that_hangs_is_ended_and_the_line_where_it_waits_is_named(monkeypatch):
    def hangs(model, optimizer, scaler, batches, device, config):
        time.sleep(600)

    tried = LAB.try_out
    monkeypatch.setattr(LAB, "try_out", lambda program, task, **_: tried(program, task, deadline_s=1.5))
    (finding,) = LAB.check(hangs).findings
    line = hangs.__code__.co_firstlineno + 1
    assert "did not finish" in finding and f"in hangs, step 0 at tests/labs/test_precision.py:{line}" in finding


@needs_processes
def test_an_error_in_a_learners_loop_is_that_of_the_program(tmp_path):
    with pytest.raises(RankFailed, match="a mistake"):
        LAB.run(raises, record_dir=tmp_path / "record")
