"""Every notebook, found by glob: its frame, a run by papermill with other parameters, a strict comparison by nbval."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from labkit import labs

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL = {"03_duplicate_data": {"ranks": 3, "num_samples": 301, "batch": 16, "seed": 5, "guess": 16}}
COMPARED = "nbval-ignore-output"

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def printed(cell) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def invariants_cell(notebook):
    (cell,) = [cell for cell in code_cells(notebook) if COMPARED not in tags(cell) and "lab.invariants" in cell.source]
    return cell


def test_there_are_notebooks():
    assert NOTEBOOKS


@each
def test_the_frame_is_that_of_every_lesson(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.search(r"symptom", text, re.IGNORECASE)
    assert re.search(r"\d+ minutes", text)
    parts = [
        "Predict",
        "Measure",
        "Explain",
        "Explore",
        "Exercise",
        "must hold on every machine",
        "Recap",
        "Limits of this machine",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    code = code_cells(notebook)
    assert tags(code[0])[:1] == ["parameters"]
    assert "lesson.begin(" in code[1].source
    for needed in ("lesson.Prediction", ".reveal(", "assert ", ".panel(", "lab.check(", "lab.diff("):
        assert any(needed in cell.source for cell in code), needed


@each
def test_cells_are_short_and_the_lesson_is_not_too_long(path):
    notebook = nbformat.read(path, as_version=4)
    assert 25 <= len(notebook.cells) <= 60
    for cell in code_cells(notebook):
        lines = cell.source.splitlines()
        assert len(lines) < 15 and all(len(line) <= 100 for line in lines), cell.source


@each
def test_stored_outputs_read_well_without_a_kernel(path):
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 4
    for picture in pictures:
        assert "measured" in picture.data["text/plain"] or "recorded" in picture.data["text/plain"]
    for output in outputs:
        data = output.get("data", {})
        if "application/vnd.jupyter.widget-view+json" in data:
            assert "VBox" not in data["text/plain"]


@each
def test_only_the_invariants_are_compared(path):
    notebook = nbformat.read(path, as_version=4)
    cell = invariants_cell(notebook)
    assert not re.search(r"\d{4}-\d{2}-\d{2}|[0-9a-f]{16}|\d\.\d", printed(cell)), "a date, a hash or a timing"
    others = [cell for cell in code_cells(notebook) if COMPARED not in tags(cell)]
    assert others == [cell]


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_it_runs_with_other_parameters_and_says_what_they_give(path, tmp_path):
    parameters = SMALL[path.stem]
    done = papermill.execute_notebook(path, tmp_path / path.name, parameters=parameters, cwd=tmp_path, progress_bar=False)
    text = printed(invariants_cell(done))
    slug = path.stem[3:].replace("_", "-")
    assert f"{slug} / broken on 3 ranks" in text
    broken, rest = text.split(f"{slug} / fixed")
    assert "rank-duplicates: found" in broken
    assert "samples_per_epoch = 903" in broken
    fixed = rest.split(f"{slug} / overlapping")[0]
    assert "rank-duplicates: clear" in fixed and "order: clear" in fixed
    assert "samples_per_epoch = 303" in fixed and "padding = 2" in fixed


@each
@pytest.mark.ranks
def test_a_parameter_that_it_does_not_have_is_refused(path, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match="no parameter of this notebook 'rank'.*'ranks'"):
        papermill.execute_notebook(path, tmp_path / path.name, parameters={"rank": 2}, cwd=tmp_path, progress_bar=False)


def nbval(path: Path, package: Path = ROOT) -> subprocess.CompletedProcess:
    """Compare a notebook's outputs with a new run of it; `package` is the folder whose labkit is used."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-o", "addopts=",
         "--rootdir", str(path.parent), str(path)],
        capture_output=True, text=True, cwd=path.parent,
        env={**__import__("os").environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


def trimmed(path: Path, folder: Path) -> Path:
    """A copy with the cells that the invariants need: set-up, runs, the invariants."""
    notebook = nbformat.read(path, as_version=4)
    runs = re.compile(r"lab\.run\(|lesson\.begin\(|lab\.invariants|^settings = ", re.MULTILINE)
    notebook.cells = [c for c in code_cells(notebook) if "parameters" in tags(c) or runs.search(c.source)]
    target = folder / path.name
    nbformat.write(notebook, target)
    return target


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_new_run_gives_the_stored_invariants(path):
    done = nbval(path)
    assert done.returncode == 0, done.stdout[-4000:]


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_changed_stored_output_is_noticed(path, tmp_path):
    copy = trimmed(path, tmp_path)
    notebook = nbformat.read(copy, as_version=4)
    cell = invariants_cell(notebook)
    assert "clear" in cell.outputs[0].text
    cell.outputs[0].text = cell.outputs[0].text.replace("clear", "found", 1)
    nbformat.write(notebook, copy)
    done = nbval(copy)
    assert done.returncode == 1 and "mismatch 'stdout'" in done.stdout, done.stdout[-4000:]


BREAK = {
    "03_duplicate_data": (
        "labs/duplicate_data/programs.py",
        "    sampler.set_epoch(epoch)\n    return DataLoader(data, batch, sampler=sampler)",
        "    return DataLoader(data, batch)",
    )
}


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_package_without_its_sampler_is_noticed(path, tmp_path):
    import shutil

    file, before, after = BREAK[path.stem]
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", tmp_path / "data")
    target = tmp_path / "labkit" / file
    assert before in target.read_text()
    target.write_text(target.read_text().replace(before, after))
    done = nbval(trimmed(path, tmp_path), package=tmp_path)
    assert done.returncode == 1 and "mismatch 'stdout'" in done.stdout, done.stdout[-4000:]


def test_each_lab_has_small_parameters_for_papermill():
    assert {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs()} == set(SMALL)
