"""The panels' data, held against what is known without them: published figures, limits, and the formulas worked by hand."""

import importlib
import math
import pkgutil

import numpy as np
import pytest
import torch

from labkit.errors import UnknownName, UsageError
from labkit.theory import panels
from labkit.theory.activations import Proportions, activation_bytes, usual_proportions
from labkit.theory.delay import delayed_descent, spectral_radius, stability_limit
from labkit.theory.formats import BF16, FORMATS, FP16, OF_8_BITS
from labkit.theory.panel import Measured, Point, Slider, decades
from labkit.theory.sampling import seen_after
from labkit.theory.tiles import tiling
from labkit.theory.underflow import infinite_from, largest_relative_error, lost_to_zero, zero_below
from labkit.workloads.gpt import Block, GPTShape
from labkit.workloads.kept_tensors import bytes_kept

PANELS = {
    name: importlib.import_module(f"labkit.theory.panels.{name}").PANEL
    for _, name, _ in pkgutil.iter_modules(panels.__path__)
}
every = pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)


def numbers(name, **settings):
    return PANELS[name].shown(settings).numbers


def points(name, chart=0, **settings):
    return {point.label: point for point in PANELS[name].shown(settings).charts[chart].points}


@every
def test_each_stop_of_each_slider_is_drawn_in_finite_numbers_with_units_and_a_source(panel):
    assert len(panel.sliders) >= 2 and panel.source and panel.title.endswith("?")
    assert len({slider.name for slider in panel.sliders}) == len(panel.sliders)
    for slider in panel.sliders:
        assert (slider.label and list(slider.stops) == sorted(slider.stops)) or slider.is_menu
        for stop in (slider.stops[0], slider.stops[-1]):
            drawn = panel.shown({slider.name: stop})
            assert 1 <= len(drawn.charts) <= 2 and "nan" not in drawn.said and "inf" not in drawn.said.split()
            for chart in drawn.charts:
                assert chart.title and chart.x.label
                assert all(math.isfinite(value) for curve in chart.curves for value in (*curve.x, *curve.y))
                assert all(len(curve.x) == len(curve.y) for curve in chart.curves)
                assert all(point.provenance == "simulated" for point in chart.points)


@every
def test_where_the_sliders_stand_lies_on_a_curve(panel):
    for chart in panel.shown().charts:
        for point in chart.points:
            if point.label not in ("best", "your training", "your ranks", "the median gradient, scaled"):
                curve = chart.curves[0]
                logs = (np.log if chart.x.log else np.asarray)(curve.x), (np.log if chart.y.log else np.asarray)(curve.y)
                x, y = (np.log(point.x) if chart.x.log else point.x), (np.log(point.y) if chart.y.log else point.y)
                assert y == pytest.approx(np.interp(x, *logs), rel=0.03, abs=0.02), point.label


def test_the_ring_of_lab_00_is_two_times_w_less_one_steps_of_a_w_th():
    found = numbers("ring", num_bytes=8e6, ranks=4, alpha_us=10.0, gb_per_s=1.0)
    assert found["latency_s"] == pytest.approx(6 * 10e-6) and found["bytes_s"] == pytest.approx(6 * 2e6 / 1e9)
    equal = numbers("ring", num_bytes=found["crossover_bytes"], ranks=4, alpha_us=10.0, gb_per_s=1.0)
    assert equal["latency_s"] == pytest.approx(equal["bytes_s"])


def test_fp16_ends_where_ieee_754_says():
    assert zero_below(FP16) == 2.0**-25 and infinite_from(FP16) == 65520.0
    for form in FORMATS:
        assert form.round(zero_below(form)).value == 0 and form.round(zero_below(form) * 1.01).value > 0
        assert math.isinf(form.round(infinite_from(form)).value) and math.isfinite(
            form.round(infinite_from(form) * 0.9999999).value
        )


@pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])
def test_no_number_is_rounded_further_than_the_curve_says_and_some_come_near(form):
    drawn = np.exp(np.random.default_rng(0).uniform(math.log(1e-9), math.log(1e4), 300))
    ratios = [(form.round(float(x)).relative_error or 0) / largest_relative_error(form, float(x)) for x in drawn]
    assert max(ratios) <= 1 + 1e-9 and max(ratios) > 0.9


def test_with_8_bits_e4m3_ends_at_448_and_e5m2_has_the_exponents_of_fp16():
    found = numbers("number_formats", form="fp8 e4m3", median=1e-3, spread=1.0, scale_power=0)
    drawn = 10 ** np.random.default_rng(1).normal(-3.0, 1.0, 20_000)
    assert found["zero"] == pytest.approx(np.mean(drawn <= 2.0**-10), abs=0.012) and found["above"] < 1e-6
    assert numbers("number_formats", form="fp8 e4m3", median=1.0, spread=0.25, scale_power=12)["above"] > 0.999
    assert numbers("number_formats", form="fp8 e5m2", median=1.0, spread=0.25, scale_power=12)["above"] < 1e-5
    for form in OF_8_BITS:
        ends = zero_below(form), infinite_from(form)
        assert form.round(ends[0]).value == 0 < form.round(ends[0] * 1.01).value
        assert form.round(ends[1] * 0.999).fate != "overflow" == form.round(ends[1] * 1.001).fate


