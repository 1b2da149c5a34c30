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

from labkit import labs
from labkit.errors import UnknownName

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL = {
    "00_start_here": {"ranks": 3, "budget_s": 1.0, "storage_mib": 8, "keep": "no", "seed": 5, "guess": 3},
    "01_precision": {"epochs": 3, "repeats": 6, "seed": 5, "guess": 50},
    "02_mfu": {"layers": 1, "hidden": 64, "heads": 4, "seq": 128, "steps": 2, "seed": 5, "guess": 50},
    "03_duplicate_data": {"ranks": 3, "num_samples": 301, "batch": 16, "seed": 5, "guess": 16},
    "04_stale_gradients": {"ranks": 3, "steps": 30, "batch": 16, "straggler": 3.0, "seed": 5, "guess": 2},
    "05_overlap": {
        **{"ranks": 3, "hosts": 3, "link": "200mbit", "layers": 4, "width": 64, "batch": 192, "steps": 4},
        **{"bucket_mb": 0.0158, "seed": 5, "guess": 50},
    },
    "06_zero_stages": {
        **{"ranks": 3, "layers": 2, "hidden": 24, "steps": 5, "link": "1gbit", "only": "ddp,fsdp2-reshard"},
        **{"seed": 5, "guess": 2},
    },
    "07_input_pipeline": {
        **{"ranks": 3, "num_samples": 193, "batch": 8, "prep_ms": 8.0, "compute_ms": 4.0},
        **{"seed": 5, "guess": 50},
    },
    "08_crash_recovery": {"ranks": 3, "num_samples": 301, "interval": 4, "kill_step": 11, "seed": 5, "guess": 8},
}
SURVEYS = {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs() if not spec.variants}
COMPARED = "nbval-ignore-output"


def start_here_says(text):
    assert "start-here / survey on 3 ranks" in text
    assert text.count(": yes") == 4 and ": no" not in text


def precision_says(text):
    broken, rest = text.split("precision / fixed")
    assert "gradient-underflow: found" in broken and "updates = 87" in broken
    fixed = rest.split("precision / half-weights")[0]
    assert "gradient-underflow: clear" in fixed and "skipped-steps: clear" in fixed and "skipped_steps = 0" in fixed
    whole = text.split("precision / autocast-whole-loop")[1].split("precision / clip")[0]
    assert "stale-casts: found" in whole and "loss_stands_still = True" in whole
    assert "first_nonfinite_step = 0 (weights)" in text and "precision-speed" not in text


def mfu_says(text):
    assert f"broken counted {6 * 65536 + 12 * 64 * 128}" in text and f"fixed counted {6 * 65536}" in text
    assert "flop-convention: clear" in text.split("mfu / broken")[1].split("mfu / fixed")[0]


def duplicate_data_says(text):
    assert "duplicate-data / broken on 3 ranks" in text
    broken, rest = text.split("duplicate-data / fixed")
    assert "rank-duplicates: found" in broken
    assert "samples_per_epoch = 903" in broken
    fixed = rest.split("duplicate-data / overlapping")[0]
    assert "rank-duplicates: clear" in fixed and "order: clear" in fixed
    assert "samples_per_epoch = 303" in fixed and "padding = 2" in fixed


def stale_gradients_says(text):
    assert "stale-gradients / broken on 3 ranks" in text
    broken, rest = text.split("stale-gradients / fixed")
    assert "stale-gradients: found" in broken and "weights_repeat = False" in broken and "pushes = 90" in broken
    fixed, in_turn = rest.split("stale-gradients / async-theory-lr")[0].split("stale-gradients / async-in-turn")
    assert "stale-gradients: clear" in fixed and "repeatable: clear" in fixed
    assert "mean_staleness_as_derived = True" in in_turn and "weights_repeat = True" in in_turn


def overlap_says(text):
    of = {part.split(" on ")[0].strip(): part for part in text.split("overlap / ")[1:]}
    assert "on 3 ranks" in of["broken"] and "collectives_per_reduction = 1" in of["broken"]
    assert "reductions = 4" in of["accumulate"] and "missing-no-sync: found" in of["accumulate"]
    assert "reductions = 1" in of["no-sync"] and "misplaced-no-sync: clear" in of["no-sync"]
    assert "reductions = 4" in of["no-sync-backward-only"] and "misplaced-no-sync: found" in of["no-sync-backward-only"]
    assert "reductions = 0" in of["no-sync-around-all"] and "weights_equal_on_ranks = False" in of["no-sync-around-all"]
    assert "needless-find-unused: found" in of["find-unused"]


def input_pipeline_says(text):
    assert "input-pipeline / broken on 3 ranks" in text
    broken, rest = text.split("input-pipeline / workers")
    assert "prepared_first_epoch = 195" in broken and "prepared_later = 195" in broken
    cached = rest.split("input-pipeline / cached")[1].split("input-pipeline / locked")[0]
    assert "prepared_later = 0" in cached
    assert text.count("one_at_a_time_across_ranks = True") == text.count("one_at_a_time_across_ranks = False") == 1
    assert text.rstrip().endswith("store_bytes_later = 0")


