"""The package keeps its shape: who may import whom, one slug for everything of a lab, one curated face."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lessons_without_a_lab import WITHOUT_A_LAB

import labkit
from labkit import labs, showing
from labkit.detect import detector
from labkit.detect import names as detector_names

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "labkit"

ALLOWED = {
    "errors": set(),
    "words": set(),
    "showing": set(),
    "theory": {"errors"},
    "record": {"errors", "theory"},
    "facts": {"errors", "theory", "record"},
    "watch": {"errors", "record"},
    "detect": {"errors", "theory", "record", "facts"},
    "doctor": {"__version__", "errors", "record", "watch", "detect", "ranks", "reading", "results"},
    "plan": {"errors", "theory", "record", "facts", "detect"},
    "classroom": {"errors", "labs", "detect", "record", "reading", "results", "view"},
    "view": {
        "classroom",
        "doctor",
        "errors",
        "theory",
        "record",
        "facts",
        "detect",
        "plan",
        "watch",
        "ranks",
        "labs",
        "results",
    },
    "ranks": {"errors", "record"},
    "workloads": {"errors", "record", "facts", "watch"},
    "labs": {"errors", "theory", "record", "facts", "watch", "detect", "workloads", "ranks"},
    "request": {"errors", "labs", "ranks"},
    "runner": {"__version__", "errors", "labs", "ranks", "record", "watch", "request"},
    "arguments": {"errors"},
    "facade": {"*"},
    "results": {"record", "detect"},
    "report": {"record", "detect"},
    "reading": {"errors", "labs", "record", "detect", "report", "view"},
    "capture": {"errors", "labs", "ranks", "record", "facts", "facade"},
    "bench": {"*"},
    "cli": {"*"},
    "interrupts": set(),
    "__main__": {"cli", "interrupts"},
    "__init__": {"*"},
}
ONLY = {
    # what a rank is given, how many cores there are, and which faults a lab plans
    ("labs", "ranks"): {"ranks.context", "ranks.backend", "ranks.faults"},
    ("workloads", "facts"): {"facts.shipped"},  # where the data lie
    ("classroom", "view"): {"view.picture"},  # what a figure of a mystery is
    ("view", "ranks"): {"ranks.launch", "ranks.progress"},  # the panel's Stop button holds a Control, its bar shows Progress
    ("view", "watch"): {"watch.machine"},  # the machine's name
    ("view", "labs"): {"labs.spec", "labs.opened"},  # what a lab is, to show it, and to run it from the panel
    ("runner", "watch"): {"watch.machine"},
}


def imports_of(path: Path) -> set[str]:
    """Modules of labkit that a file imports, as dotted names below labkit; `if TYPE_CHECKING` counts too."""
    inside = ("labkit", *path.relative_to(PACKAGE).with_suffix("").parts)
    package = inside[:-1]
    found = set()

    def absolute(level: int, module: str) -> str:
        base = package[: len(package) - level + 1] if level else ()
        return ".".join([*base, *module.split(".")]).strip(".")

    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "labkit"}
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.level, node.module or "")
            if module.split(".")[0] == "labkit":
                is_package = (ROOT / module.replace(".", "/")).is_dir()
                found |= {f"{module}.{alias.name}" for alias in node.names} if is_package else {module}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("lazy", "source_of"):
            where = ast.literal_eval(node.args[0]).partition(":")[0]  # loaded at the first call
            found.add(absolute(len(where) - len(where.lstrip(".")), where.lstrip(".")))
    return {name.removeprefix("labkit.") for name in found if name != "labkit"}


def layer(dotted: str) -> str:
    return dotted.split(".")[0]


def offences(path: Path) -> list[str]:
    """What a file imports against the rule."""
    relative = path.relative_to(PACKAGE)
    own = layer(".".join(relative.with_suffix("").parts))
    allowed = ALLOWED[own] | {"words", "arguments", "showing"}
    wrong = []
    for name in imports_of(path):
        target = layer(name)
        if target == own or "*" in allowed or target in ("__version__", "_PUBLIC"):
            continue
        narrowed = ONLY.get((own, target))
        if target not in allowed or (narrowed and not any(name.startswith(n) for n in narrowed)):
            wrong.append(f"{relative} imports {name}")
    return wrong


def test_no_module_imports_against_the_layers():
    found = [offence for path in PACKAGE.rglob("*.py") for offence in offences(path)]
    assert not found


def test_the_layer_rule_can_fail(monkeypatch):
    monkeypatch.setitem(ALLOWED, "detect", set())
    assert offences(PACKAGE / "detect" / "verdict.py")


def test_nobody_imports_the_command_line():
    outside = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "cli"]
    users = {p.name for p in outside if any(layer(name) == "cli" for name in imports_of(p))}
    assert users == {"__main__.py"}


def test_schema_store_and_measures_load_no_torch_and_detectors_draw_nothing():
    code = (
        "import sys, labkit.record.schema, labkit.record.store, labkit.detect.reads.measures, labkit.detect as d\n"
        "[d.detector(n) for n in d.names()]\n"
        "print([m for m in ('torch', 'matplotlib', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_noun_shows_itself_though_nobody_imported_the_view():
    code = (
        "import sys\n"
        "from labkit.record.table import Table\n"
        "before = [name for name in sys.modules if name.startswith('labkit.view')]\n"
        "print(before, Table('what it is', ('a',), (('b',),))._repr_html_())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <div") and "what it is" in done.stdout


def test_every_class_that_shows_itself_has_a_look_of_its_own():
    """Found in the source: a class below the view whose `_repr_html_` is `as_html`, or calls it."""
    importlib.import_module("labkit.view.nouns")
    shown = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and "_repr_html_ = as_html" in map(ast.unparse, node.body):
                module = importlib.import_module("labkit." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts))
                shown.append(getattr(module, node.name))
    assert len(shown) >= 9
    for noun in shown:
        assert noun in showing.look.registry, noun
    with pytest.raises(NotImplementedError, match="what a int looks like"):
        showing.as_html(3)


def test_importing_labkit_and_listing_labs_load_no_torch():
    code = "import sys, labkit, labkit.labs; labkit.labs.specs(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_exists_and_every_other_is_refused_with_the_list():
    for name in labkit.__all__:
        assert getattr(labkit, name) is not None
    try:
        labkit.no_such_name  # noqa: B018
    except AttributeError as error:
        assert "no_such_name" in str(error) and "lab" in str(error)
    else:
        raise AssertionError("an unknown name was found")


def test_each_lab_has_its_folder_its_notebook_and_its_test_under_one_slug():
    for spec in labs.specs():
        name = spec.slug.replace("-", "_")
        assert (PACKAGE / "labs" / name / "__init__.py").is_file()
        assert (ROOT / "notebooks" / f"{spec.number:02d}_{name}.ipynb").is_file()
        assert (ROOT / "tests" / "labs" / f"test_{name}.py").is_file()


def test_each_notebook_belongs_to_a_lab_or_is_known_to_have_none():
    expected = {f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs()} | set(WITHOUT_A_LAB)
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == expected


def test_each_lab_that_has_variants_has_broken_first_and_fixed():
    for spec in labs.specs():
        names = [variant.name for variant in spec.variants]
        assert not names or (names[0] == "broken" and "fixed" in names and len(set(names)) == len(names))


def test_each_lab_names_detectors_that_exist():
    for spec in labs.specs():
        assert set(spec.detectors) <= set(detector_names())


def test_each_detector_says_its_own_name_and_a_question():
    for name in detector_names():
        module = importlib.import_module(detector(name).__module__)
        assert name == module.NAME
        assert module.QUESTION.endswith("?")


def test_the_project_names_no_path_of_a_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pattern = re.compile(r"/(?:root|work|home/\w+|Users/\w+)/|/tmp/\w+/")
    text = {".py", ".md", ".toml", ".txt", ".yml", ".sh", ".ipynb"}
    hits = [
        f"{name}: {match.group()}"
        for name in tracked
        if Path(name).suffix in text and Path(name) != Path(__file__).relative_to(ROOT) and (ROOT / name).exists()
        for match in pattern.finditer((ROOT / name).read_text())
    ]
    assert not hits


def test_questions_are_asked_and_answered_in_functions_that_one_can_take_in():
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": length
        for path in (PACKAGE / "detect").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (length := (node.end_lineno or 0) - node.lineno + 1) > 40
    }
    assert not long


def test_modules_stay_small():
    long = {str(p.relative_to(ROOT)): n for p in PACKAGE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 420}
    assert not long