def test_the_share_that_underflows_is_that_of_a_drawn_log_normal():
    drawn = 10 ** np.random.default_rng(1).normal(math.log10(1e-7), 1.0, 20_000)
    for power in (0, 4, 8):
        share = np.mean(drawn * 2.0**power <= 2.0**-25)
        assert lost_to_zero(FP16, 2.0**power, 1e-7, 1.0) == pytest.approx(share, abs=0.012)
    assert lost_to_zero(BF16, 1.0, 1e-7, 1.0) < 1e-100


def test_an_h100_has_its_ridge_at_295_operations_a_byte_and_a_batch_of_one_waits_for_memory():
    found = numbers("roofline", rows=1, width=4096, dtype="bf16 or fp16", peak_tflops=989.0, gb_per_s=3350.0)
    assert found["ridge"] == pytest.approx(295, abs=1) and found["intensity"] == pytest.approx(1, abs=0.01)
    assert found["least_s"] == pytest.approx((4096 * 4096 + 2 * 4096) * 2 / 3.35e12)
    assert numbers("roofline", peak_tflops=1000.0, gflop_a_token=50.0, tokens_per_s=4000.0)["mfu"] == pytest.approx(0.2)


def test_one_row_more_than_a_full_wave_makes_two_waves_and_halves_what_is_useful():
    full = numbers("tiles", rows=2304, columns=1536, tile="256 × 128", multiprocessors=108)
    assert (full["tiles"], full["waves"], full["useful"]) == (108, 1, 1.0)
    more = numbers("tiles", rows=2305, columns=1536, tile="256 × 128", multiprocessors=108)
    assert (more["tiles"], more["waves"]) == (120, 2)
    assert more["useful"] == pytest.approx(2305 * 1536 / (2 * 108 * 256 * 128))
    few = numbers("tiles", rows=16, columns=1536, tile="256 × 128", multiprocessors=108)
    assert few["in_tiles"] == pytest.approx(16 / 256) and few["useful"] < few["in_tiles"]
    with pytest.raises(UsageError, match="sizes are at least 1"):
        tiling(0, 1, (1, 1), 1)


def test_what_a_rank_has_seen_is_what_fair_deals_give_it():
    draw = np.random.default_rng(2)
    for ranks, epochs in ((4, 3), (8, 5)):
        seen = np.zeros(4000, bool)
        for _ in range(epochs):
            seen |= draw.permutation(4000) % ranks == 0
        assert numbers("coverage", ranks=ranks, epochs=epochs)["seen"] == pytest.approx(seen.mean(), abs=0.03)
    with pytest.raises(UsageError):
        seen_after(-1, 4)


