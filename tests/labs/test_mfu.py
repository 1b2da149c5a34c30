"""The oracles of lab 02: what a token costs, by formula and as counted; what recomputation does; busy is not useful."""

import sys

import pytest

import labkit
from labkit.detect.utilisation.measures import flops_by_convention, tokens_per_second
from labkit.errors import UnknownName, UsageError
from labkit.labs.mfu.programs import count_step_flops
from labkit.theory.flops import CAUSAL_ATTENTION, flops_per_token, mfu
from labkit.workloads.gpt import GPTShape

LAB = labkit.lab("mfu")
QUICK = {"seq": 64, "hidden": 32, "heads": 2, "layers": 2, "steps": 3}

SHAPES = [
    GPTShape(layers=layers, hidden=hidden, heads=heads, seq=seq, vocab=vocab)
    for layers, hidden, heads, seq, vocab in [
        (1, 32, 1, 16, 256), (1, 64, 2, 64, 256), (2, 64, 4, 128, 256), (2, 128, 4, 256, 256), (3, 96, 3, 128, 100),
        (4, 32, 4, 33, 17), (1, 128, 8, 512, 256), (5, 40, 5, 20, 64), (2, 48, 3, 77, 333), (6, 16, 2, 48, 256),
        (1, 256, 8, 128, 1000), (3, 64, 1, 96, 50), (2, 128, 2, 512, 256),
    ]
]  # fmt: skip

each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"L{s.layers}h{s.hidden}s{s.seq}v{s.vocab}")


def formula(shape: GPTShape) -> float:
    return flops_per_token(shape.matmul_params, layers=shape.layers, hidden=shape.hidden, seq=shape.seq)


@each_shape
def test_the_counter_sees_exactly_the_formula_when_attention_is_written_out(shape):
    counted = count_step_flops(shape, attention="naive", recompute=False, batch=2)
    assert counted == formula(shape) * shape.seq * 2


@each_shape
def test_on_a_cpu_the_counter_misses_fused_attention_altogether_and_sees_it_with_the_math_backend(shape):
    tokens = shape.seq
    assert count_step_flops(shape, attention="sdpa", recompute=False, batch=1) == 6 * shape.matmul_params * tokens
    assert count_step_flops(shape, attention="sdpa", recompute=False, batch=1, math_backend=True) == formula(shape) * tokens


@each_shape
def test_causal_attention_is_never_counted_as_half(shape):
    dimensions = {"layers": shape.layers, "hidden": shape.hidden, "seq": shape.seq}
    half = flops_per_token(shape.matmul_params, convention=CAUSAL_ATTENTION, **dimensions)
    assert count_step_flops(shape, attention="naive", recompute=False, batch=1) > half * shape.seq


@pytest.mark.parametrize("shape", [GPTShape(layers=8, hidden=128, heads=4, seq=64), GPTShape(seq=256, heads=4)])
def test_full_recomputation_repeats_the_blocks_forward_pass_and_torch_stops_early_by_default(shape):
    useful = count_step_flops(shape, attention="naive", recompute=False, batch=1)
    whole = count_step_flops(shape, attention="naive", recompute=True, batch=1, early_stop=False)
    early = count_step_flops(shape, attention="naive", recompute=True, batch=1)
    forward = shape.layers * (24 * shape.hidden**2 + 4 * shape.hidden * shape.seq) * shape.seq
    last_product = shape.layers * 8 * shape.hidden**2 * shape.seq  # its output is not needed again
    assert whole - useful == forward
    assert early - useful == forward - last_product
    assert 1.31 < whole / useful < 1.34 and 1.22 < early / useful < 1.26


def test_the_quoted_seven_billion_model_runs_at_9_56_percent():
    value = mfu(tokens_per_s=18_000, flops_per_token=6 * 7e9, peak_flops=989e12, num_devices=8)
    assert round(value, 4) == 0.0956


def test_an_input_layer_has_no_input_gradient_so_a_small_mlp_does_less_than_six_flops_a_weight():
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from labkit.workloads.models import build

    model, images = build("mlp", seed=0), torch.zeros(32, 64)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    weights = 64 * 128 + 128 * 10
    assert counter.get_total_flops() / (6 * weights * 32) == pytest.approx((64 * 128 * 4 + 128 * 10 * 6) / (6 * weights))


@pytest.mark.ranks
def test_every_numerator_gives_the_mfu_that_its_flops_say(lab, run):
    record = run("broken")
    found, flops = lab.measures(record), flops_by_convention(record.run)
    rate = tokens_per_second(record.run)
    for name in ("6n", "attention", "causal", "counted"):
        assert found[f"mfu_{name}"].value == pytest.approx(rate * flops[name] / (found["ceiling"].value * 1e9), rel=1e-9)
    assert flops["counted"] == flops["attention"] > flops["causal"] > flops["6n"]


