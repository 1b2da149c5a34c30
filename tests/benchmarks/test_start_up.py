"""What a person waits for before anything runs."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
from pathlib import Path

import benchmark_programs as programs
import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


def interpreter(*arguments: str) -> list[float]:
    """Times of a new interpreter, from the repository's root."""
    return programs.seconds(
        lambda: subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True), 9
    )


def test_the_import_and_the_list(capsys):
    nothing = interpreter("-c", "pass")
    imported = interpreter("-c", "import labkit")
    costs = statistics.median(imported) - statistics.median(nothing)
    with capsys.disabled():
        print("\na new interpreter")
        print(programs.row("python -c pass", nothing))
        print(programs.row("python -c 'import labkit'", imported, f"the import alone {costs:.3f}, target 0.1"))
    assert costs < 0.3
    if importlib.util.find_spec("labkit.cli") is None:
        pytest.skip("there is no command line yet")
    listed = interpreter("-m", "labkit", "list")
    with capsys.disabled():
        print(programs.row("python -m labkit list", listed, "target 0.5"))
    assert statistics.median(listed) < 1.5
