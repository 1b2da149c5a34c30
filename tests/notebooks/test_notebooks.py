"""Every notebook, found by glob: its frame, a run by papermill with other parameters, a strict comparison by nbval."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from IPython.core.interactiveshell import InteractiveShell
from lab_cases import of_lesson

from labkit import labs
from labkit.errors import UnknownName

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SURVEYS = {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs() if not spec.variants}
COMPARED = "nbval-ignore-output"

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """The kernels' runs and baselines stay out of the user's cache."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


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
    of_variants = (".panel(", "lab.diff(") if path.stem not in SURVEYS else ()
    for needed in ("lesson.Prediction", ".reveal(", "assert ", "lab.check(", *of_variants):
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
def test_the_answer_is_hidden_until_its_cell_is_run(path):
    """JupyterLab shows a hidden output again when its cell is run; `make notebooks` keeps a cell's metadata."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in code_cells(notebook) if ".reveal(" in cell.source]
    assert cell.metadata.get("jupyter") == {"outputs_hidden": True}
    assert not [other for other in code_cells(notebook) if other is not cell and "jupyter" in other.metadata]


@each
def test_only_the_invariants_are_compared(path):
    notebook = nbformat.read(path, as_version=4)
    cell = invariants_cell(notebook)
    assert not re.search(r"\d{4}-\d{2}-\d{2}|[0-9a-f]{16}|\d\.\d", printed(cell)), "a date, a hash or a timing"
    others = [cell for cell in code_cells(notebook) if COMPARED not in tags(cell)]
    assert others == [cell]


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Each notebook executed once by papermill at small size: path -> the executed copy."""
    done = {}

    def of(path):
        if path not in done:
            folder = tmp_path_factory.mktemp("small")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LABKIT_CACHE", str(folder / "cache"))
                papermill.execute_notebook(
                    path, folder / path.name, parameters=dict(of_lesson(path.stem).small), cwd=folder, progress_bar=False
                )
            done[path] = folder / path.name
        return done[path]

    return of


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_it_runs_with_other_parameters_and_says_what_they_give(path, small_run):
    of_lesson(path.stem).says(printed(invariants_cell(nbformat.read(small_run(path), as_version=4))))


@each
def test_a_parameter_that_it_does_not_have_is_refused(path, tmp_path, monkeypatch):
    """The lesson's first two cells, with papermill's between them, in a shell of this process: no kernel is needed."""
    monkeypatch.chdir(tmp_path)
    parameters, begin, *_ = code_cells(nbformat.read(path, as_version=4))
    shell = InteractiveShell(colors="nocolor")
    for source in (parameters.source, "# Parameters\nsed = 2\n"):
        shell.run_cell(source, store_history=True).raise_error()
    with pytest.raises(UnknownName, match="no parameter of this notebook 'sed'.*'seed'"):
        shell.run_cell(begin.source, store_history=True).raise_error()


@pytest.mark.ranks
def test_papermill_marks_the_parameters_that_it_gives_so_that_a_wrong_one_is_refused(tmp_path):
    path = NOTEBOOKS[0]
    with pytest.raises(papermill.PapermillExecutionError, match="no parameter of this notebook 'sed'.*'seed'"):
        papermill.execute_notebook(path, tmp_path / path.name, parameters={"sed": 2}, cwd=tmp_path, progress_bar=False)


def nbval(path: Path, package: Path = ROOT) -> subprocess.CompletedProcess:
    """Compare a notebook's outputs with a new run of it; `package` is the folder whose labkit is used."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-o", "addopts=",
         "--rootdir", str(path.parent), str(path)],
        capture_output=True, text=True, cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


def trimmed(executed: Path, folder: Path) -> Path:
    """A copy with the cells that the invariants need: parameters, set-up, runs, the invariants."""
    notebook = nbformat.read(executed, as_version=4)
    runs = re.compile(r"lab\.run\(|lesson\.begin\(|lab\.invariants|^settings = |^from labkit", re.MULTILINE)
    given = {"parameters", "injected-parameters"}
    notebook.cells = [cell for cell in code_cells(notebook) if given & set(tags(cell)) or runs.search(cell.source)]
    for cell in notebook.cells:
        if COMPARED not in tags(cell) and "lab.invariants" not in cell.source:
            cell.metadata["tags"] = [*tags(cell), COMPARED]  # papermill's own cell has no tag of ours
    target = folder / executed.name
    nbformat.write(notebook, target)
    return target


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_new_run_gives_the_stored_invariants(path):
    done = nbval(path)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.ranks
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem == "03_duplicate_data"], ids=["03"])
def test_a_changed_stored_output_is_noticed(path, small_run, tmp_path):
    copy = trimmed(small_run(path), tmp_path)
    notebook = nbformat.read(copy, as_version=4)
    cell = invariants_cell(notebook)
    before, after = (": yes", ": no") if path.stem in SURVEYS else ("clear", "found")
    assert before in cell.outputs[0].text
    cell.outputs[0].text = cell.outputs[0].text.replace(before, after, 1)
    nbformat.write(notebook, copy)
    done = nbval(copy)
    assert done.returncode == 1 and "mismatch 'stdout'" in done.stdout, done.stdout[-4000:]


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_package_with_a_fault_is_noticed(path, small_run, tmp_path):
    fault = of_lesson(path.stem).mutation
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", tmp_path / "data")
    target = tmp_path / "labkit" / fault.file
    assert fault.before in target.read_text()
    target.write_text(target.read_text().replace(fault.before, fault.after))
    done = nbval(trimmed(small_run(path), tmp_path), package=tmp_path)
    assert done.returncode == 1 and "mismatch 'stdout'" in done.stdout, done.stdout[-4000:]
