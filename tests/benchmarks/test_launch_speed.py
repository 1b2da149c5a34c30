"""How fast a run starts and ends, beside torchrun, on this machine and now."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from itertools import count

import benchmark_programs as programs
import pytest

import labkit
from labkit.ranks.launch import launch

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

RANKS = 4
EMPTY_UNDER_TORCHRUN = """
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def launched(tmp_path):
    """Launch a program on four ranks in a folder of its own."""
    numbers = count()

    def run(program):
        folder = tmp_path / f"run{next(numbers)}"
        folder.mkdir()
        return launch(program, ranks=RANKS, folder=folder)

    return run


def test_a_warm_launch_beside_torchrun(launched, tmp_path, capsys):
    first = programs.seconds(lambda: launched(programs.empty), 1)
    warm = programs.seconds(lambda: launched(programs.empty), 40)
    steps = programs.seconds(lambda: launched(programs.twenty_ddp_steps), 20)
    (tmp_path / "empty.py").write_text(EMPTY_UNDER_TORCHRUN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS), "empty.py"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = programs.seconds(lambda: subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True), 3)
    ratio = statistics.median(torchrun) / statistics.median(warm)
    with capsys.disabled():
        print(f"\nlaunch, join, leave; {RANKS} ranks")
        print(programs.row("the first, which starts the warm server", first))
        print(programs.row("an empty program, warm", warm, "target 0.25"))
        print(programs.row("20 DDP steps of the digits' MLP, warm", steps, "target 0.5"))
        print(programs.row("an empty program under torchrun", torchrun, f"{ratio:.0f}x the warm one, target 20x"))
    assert statistics.median(warm) < 1.0
    assert statistics.median(steps) < 2.0
    assert ratio > 8


def test_from_run_to_the_figure(tmp_path, capsys):
    lab = labkit.lab("duplicate-data")
    lab.figure(lab.spec.figures[0], lab.run(record_dir=tmp_path / "warm-up")).png()
    first_progress: list[float] = []
    numbers = count()

    def press_run():
        pressed = time.perf_counter()
        seen = []

        def on_progress(_role, progress):
            if not seen and max(progress.steps) > 0:
                seen.append(time.perf_counter() - pressed)

        record = lab.run(record_dir=tmp_path / f"run{next(numbers)}", on_progress=on_progress)
        first_progress.extend(seen)
        lab.figure(lab.spec.figures[0], record).png()
        lab.judge(record)

    to_figure = programs.seconds(press_run, 7)
    with capsys.disabled():
        print(f"\nfrom Run to the figure; {lab.spec.ranks} ranks, default size, with the reference's run")
        print(programs.row("figure drawn and verdicts given", to_figure, "target 2.5"))
        print(programs.row("first step seen", sorted(first_progress), "target 0.3"))
    assert statistics.median(to_figure) < 8
    assert statistics.median(first_progress) < 2
