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
    others = ["traceml"] if importlib.util.find_spec("traceml") is not None and ranks == 1 else []
    names = ["bare", "doctor", *others, "control"]
    found = taken(names, ranks, size, tmp_path)
    bare = [(one + two) / 2 for one, two in zip(found["bare"], found["control"], strict=True)]
    steps = WARM + TURNS[size] * SIZES[size][3]
    a_step = (tmp_path / "record" / "variant" / "rank-00000.jsonl").stat().st_size / steps
    with capsys.disabled():
        step_ms = statistics.median(bare) / 1000
        print(f"\n{ranks} rank(s): a step takes {step_ms:.2f} ms of processor time, and {a_step:.0f} bytes of the record")
        for name in names:
            peaks = [int(path.read_text()) / 2**20 for path in sorted(tmp_path.glob(f"{name}.*.bytes"))]
            print(f"  {name:<8} {' '.join(f'{peak:.0f}' for peak in peaks)} MiB at the most, by rank")
        for name in names[1:]:
            middle, low, high = share(found[name], found["bare"] if name == "control" else bare)
            print(f"  {name:<8} {middle:+6.2f} % (quartiles {low:+.2f} to {high:+.2f})")


BLOCKS = {"small": (8, 400), "large": (5, 330)}
"""Turns, and steps of each."""

LONG = 10_000
"""Updates of a long run, of which one says what a step takes on the whole."""


def of_long_run(kinds: dict[str, dict[str, float]]) -> float:
    """µs more a step, by those of each kind: in a run whose first epoch is not the last."""
    from labkit.watch.outside.sampling import FIRST, is_due

    bursts = sum(is_due(update) or is_due(update - 1) for update in range(FIRST + 1, LONG + 1))
    more = {kind: of["doctor"] - (of["bare"] + of["control"]) / 2 for kind, of in kinds.items()}
    return (FIRST * more["first"] + bursts * more["burst"] + (LONG - FIRST - bursts) * more["followed"]) / LONG


@pytest.mark.parametrize("size", list(SIZES))
def test_its_share_of_a_step_in_one_process(size, tmp_path, capsys):
    """Of each kind of step: the first ones, those of bursts, and those that are followed between them."""
    blocks, steps = BLOCKS[size]
    command = [sys.executable, str(Path(LOOP).with_name("doctor_block.py")), size, str(blocks), str(steps), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "LABKIT_CACHE": str(tmp_path / "cache")}
    done = json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
    with capsys.disabled():
        print(f"\nin one process, load {os.getloadavg()[0]:.1f}")
        for kind, of in done["kinds"].items():
            bare = (of["bare"] + of["control"]) / 2
            more, apart = of["doctor"] - bare, of["control"] - of["bare"]
            print(
                f"  {kind:<21} {of['steps']:4} steps of {bare / 1000:6.2f} ms: {more:+7.1f} µs = {100 * more / bare:+.2f} %",
                end="",
            )
            print(f" (control {apart:+.1f} µs)")
        bare, more = done["kinds"]["followed"]["bare"], of_long_run(done["kinds"])
        print(f"  of {LONG:,} updates a step takes {more:.1f} µs more = {100 * more / bare:.2f} %")
        mib = done["more_resident_bytes"] / 2**20
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