@pytest.mark.parametrize("momentum", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("delay", [1, 2, 5, 9])
def test_the_stability_line_is_where_the_largest_root_leaves_the_unit_circle(delay, momentum):
    limit = stability_limit(delay, momentum)
    assert spectral_radius(delay, 0.999 * limit, momentum) < 1 < spectral_radius(delay, 1.001 * limit, momentum)


@pytest.mark.parametrize(("lr", "falls"), [(0.04, True), (0.05, False)])
def test_a_weight_settles_below_the_line_and_flies_apart_above_it(lr, falls):
    found = PANELS["staleness"].shown({"delay": 3, "lr": lr, "curvature": 10.0, "momentum": 0.0})
    assert (found.numbers["over_limit"] < 1) == falls and ("settles" in found.said) == falls
    path = delayed_descent(3, lr * 10, updates=400)
    assert (path[-50:].max() < path[:50].max()) == falls


def test_one_bucket_waits_for_all_and_one_a_tensor_pays_latency_for_each():
    common = {"gradients_mb": 100.0, "tensors": 8, "backward_ms": 100.0, "ranks": 2, "alpha_us": 1000.0, "gb_per_s": 1.0}
    whole = numbers("buckets", **common, cap_mib=1000.0)
    assert whole["buckets"] == 1 and whole["exposed_s"] == pytest.approx(2 * 1e-3 + 0.1) == whole["alone_s"]
    each = numbers("buckets", **common, cap_mib=0.1)
    assert each["buckets"] == 8 and each["exposed_s"] == pytest.approx(8 * (2e-3 + 0.0125) - 7 / 8 * 0.1, abs=1e-4)


def test_zero_keeps_what_figure_1_of_the_paper_says_and_activations_what_gpt_3_s_are():
    found = numbers("zero_bytes", billions=7.5, ranks=64, recipe="mixed Adam", batch=0)
    assert [round(found[f"stage_{stage}_bytes"] / 1e9, 1) for stage in range(4)] == [120.0, 31.4, 16.6, 1.9]
    gpt3 = Proportions(96, 12288, 96)
    kept = {
        how: activation_bytes(gpt3, sequence=2048, batch=1, recompute=how)
        for how in ("nothing", "attention", "whole layers")
    }
    assert (
        kept["attention"] / kept["nothing"] == pytest.approx(34 / 114) and kept["whole layers"] / kept["attention"] == 2 / 34
    )
    assert usual_proportions(6.9e9) == Proportions(33, 33 * 128, 33) and usual_proportions(1.0).layers == 1
    with pytest.raises(UnknownName):
        activation_bytes(gpt3, sequence=1, batch=1, recompute="some")
    with pytest.raises(UsageError):
        usual_proportions(0)


@pytest.mark.parametrize("recompute", ["nothing", "attention"])
def test_what_autograd_keeps_of_a_block_is_what_the_formula_says_without_dropout(recompute):
    """A block of the labs' GPT in fp32, twice the bytes of 16 bits; beside it norms keep two numbers a token."""
    shape, sequence = GPTShape(layers=1, hidden=48, heads=4, seq=64), 64
    block = Block(shape, "naive" if recompute == "nothing" else "sdpa")
    found = bytes_kept(block, torch.randn(2, sequence, 48, requires_grad=True))
    formula = 2 * activation_bytes(Proportions(1, 48, 4), sequence=sequence, batch=2, recompute=recompute, dropout=False)
    norms, own = 4 * 4 * 2 * sequence, 4 * 4 * 2 * sequence if recompute == "attention" else sequence**2
    assert found == formula + norms + own, "own: a sum for each head and token, or one mask of the future in bytes"


def test_an_optimizer_in_host_memory_leaves_the_device_and_moves_its_share_over_the_bus():
    how = {"billions": 7.0, "ranks": 8, "recipe": "mixed Adam", "batch": 0}
    here, there = numbers("zero_bytes", **how), numbers("zero_bytes", **how, optimizer="in host memory")
    assert here["stage_2_bytes"] - there["stage_2_bytes"] == 12 * 7e9 / 8 and here["stage_2_moved_bytes"] == 0
    assert [there[f"stage_{stage}_moved_bytes"] for stage in range(3)] == [4 * 7e9, 4 * 7e9 / 8, 4 * 7e9 / 8]


def test_spares_are_worth_their_price_up_to_a_number():
    found = numbers("spare_nodes")
    assert found["stands_still"] == pytest.approx(24 / 27) and found["best_goodput_a_node"] > 0.7
    best = numbers("spare_nodes", spares=int(found["best_spares"]))
    assert best["goodput_a_node"] == pytest.approx(found["best_goodput_a_node"])


def test_enough_workers_hide_the_input_and_enough_ranks_empty_the_store():
    assert numbers("input_pipeline", prepare_ms=200.0, compute_ms=50.0, workers=0)["step_ms"] == 250
    assert numbers("input_pipeline", prepare_ms=200.0, compute_ms=50.0, workers=2)["step_ms"] == 100
    four = numbers("input_pipeline", prepare_ms=200.0, compute_ms=50.0, workers=4, ranks=8, store_mb_per_s=1000.0)
    assert (four["step_ms"], four["waiting"], four["share_mb_per_s"]) == (50, 0, 125)


def test_a_cluster_of_one_minute_a_quarter_of_an_hour_and_three_hours_saves_every_nineteen_minutes():
    found = numbers("goodput", save_s=60, restart_min=15, mtbf_h=3, interval_min=20)
    assert found["young_interval_s"] / 60 == pytest.approx(math.sqrt(2 * 1 * 180), rel=1e-9)
    assert (
        found["goodput"] < found["best_goodput"] < 1 and abs(found["best_interval_s"] / found["young_interval_s"] - 1) < 0.1
    )


def test_a_slider_goes_where_it_is_told_and_no_further():
    slider = Slider(name="ranks", label="ranks", unit="", stops=(2, 4, 8), value=4)
    assert slider.at(8).value == 8 and slider.at(3).stops == (2, 3, 4, 8)
    menu = Slider(name="recipe", label="kept", unit="", stops=("a", "b"), value="a")
    for wrong in (lambda: slider.at(-1), lambda: slider.at(math.nan), lambda: slider.at("4"), lambda: menu.at("c")):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="none of its stops"):
        Slider(name="ranks", label="ranks", unit="", stops=(2, 4), value=3)
    with pytest.raises(UnknownName, match="rank"):
        PANELS["ring"].at(rank=3)
    assert decades(0.5, 30) == (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def test_a_measured_point_is_laid_on_its_chart_with_its_source_and_sets_the_sliders():
    at = Point(label="a run", x=5.0, y=0.25, provenance="measured")
    panel = PANELS["ring"].with_measured(Measured(settings={"ranks": 5}, points=((1, at),), said="It took 250 ms."))
    drawn = panel.shown()
    assert panel.settings["ranks"] == 5 and drawn.charts[1].points[-1] == at and at not in drawn.charts[0].points
    assert drawn.said.endswith("It took 250 ms.") and panel.shown({"ranks": 8}).charts[1].points[-1] == at
    assert PANELS["ring"].with_measured(None) is PANELS["ring"]


def test_a_panel_is_found_by_its_file_and_a_wrong_name_gets_the_list():
    assert panels.named("spare_nodes") is PANELS["spare_nodes"]
    with pytest.raises(UnknownName, match="Did you mean 'spare_nodes'"):
        panels.named("spare_node")