def zero_stages_says(text):
    broken, rest = text.split("zero-stages / fixed")
    assert (
        "zero-stages / broken on 3 ranks" in broken and "collectives = 9" in broken
    )  # 3 modules: gathered twice, reduced once
    fixed, trap = rest.split("zero-stages / optimizer-first")
    assert "collectives = 6" in fixed and "own_account_missed_by = 0" in fixed and "loss_follows_single = True" in fixed
    assert "optimizer-before-sharding: clear" in fixed and "optimizer-before-sharding: found" in trap
    assert "per-rank-norm: found" in trap and "unequal-init: found" in trap and "wrong-stage" not in text


def crash_recovery_says(text):
    broken, rest = text.split("crash-recovery / fixed", 1)
    assert "crash-recovery / broken on 3 ranks" in broken
    assert "lost-work: found" in broken and "lost_steps = 11" in broken and "resumed_at = 0" in broken
    fixed = rest.split("crash-recovery /")[0]
    assert "lost_steps = 3" in fixed and "resumed_at = 8" in fixed and "departs_at = never" in fixed
    assert "weights_equal_uninterrupted = True" in fixed and "found" not in fixed
    optimizer = rest.split("crash-recovery /")[1]
    assert "departs_at = step 9" in optimizer and "resume-departs: found" in optimizer
    assert "single-path: found" in text.split("/ one-path")[1]
    assert "local-disk: found" in text.split("/ local-disk")[1]


SAYS = {
    "00_start_here": start_here_says,
    "01_precision": precision_says,
    "02_mfu": mfu_says,
    "03_duplicate_data": duplicate_data_says,
    "04_stale_gradients": stale_gradients_says,
    "05_overlap": overlap_says,
    "07_input_pipeline": input_pipeline_says,
    "06_zero_stages": zero_stages_says,
    "08_crash_recovery": crash_recovery_says,
}

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
                    path, folder / path.name, parameters=SMALL[path.stem], cwd=folder, progress_bar=False
                )
            done[path] = folder / path.name
        return done[path]

    return of


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_it_runs_with_other_parameters_and_says_what_they_give(path, small_run):
    SAYS[path.stem](printed(invariants_cell(nbformat.read(small_run(path), as_version=4))))


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


BREAK = {
    "06_zero_stages": (
        "labs/zero_stages/strategies.py",
        "fully_shard(block, reshard_after_forward=True)\n    fully_shard(model, reshard_after_forward=True)",
        "fully_shard(block, reshard_after_forward=False)\n    fully_shard(model, reshard_after_forward=False)",
    ),
    "00_start_here": ("labs/start_here/compute.py", '"bf16": torch.bfloat16, ', ""),
    "01_precision": (
        "labs/precision/loops.py",
        "        scaler.scale(loss).backward()\n        scaler.unscale_(optimizer)\n        clip(model, config)\n"
        "        scaler.step(optimizer)\n        scaler.update()\n",
        "        loss.backward()\n        clip(model, config)\n        optimizer.step()\n",
    ),
    "02_mfu": ("workloads/gpt.py", 'if self.attention == "sdpa":', "if True:"),
    "05_overlap": (
        "labs/overlap/programs.py",
        "    *first, last = batches\n    with model.no_sync():\n        for batch in first:\n"
        "            loss_of(model, batch).backward()\n    loss_of(model, last).backward()\n",
        "    for batch in batches:\n        loss_of(model, batch).backward()\n",
    ),
    "03_duplicate_data": (
        "labs/duplicate_data/programs.py",
        "    sampler.set_epoch(epoch)\n    return DataLoader(data, batch, sampler=sampler)",
        "    return DataLoader(data, batch)",
    ),
    "04_stale_gradients": (
        "labs/stale_gradients/server.py",
        "stop = self._begun >= self._total",
        "stop = self._begun > self._total",
    ),
    "07_input_pipeline": (
        "workloads/scans.py",
        "kept = {i: self._kept(i) for i in indices}",
        "kept = {i: None for i in indices}",
    ),
    "08_crash_recovery": (
        "labs/crash_recovery/keepers.py",
        "self.training.go_on_from(restored.step, restored.shared, restored.own)",
        "self.training.go_on_from(restored.step, restored.shared, None)",
    ),
}


@each
@pytest.mark.ranks
@pytest.mark.timeout(300)
def test_a_package_with_a_fault_is_noticed(path, small_run, tmp_path):
    file, before, after = BREAK[path.stem]
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", tmp_path / "data")
    target = tmp_path / "labkit" / file
    assert before in target.read_text()
    target.write_text(target.read_text().replace(before, after))
    done = nbval(trimmed(small_run(path), tmp_path), package=tmp_path)
    assert done.returncode == 1 and "mismatch 'stdout'" in done.stdout, done.stdout[-4000:]


def test_each_lab_has_small_parameters_for_papermill():
    assert {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs()} == set(SMALL)
