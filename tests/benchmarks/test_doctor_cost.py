"""What the doctor costs a training that it watches: beside the bare script twice, and another tool where it is there.

All of them run at once and take turns, each making some steps while the others wait, so that whatever else the machine does
strikes them alike. Processor time is compared, turn by turn; the second bare script is the control.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from doctor_loop import SIZES, WARM

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
LOOP = str(Path(__file__).with_name("doctor_loop.py"))
TURNS = {"small": 40, "large": 25}


def command(name: str, ranks: int, words: list[str], folder: Path) -> list[str]:
    """How one of them is started."""
    if name == "doctor":
        record = ["--record", str(folder / "record"), "--json", str(folder / "report.json")]
        return [sys.executable, "-m", "labkit", "doctor", "--ranks", str(ranks), *record, LOOP, *words]
    if name == "traceml":
        return [str(Path(sys.executable).parent / "traceml"), "run", LOOP, "--args", *words]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    return [sys.executable, *launcher, LOOP, *words]


def taken(names: list[str], ranks: int, size: str, folder: Path) -> dict[str, list[float]]:
    """By name: µs of processor time a step, by turn, rank 0's."""
    (folder / "names").write_text(" ".join(names))
    (folder / "turn").write_text("0")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "LABKIT_CACHE": str(folder / "cache")}
    words = [str(TURNS[size]), str(folder), size]
    running = [
        subprocess.Popen(command(name, ranks, [name, *words], folder), cwd=folder, env=env, stdout=subprocess.DEVNULL)
        for name in names
    ]
    try:
        codes = [process.wait(1500) for process in running]
    finally:
        for process in running:
            process.kill()
    assert codes == [0] * len(names)
    return {name: [float(line.split()[0]) for line in (folder / f"{name}.0").read_text().splitlines()] for name in names}


def share(of: list[float], bare: list[float]) -> tuple[float, float, float]:
    """(median, quartiles) of what one takes more than the bare script, in % of that."""
    more = [100 * (own - beside) / beside for own, beside in zip(of, bare, strict=True)]
    low, middle, high = statistics.quantiles(more, n=4)
    return middle, low, high


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("size", list(SIZES))
def test_its_share_of_a_step(size, ranks, tmp_path, capsys):
    others = ["traceml"] if importlib.util.find_spec("traceml_ai") is not None and ranks == 1 else []
    names = ["bare", "doctor", *others, "control"]
    found = taken(names, ranks, size, tmp_path)
    bare = [(one + two) / 2 for one, two in zip(found["bare"], found["control"], strict=True)]
    steps = WARM + TURNS[size] * SIZES[size][3]
    a_step = (tmp_path / "record" / "variant" / "rank-00000.jsonl").stat().st_size / steps
    with capsys.disabled():
        step_ms = statistics.median(bare) / 1000
        print(f"\n{ranks} rank(s): a step takes {step_ms:.2f} ms of processor time, and {a_step:.0f} bytes of the record")
        for name in names[1:]:
            middle, low, high = share(found[name], found["bare"] if name == "control" else bare)
            print(f"  {name:<8} {middle:+6.2f} % (quartiles {low:+.2f} to {high:+.2f})")


BLOCKS = {"small": (6, 400), "large": (4, 100)}
"""Turns, and steps of each."""


@pytest.mark.parametrize("size", list(SIZES))
def test_its_share_of_a_step_in_one_process(size, tmp_path, capsys):
    """Of all steps but the first ones, which are all looked at: bursts, and what is followed between them."""
    blocks, steps = BLOCKS[size]
    command = [sys.executable, str(Path(LOOP).with_name("doctor_block.py")), size, str(blocks), str(steps), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "LABKIT_CACHE": str(tmp_path / "cache")}
    done = json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
    times = done["times"]
    flat = {name: [one for block in of for one in block] for name, of in times.items()}
    bare = flat["bare"] + flat["control"]
    with capsys.disabled():
        mib = done["more_resident_bytes"] / 2**20
        print(f"\nin one process, load {os.getloadavg()[0]:.1f}: a step takes {statistics.median(bare) / 1000:.2f} ms")
        for name in ("doctor", "control"):
            middle, own = statistics.median(flat["bare"]), flat[name]
            more = statistics.median(own) - middle
            low, high = (statistics.quantiles(own, n=4)[at] - statistics.quantiles(flat["bare"], n=4)[at] for at in (0, 2))
            print(f"  {name:<8} {more:+7.1f} µs = {100 * more / middle:+.2f} % (quartiles {low:+.1f} to {high:+.1f} µs)")
        print(f"  {done['bytes_a_step']:.0f} bytes of the record a step; {mib:.1f} MiB more at the most")


def test_a_long_run_is_judged(tmp_path, capsys):
    """8 ranks of 10,000 steps as the doctor records them, of which each reads its part of the data by a sampler."""
    folder = tmp_path / "variant"
    folder.mkdir()
    program = f"from doctor_records import write; write({str(folder)!r}, ranks=8, steps=10_000)"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(LOOP).parent}", "LABKIT_CACHE": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    judging = [sys.executable, str(Path(LOOP).with_name("judging.py")), str(folder)]
    done = json.loads(subprocess.run(judging, env=env, check=True, capture_output=True, text=True).stdout)
    with capsys.disabled():
        sizes = [path.stat().st_size / 1e6 for path in folder.glob("*.jsonl")]
        print(f"\n8 ranks × 10,000 steps, load {os.getloadavg()[0]:.1f}: {max(sizes):.1f} MB a rank")
        print(f"  read in {done['read_s']:.2f} s, judged in {done['judge_s']:.2f} s of processor time")
        print(f"  with {done['own_bytes'] / 1e6:.0f} MB of memory")
    assert "found" not in done["statuses"].values()