@pytest.mark.ranks
def test_recomputation_raises_hfu_over_mfu_by_what_it_repeats_and_adds_no_token(lab, run):
    found = lab.measures(run("recomputed", layers=4))
    assert 1.15 < found["hfu"].value / found["mfu_attention"].value < 1.34
    plain = lab.measures(run("fixed", layers=4))
    assert plain["hfu"].value == pytest.approx(plain["mfu_attention"].value, rel=1e-9)


@pytest.mark.ranks
def test_all_rungs_train_the_same_model_on_the_same_text(run):
    """Attention, recomputation and the loader's speed change the time, not the loss."""

    def losses(record):
        return [step.scalar("loss_local") for step in record.run.ranks[0].steps]

    tuned = losses(run("fixed"))
    assert losses(run("recomputed")) == pytest.approx(tuned, rel=1e-5)
    assert losses(run("starved", data_wait_ms=30)) == tuned
    assert losses(run("fixed", attention="naive")) == pytest.approx(tuned, rel=1e-5)


@pytest.mark.ranks
def test_a_loop_that_moves_memory_is_busy_and_does_almost_no_arithmetic(lab, run):
    record = run("busy-not-useful")
    found = lab.measures(record)
    assert found["mfu_attention"].value == 0
    assert 0 < found["hfu"].value < 0.2
    assert "tokens_per_s" not in found
    assert lab.judge(record)["utilisation"].status == lab.judge(record)["busy-not-useful"].status == "found"


@pytest.mark.ranks
def test_the_programs_tell_by_their_optimizers_whether_they_train(run):
    assert all(step.counts["updates"] == 1 for step in run("fixed").run.ranks[0].steps)
    assert not any("updates" in step.counts for step in run("busy-not-useful").run.ranks[0].steps)


@pytest.mark.ranks
def test_waiting_for_data_is_named_as_the_cause(lab, run):
    record = run("starved", data_wait_ms=600, steps=2)
    verdict = lab.judge(record)["utilisation"]
    assert (verdict.status, verdict.reason) == ("found", "waits-for-data")
    assert lab.measures(record)["data_share"].value > 0.5
    assert 0 < verdict.waste < 1


@pytest.mark.ranks
def test_the_dummy_batch_takes_the_wait_away(lab, run):
    assert lab.measures(run("starved", data_wait_ms=0, data="dummy"))["data_share"].value < 0.2


@pytest.mark.ranks
def test_the_convention_detector_tells_fused_attention_from_written_out(lab, run):
    assert lab.judge(run("fixed"))["flop-convention"].status == "found"
    assert lab.judge(run("broken"))["flop-convention"].status == "clear"


@pytest.mark.parametrize(
    ("variant", "settings", "error", "text"),
    [
        ("fixed", {"precision": "fp4"}, UnknownName, "no precision 'fp4'.*bf16, fp32"),
        ("fixed", {"attention": "flash"}, UnknownName, "no attention 'flash'"),
        ("fixed", {"hidden": 100, "heads": 8}, UsageError, "multiple of heads; given hidden=100, heads=8"),
        ("fixed", {"steps": 0}, UsageError, "steps must be from 2"),
        ("fixed", {"seq": 0}, UsageError, "seq must be from 8"),
        ("fixed", {"ranks": 2}, UsageError, "ranks must be 1; given 2"),
        ("fast", {}, UnknownName, "no variant of mfu 'fast'"),
        ("fixed", {"layers": 128, "hidden": 16384, "heads": 8}, UsageError, "does not fit"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(lab, variant, settings, error, text):
    with pytest.raises(error, match=text):
        lab.run(variant, **settings)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda case: ("sparse peak", case.claimed), "the right MFU is not"),
        (lambda case: ("sparse peak", 50.0), "as a fraction and not a percentage"),
        (lambda case: ("bad luck", case.claimed), "none of"),
        (lambda case: ([case.name], case.claimed), "is none of"),
        (lambda case: ("sparse peak", 10**400), "the right MFU is not"),
        (lambda case: None, "return (mistake, right MFU)"),
        (lambda case: 1 / 0, "ZeroDivisionError: division by zero (case "),
        (lambda case: sys.exit(0), "sys.exit(0)"),
    ],
)
def test_the_exercise_names_what_is_wrong(lab, answer, words):
    assert words in str(lab.check(answer))
