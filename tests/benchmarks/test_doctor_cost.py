"""What the doctor costs a training that it watches: beside the bare script twice, and another tool where it is there.

All of them run at once and take turns, each making some steps while the others wait, so that whatever else the machine does
strikes them alike. Processor time is compared, turn by turn; the second bare script is the control.
"""

from __future__ import annotations

import importlib.util
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
    assert share(found["doctor"], bare)[0] < 60
