"""What the probe costs: in its hot path, and in a training loop beside two equal loops and another tool."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from labkit.record.probe import Probe

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

HERE = Path(__file__).resolve().parent


def test_the_hot_path(tmp_path, capsys):
    probe = Probe(tmp_path / "hot.jsonl")
    batch = torch.randn(64, 256)
    times = []
    for number in range(6000):
        started = time.perf_counter_ns()
        probe.begin_step()
        with probe.span("fetch", "data"):
            pass
        with probe.span("forward"):
            pass
        with probe.span("backward"):
            pass
        with probe.span("optimizer"):
            pass
        probe.samples("train", batch)
        probe.scalar("loss_local", 0.5 + number)
        probe.scalar("lr", 1e-3)
        probe.end_step()
        times.append((time.perf_counter_ns() - started) / 1000)
    probe.close()
    times = sorted(times[1000:])
    median, mean, p99 = statistics.median(times), statistics.mean(times), times[int(len(times) * 0.99)]
    with capsys.disabled():
        print("\nthe probe's hot path: 4 spans, 2 scalars, a 64x256 float batch digested sample by sample")
        print(f"  median {median:.1f} µs a step   mean {mean:.1f}   p99 {p99:.1f}   target 30")
    assert median < 100


def test_its_share_of_a_training_step(tmp_path, capsys):
    with_traceml = importlib.util.find_spec("traceml_ai") is not None
    script = [str(HERE / "probe_loop.py"), "150", str(tmp_path)]
    if with_traceml:
        tool = Path(sys.executable).parent / "traceml"
        command = [str(tool), "run", script[0], "--args", *script[1:], "traceml"]
    else:
        command = [sys.executable, *script]
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400)
    lines = [line for line in ended.stdout.splitlines() if "RESULT " in line]
    assert lines, ended.stdout + ended.stderr
    result = json.loads(lines[0].partition("RESULT ")[2])
    bare = result["bare"]["step_us"]
    with capsys.disabled():
        print(f"\na training step (MLP 256-512-512-10, batch 64, AdamW, one thread): {bare / 1000:.2f} ms")
        for name, found in result.items():
            low, high = found["quartiles_us"]
            share = 100 * found["more_us"] / bare
            print(f"  {name:<12} {found['more_us']:+8.1f} µs a step ({share:+.2f} %), quartiles {low:+.1f} to {high:+.1f}")
        if not with_traceml:
            print("  traceml      not installed: pip install -e '.[bench]'")
    assert result["labkit"]["more_us"] < 0.1 * bare
