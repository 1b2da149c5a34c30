"""Tests that share records run in one worker: a file's; of the notebooks' and decks' files, a lab's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

FILE = """
import os
import pytest

@pytest.mark.parametrize("lesson", ["01_one", "02_two", "03_three", "04_four"])
@pytest.mark.parametrize("check", range(3))
def test_lesson(lesson, check, request):
    with open("seen", "a") as seen:
        seen.write(f"{lesson if LESSONS else request.path.name} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


def workers(tmp_path: Path) -> dict[str, set[str]]:
    """Group -> the workers that ran its tests, in a suite of six files, the first of them of lessons."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    for name in "abcde":
        (tmp_path / f"test_{name}.py").write_text(
            f"LESSONS = False\n{FILE}".replace('"01_one", "02_two", "03_three", "04_four"', "1, 2")
        )
    (tmp_path / "test_0_lessons.py").write_text(f"LESSONS = True\n{FILE}")
    options = ["-q", "-n", "2", "--dist", "loadscope", "-p", "no:cacheprovider", "-p", "xdist.plugin", "-c", os.devnull]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # what else is installed takes seconds to load
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=100
    )
    seen: dict[str, set[str]] = {}
    for line in (tmp_path / "seen").read_text().splitlines():
        group, worker = line.split()
        seen.setdefault(group, set()).add(worker)
    return seen


def test_a_files_tests_and_a_lessons_tests_stay_in_one_worker(tmp_path):
    seen = workers(tmp_path)
    assert len(seen) == 9
    assert {len(found) for found in seen.values()} == {1}
    lessons = [found for group, found in seen.items() if not group.endswith(".py")]
    assert len(set().union(*lessons)) == 2, "lessons are spread, though they share a file"


def test_make_test_asks_for_the_groups():
    assert "--dist loadscope" in (TESTS.parent / "Makefile").read_text()
