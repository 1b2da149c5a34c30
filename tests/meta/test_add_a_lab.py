"""docs/add-a-lab.md holds: its files make a lab that runs on real ranks and is judged, and none of them is there already."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "add-a-lab.md").read_text()
FILES = dict(re.findall(r"\*\*`([^`]+)`\*\*\n\n```python\n(.*?)```", PAGE, re.DOTALL))
NAME, SLUG = "trains_apart", "trains-apart"
TESTS = [
    *(f"tests/labs/test_{name}.py" for name in (NAME, "verdict_matrix", "emulated_links")),
    *(f"tests/unit/{name}.py" for name in ("labs/test_lab_base", "detect/test_meanings", "detect/test_catalogue")),
    *(f"tests/meta/test_{name}.py" for name in ("structure", "vocabulary")),
]
HELD = " or ".join(
    [
        *("a_row", "is_asked_by_a_lab", "fixed_has_no_fault", "against_the_layers", "detectors_that_exist"),
        *("has_broken_first", "its_own_name", "stay_small", "puts_first", "every_lab_of_several", "is_in_the_vocabulary"),
        "test_catalogue",
    ]
)
"""Tests that look at all labs and detectors at once."""

pytestmark = pytest.mark.ranks


def built(folder: Path) -> Path:
    """A copy of the package and of what tests labs, with the page's files added; none takes the place of another."""
    for name in ("labkit", "data", "tests/labs", "tests/unit", "scripts", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "tests/conftest.py", "tests/physics.py", "tests/said.py", "tests/laid_out.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests/meta").mkdir()
    for name in ("test_structure", "test_vocabulary"):
        shutil.copy(ROOT / f"tests/meta/{name}.py", folder / "tests/meta")
    for name, text in FILES.items():
        path = folder / name
        assert not path.exists(), f"{name} is a file of the project already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def in_the_copy(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run tests in the copy, on the copy's package."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *(f"-pno:{name}" for name in ("cacheprovider", "nbval", "anyio")), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return built(tmp_path_factory.mktemp("with-a-lab"))


@pytest.mark.timeout(400)
def test_the_lab_of_the_page_passes_what_every_lab_passes(copy):
    done = in_the_copy(copy, *TESTS, "-k", f"{NAME} or {SLUG} or {HELD}")
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and passed and int(passed[1]) >= 17, done.stdout[-4000:]


def test_the_files_of_the_page_are_written_as_the_project_s_own(copy):
    for words in (("check",), ("format", "--check")):
        done = subprocess.run([sys.executable, "-m", "ruff", *words, *FILES], cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.timeout(300)
def test_a_fault_in_the_lab_of_the_page_is_noticed(copy, tmp_path):
    shutil.copytree(copy, tmp_path / "copy")
    programs = tmp_path / "copy" / "labkit/labs" / NAME / "programs.py"
    programs.write_text(programs.read_text().replace('"fixed": fixed', '"fixed": broken'))
    done = in_the_copy(tmp_path / "copy", f"tests/labs/test_{NAME}.py", "-k", "keep_one_model")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout[-4000:]
