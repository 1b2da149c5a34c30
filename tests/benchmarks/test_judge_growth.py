"""What reading and judging a record costs: of three shapes of run, and over the number of samples, up to 100 million."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_records import write_record

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ((4, 10_000, 32), (8, 10_000, 64), (64, 1_000, 32))
"""(ranks, steps, samples of a rank and step)."""

RANKS, BATCH = 8, 512
"""Of the growth curve: a run of more samples is one of more steps."""

SIZES = (10**5, 10**6, 10**7, 10**8)
ROOM_BYTES = 8 * 10**9
"""On disk, for the largest record and its columns."""


def judged(folder: Path, cache: Path) -> dict:
    """What a process of its own took to read and judge a record."""
    done = subprocess.run(
        [sys.executable, ROOT / "tests/benchmarks/judging.py", folder],
        cwd=ROOT,
        env={**os.environ, "LABKIT_CACHE": str(cache), "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def row(label: str, of_lines: dict, of_columns: dict) -> str:
    first, again = of_lines["whole_s"], of_columns["whole_s"]
    peaks = f"{of_lines['resident_bytes'] / 1e9:6.2f} {of_columns['own_bytes'] / 1e9:6.2f}"
    return f"{label:>24} {first:8.2f} {again:8.2f} {of_columns['read_s']:8.2f} {of_columns['judge_s']:8.2f} {peaks}"


HEADINGS = (
    f"\n{'':>24} {'first':>8} {'again':>8} {'read':>8} {'judge':>8} {'GB':>6} {'own GB':>6}"
    "   (s of processor time; GB resident the first time; own: without mapped files, again)"
)


@pytest.mark.parametrize("split", [True, False], ids=["shared out", "each rank shuffles all data"])
def test_shapes_of_runs(split, tmp_path, capsys):
    lines = [HEADINGS]
    for ranks, steps, batch in SHAPES:
        folder = tmp_path / f"{ranks}"
        write_record(folder, ranks=ranks, steps=steps, batch=batch, split=split)
        first, again = (judged(folder, tmp_path / "cache") for _ in range(2))
        assert first["statuses"] == again["statuses"]
        assert first["statuses"]["rank-duplicates"] == ("clear" if split else "found")
        lines.append(row(f"{ranks} x {steps:,} x {batch}", first, again))
    with capsys.disabled():
        print("\n".join(lines))


def test_growth_with_the_samples(tmp_path, capsys):
    lines, per_sample, own = [HEADINGS], {}, {}
    for samples in SIZES:
        if samples == SIZES[-1] and shutil.disk_usage(tmp_path).free < ROOM_BYTES:
            lines.append(f"{samples:>24,} left out: it takes {ROOM_BYTES / 1e9:.0f} GB of disk")
            break
        folder = tmp_path / f"{samples}"
        steps = max(10, 10 * round(samples / (10 * RANKS * BATCH)))
        write_record(folder, ranks=RANKS, steps=steps, batch=BATCH)
        first, again = (judged(folder, tmp_path / "cache") for _ in range(2))
        assert first["statuses"] == again["statuses"]
        lines.append(row(f"{RANKS * steps * BATCH:,} samples", first, again))
        per_sample[samples], own[samples] = again["whole_s"] / samples, again["own_bytes"]
        shutil.rmtree(folder)
    with capsys.disabled():
        print("\n".join(lines))
    largest = max(per_sample)
    assert per_sample[largest] < 2 * per_sample[10**6], "time for each sample"
    if largest == SIZES[-1]:
        assert own[largest] < 2 * 8 * largest, "the hashes of all samples, twice"
