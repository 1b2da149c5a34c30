"""Four numbers a lesson, worked by hand: the panels say the same."""

import importlib

import pytest

BY_HAND = [
    ("ring", {"num_bytes": 1e8, "ranks": 8, "alpha_us": 20.0, "gb_per_s": 10.0},
     {"latency_s": 14 * 20e-6, "bytes_s": 17.5e-3, "time_s": 17.78e-3, "crossover_bytes": 1.6e6}),
    ("roofline", {"peak_tflops": 1000.0, "gflop_a_token": 50.0, "tokens_per_s": 4000.0}, {"mfu": 0.2}),
    ("coverage", {"ranks": 4, "epochs": 3}, {"seen": 1 - 27 / 64, "seen_if_dealt_once": 0.25}),
    ("staleness", {"delay": 3, "lr": 0.05, "curvature": 10.0, "momentum": 0.0},
     {"limit": 0.445042, "largest_lr": 0.0445042}),
    ("buckets",
     {"gradients_mb": 500.0, "backward_ms": 200.0, "ranks": 8, "alpha_us": 50.0, "gb_per_s": 5.0, "cap_mib": 20.0},
     {"buckets": 20, "exposed_s": 8.75e-3 + 14 * 50e-6, "alone_s": 175e-3 + 14 * 50e-6}),
    ("zero_bytes", {"billions": 7.0, "ranks": 8, "recipe": "mixed Adam", "batch": 0},
     {"stage_0_bytes": 112e9, "stage_1_bytes": 38.5e9, "stage_3_bytes": 14e9}),
    ("input_pipeline", {"prepare_ms": 200.0, "compute_ms": 50.0, "workers": 2}, {"step_ms": 100.0, "waiting": 0.5}),
    ("goodput", {"save_s": 60, "restart_min": 15, "mtbf_h": 3, "interval_min": 60},
     {"young_interval_s": 60 * 360**0.5, "goodput": 0.760265}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "expected"), BY_HAND, ids=[name for name, *_ in BY_HAND])
def test_a_panel_says_what_was_worked_by_hand(name, settings, expected):
    panel = importlib.import_module(f"labkit.theory.panels.{name}").PANEL
    found = panel.at(**settings).shown().numbers
    assert {each: found[each] for each in expected} == pytest.approx(expected, rel=1e-5)
