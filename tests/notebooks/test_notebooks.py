"""Every notebook, found by glob: its frame, a run by papermill with other parameters, a strict comparison by nbval."""

import copy
import json
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
from needed import sliced
from warm_kernels import warm_kernels

from labkit import labs
from labkit.errors import UnknownName

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WITH_VARIANTS = {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs() if spec.variants}
COMPARED = "nbval-ignore-output"

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory):
    """Kernels are forked from a process that has torch loaded."""
    base = tmp_path_factory.getbasetemp()
    with (
        warm_kernels(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("JUPYTER_PATH", str(folder))
        yield


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


def invariants_of(cells):
    (cell,) = [cell for cell in cells if COMPARED not in tags(cell) and ".invariants(" in cell.source]
    return cell


def invariants_cell(notebook):
    return invariants_of(code_cells(notebook))


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
    of_variants = (".panel(", "lab.diff(") if path.stem in WITH_VARIANTS else ()
    for needed in ("lesson.Prediction", ".reveal(", "assert ", ".check(", *of_variants):
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
        said = picture.data["text/plain"]
        drawing = "image/svg+xml" in picture.data  # of a mechanism: it shows no number of a machine
        assert drawing or any(source in said for source in ("measured", "recorded", "simulated"))
    for output in outputs:
        data = output.get("data", {})
        if "application/vnd.jupyter.widget-view+json" in data:
            assert "VBox" not in data["text/plain"]


@each
def test_stored_outputs_name_no_place_of_the_machine_that_made_them(path):
    notebook = nbformat.read(path, as_version=4)
    outputs = json.dumps([cell.outputs for cell in code_cells(notebook)])
    assert not re.findall(r"(?<![\w.:/<])/(?:tmp|home|root|var|Users)/[\w.-]*", outputs)


@each
def test_the_answer_is_folded_until_somebody_opens_it(path):
    """A cell whose output JupyterLab hides shows its HTML as text in the place: the answer folds itself instead."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in code_cells(notebook) if ".reveal(" in cell.source]
    shown = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
    hidden_by_lab = cell.metadata.get("jupyter") == {"outputs_hidden": True}  # of a lesson that is not executed anew yet
    assert hidden_by_lab or not cell.outputs or ("<details><summary>Reveal" in shown and "<details open" not in shown)
    others = [other for other in code_cells(notebook) if other is not cell]
    assert not [other for other in others if "outputs_hidden" in other.metadata.get("jupyter", {})]


@each
def test_only_the_invariants_are_compared(path):
    notebook = nbformat.read(path, as_version=4)
    cell = invariants_cell(notebook)
    assert not re.search(r"\d{4}-\d{2}-\d{2}|[0-9a-f]{16}|\d\.\d", printed(cell)), "a date, a hash or a timing"
    others = [cell for cell in code_cells(notebook) if COMPARED not in tags(cell)]
    assert others == [cell]


def package_with(fault, folder: Path) -> Path:
    """A copy of the package that has the fault; the folder to import it from."""
    shutil.copytree(ROOT / "labkit", folder / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", folder / "data")
    target = folder / "labkit" / fault.file
    assert fault.before in target.read_text()
    target.write_text(target.read_text().replace(fault.before, fault.after))
    return folder


def with_a_first_cell(cells: list, case) -> list:
    """The cells of a lesson with the one that its case puts after the frame's check of the parameters, if any."""
    begin = next(number for number, cell in enumerate(cells) if "lesson.begin(" in cell.source)
    first = nbformat.v4.new_code_cell(case.first, metadata={"tags": [COMPARED]})
    return [*cells[: begin + 1], *([first] if case.first else []), *cells[begin + 1 :]]


def once_more(path: Path, fault, package: Path) -> list:
    """Two cells more: ranks import the package with the fault and make one run again; the invariants, said again."""
    again = nbformat.v4.new_code_cell(f"import sys\n\nsys.path.insert(0, {str(package)!r})\n{fault.again}")
    said = nbformat.v4.new_code_cell(invariants_cell(nbformat.read(path, as_version=4)).source)
    return [again, said]


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Each notebook executed once by papermill at small size: path -> the code cells of the lesson, and those of a fault.

    The kernel that has executed the lesson goes on with a package that has a fault: no other one is started for it.
    """
    done = {}

    def of(path):
        if path not in done:
            folder, case = tmp_path_factory.mktemp("small"), of_lesson(path.stem)
            notebook = nbformat.read(path, as_version=4)
            more = once_more(path, case.mutation, package_with(case.mutation, folder / "fault"))
            notebook.cells = [*with_a_first_cell(notebook.cells, case), *more]
            nbformat.write(notebook, folder / f"longer_{path.name}")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LABKIT_CACHE", str(folder / "cache"))
                papermill.execute_notebook(
                    folder / f"longer_{path.name}", folder / path.name, parameters=dict(case.small), cwd=folder,
                    progress_bar=False,
                )  # fmt: skip
            cells = code_cells(nbformat.read(folder / path.name, as_version=4))
            done[path] = cells[: -len(more)], cells[-len(more) :]
        return done[path]

    return of


@each
@pytest.mark.ranks
@pytest.mark.timeout(600)
def test_it_runs_with_other_parameters_and_says_what_they_give(path, small_run):
    lesson, _ = small_run(path)
    of_lesson(path.stem).says(printed(invariants_of(lesson)))


@each
@pytest.mark.ranks
@pytest.mark.timeout(600)
def test_a_package_with_a_fault_is_noticed(path, small_run):
    """The cell of invariants says something else than before, though nothing else was run again than what has the fault."""
    lesson, (_, said) = small_run(path)
    before, after = (printed(cell).splitlines() for cell in (invariants_of(lesson), said))
    assert before != after and len(after) > len(before) / 2, after


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


def nbval(path: Path) -> tuple[list[int], str]:
    """Compare a notebook's outputs with a new run of it: which of its code cells differ, and what nbval said."""
    options = ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-rf", "-c", os.devnull]
    env = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(path.parent), str(path)],
        capture_output=True, text=True, cwd=path.parent, env={**os.environ, **env},
    )  # fmt: skip
    assert done.returncode in (0, 1) and " passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
    return [int(number) for number in re.findall(r"(?m)^FAILED .*::Cell (\d+)", done.stdout)], done.stdout


def one_digit_changed(cell):
    """The cell once more, with another digit in what is stored of it."""
    other = copy.deepcopy(cell)
    other["id"] = "changed"
    other.outputs[0].text = re.sub(r"\d", lambda digit: str(9 - int(digit[0])), cell.outputs[0].text, count=1)
    assert other.outputs[0].text != cell.outputs[0].text
    return other


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Each notebook run once by nbval, at the sizes it is stored with, and then a changed copy of the compared cell.

    What is only shown, and nothing rests on, is left to papermill.

    path -> the code cells whose outputs differ, the number of code cells, and what nbval said.
    """
    done = {}

    def of(path):
        if path not in done:
            folder = tmp_path_factory.mktemp("compared")
            notebook = nbformat.read(path, as_version=4)
            cells, compared = code_cells(notebook), invariants_cell(notebook)
            for cell, source in zip(cells, sliced([c.source for c in cells], {0, cells.index(compared)}), strict=True):
                cell.source = source
            needed = with_a_first_cell([cell for cell in cells if cell.source], of_lesson(path.stem))
            notebook.cells = [*needed, one_digit_changed(compared)]
            nbformat.write(notebook, folder / path.name)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LABKIT_CACHE", str(folder / "cache"))
                done[path] = (len(notebook.cells), *nbval(folder / path.name))
        return done[path]

    return of


@each
@pytest.mark.ranks
@pytest.mark.timeout(600)
def test_a_new_run_gives_the_stored_invariants(path, compared):
    cells, differ, said = compared(path)
    assert [number for number in differ if number != cells - 1] == [], said[-4000:]


@each
@pytest.mark.ranks
@pytest.mark.timeout(600)
def test_one_changed_digit_of_a_stored_output_is_noticed(path, compared):
    cells, differ, said = compared(path)
    assert cells - 1 in differ and "mismatch 'stdout'" in said, said[-4000:]
