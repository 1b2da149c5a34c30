"""environment.yml = pyproject.toml = constraints.txt = what is installed here.

Each rule is a pure function that returns its complaints. It is applied to the real files, and to files that drifted.
"""

import copy
import importlib.metadata
import re
import sysconfig
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))

CONDA_PACKAGES = {"python", "make", "git", "pip"}
PIP_LINES = ["-c constraints.txt", "-e .[dev]"]
UNPINNED = {"pip", "setuptools"}  # tools that every environment brings at a version of its own


# ---- The rules


def requirements(project: dict, *extras: str) -> list[Requirement]:
    """What pyproject.toml declares itself, with the extras named."""
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


def beside_dev(project: dict) -> list[Requirement]:
    """What the extras declare that not everybody installs."""
    extras = project["optional-dependencies"]
    return [Requirement(line) for extra in sorted(extras) if extra != "dev" for line in extras[extra]]


def pin_lines(constraints: str) -> list[str]:
    return [line for line in constraints.splitlines() if line.strip() and not line.startswith("#")]


def pins(constraints: str) -> dict[str, Version]:
    pairs = (line.partition("==") for line in pin_lines(constraints))
    return {canonicalize_name(name): Version(version) for name, _, version in pairs}


def form_complaints(constraints: str) -> list[str]:
    """A pin is `name==version`: no local version (+cpu), no hash, no URL, no marker, no name twice."""
    lines = pin_lines(constraints)
    complaints = [f"not name==version: {line}" for line in lines if not re.fullmatch(r"[\w.-]+==\d[\w.]*", line)]
    names = [canonicalize_name(re.split(r"\W*[=<>@ ]", line)[0]) for line in lines]
    return complaints + [f"pinned twice: {name}" for name in sorted({name for name in names if names.count(name) > 1})]


def range_complaints(declared: Iterable[Requirement], pinned: dict[str, Version]) -> list[str]:
    """Every declared package is pinned, at a version that its range allows."""
    complaints = []
    for requirement in declared:
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None:
            complaints.append(f"not pinned: {requirement.name}")
        elif version not in requirement.specifier:
            complaints.append(f"pinned outside its range: {requirement.name} {version}, not {requirement.specifier}")
    return complaints


def environment_complaints(environment: dict, project: dict) -> list[str]:
    """conda brings Python and tools only, pip the rest as pyproject.toml says, and the Python ranges agree."""
    complaints = []
    if environment["name"] != project["name"]:
        complaints.append(f"environment is called {environment['name']}")
    conda = [Requirement(entry) for entry in environment["dependencies"] if isinstance(entry, str)]
    if {requirement.name for requirement in conda} != CONDA_PACKAGES:
        complaints.append(f"conda packages: {sorted(requirement.name for requirement in conda)}")
    pip = [line for entry in environment["dependencies"] if isinstance(entry, dict) for line in entry["pip"]]
    if pip != PIP_LINES:
        complaints.append(f"pip lines: {pip}")
    from_conda = next((r.specifier for r in conda if r.name == "python"), SpecifierSet())
    allowed, floor = SpecifierSet(project["requires-python"]), Version(project["requires-python"].removeprefix(">="))
    minors = [Version(f"3.{minor}") for minor in range(6, 30)]
    if floor not in from_conda or any(minor in from_conda and minor not in allowed for minor in minors):
        complaints.append(f"python {from_conda} from conda, {allowed} in pyproject.toml")
    return complaints


def installed_complaints(
    declared: Iterable[Requirement], pinned: dict[str, Version], installed: dict[str, Version]
) -> list[str]:
    """What is installed is what was pinned; a local version (2.13.0+cpu) is a build of it."""
    complaints = []
    for name in (canonicalize_name(requirement.name) for requirement in declared):
        version = installed.get(name)
        if version is None:
            complaints.append(f"not installed: {name}")
        elif Version(version.public) != pinned.get(name):
            complaints.append(f"installed {name} {version}, pinned {pinned.get(name)}")
    return complaints


def closure_complaints(
    declared: Iterable[Requirement], pinned: dict[str, Version], needs: dict[str, list[str]]
) -> list[str]:
    """What the declared packages need in turn is pinned too, but for what only some platforms or versions need."""
    complaints, todo, seen = set(), [(r, canonicalize_name(r.name)) for r in declared], set()
    while todo:
        requirement, name = todo.pop()
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        if name not in pinned and name not in UNPINNED:
            complaints.add(f"not pinned: {name}")
        for needed in map(Requirement, needs.get(name, [])):
            if str(needed.marker or "") in {"", *(f'extra == "{extra}"' for extra in requirement.extras)}:
                todo.append((needed, canonicalize_name(needed.name)))
    return sorted(complaints)


# ---- The files, as they are


@pytest.fixture(scope="module")
def distributions() -> dict[str, importlib.metadata.Distribution]:
    # by folder: setuptools, once something imports it, shows copies of packages that it carries for itself
    folders = [sysconfig.get_paths()["purelib"], str(ROOT)]
    return {canonicalize_name(d.metadata["Name"]): d for d in importlib.metadata.distributions(path=folders)}


def test_constraints_are_plain_pins():
    assert form_complaints(CONSTRAINTS) == []


def test_every_declared_dependency_is_pinned_within_its_range():
    assert range_complaints(requirements(PROJECT, *PROJECT["optional-dependencies"]), pins(CONSTRAINTS)) == []


def test_environment_yml_agrees_with_pyproject():
    assert environment_complaints(ENVIRONMENT, PROJECT) == []


def test_this_environment_has_the_pinned_versions(distributions):
    installed = {name: Version(distribution.version) for name, distribution in distributions.items()}
    declared = requirements(PROJECT, "dev")
    # by `make bench` and `make setup-frameworks`
    declared += [r for r in beside_dev(PROJECT) if canonicalize_name(r.name) in installed]
    assert installed_complaints(declared, pins(CONSTRAINTS), installed) == []


def test_what_the_dependencies_need_in_turn_is_pinned_too(distributions):
    needs = {name: distribution.requires or [] for name, distribution in distributions.items()}
    declared = requirements(PROJECT, "dev")
    declared += [r for r in beside_dev(PROJECT) if canonicalize_name(r.name) in needs]
    assert closure_complaints(declared, pins(CONSTRAINTS), needs) == []


def test_the_files_name_no_package_index():
    """Where packages come from is the reader's affair: pip's own settings say it."""
    for name in ("pyproject.toml", "constraints.txt", "environment.yml", "Makefile", "scripts/setup.sh", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"--(extra-)?index-url|--find-links|--trusted-host|\bpypi\b", text), name


# ---- The rules, on files that drifted


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("torch==2.13.0+cpu", "not name==version"),
        ("numpy==2.4.6 --hash=sha256:00", "not name==version"),
        ("numpy @ https://example.org/numpy.whl", "not name==version"),
        ("numpy>=2", "not name==version"),
        ("numpy==2.4.6\nNumPy==2.4.5", "pinned twice: numpy"),
    ],
)
def test_a_pin_of_another_form_is_noticed(line, complaint):
    assert [c for c in form_complaints(f"# a comment\n{line}\n") if c.startswith(complaint)]


def test_a_missing_pin_and_one_outside_its_range_are_noticed():
    declared = [Requirement("torch>=2.9,<3"), Requirement("PyYAML"), Requirement("numpy")]
    assert range_complaints(declared, pins("torch==2.8.1\npyyaml==6.0.4\n")) == [
        "pinned outside its range: torch 2.8.1, not <3,>=2.9",
        "not pinned: numpy",
    ]


@pytest.mark.parametrize(
    ("drift", "complaint"),
    [
        (lambda e: e.update(name="other"), "environment is called other"),
        (lambda e: e["dependencies"].insert(0, "pytorch>=2.9"), "conda packages"),
        (lambda e: e["dependencies"].remove("git"), "conda packages"),
        (lambda e: e["dependencies"][-1]["pip"].append("numpy"), "pip lines"),
        (lambda e: e["dependencies"][-1]["pip"].remove("-c constraints.txt"), "pip lines"),
        (lambda e: e["dependencies"].__setitem__(0, "python>=3.12,<3.14"), "python"),
        (lambda e: e["dependencies"].__setitem__(0, "python>=3.10,<3.14"), "python"),
    ],
)
def test_an_environment_yml_that_drifted_is_noticed(drift, complaint):
    environment = copy.deepcopy(ENVIRONMENT)
    drift(environment)
    assert [c for c in environment_complaints(environment, PROJECT) if c.startswith(complaint)]


def test_a_raised_python_floor_in_pyproject_is_noticed():
    assert environment_complaints(ENVIRONMENT, PROJECT | {"requires-python": ">=3.12"})


def test_another_installed_version_is_noticed_and_a_build_of_the_same_is_not():
    declared = [Requirement(name) for name in ("torch", "numpy", "rich")]
    installed = {"torch": Version("2.13.0+cpu"), "numpy": Version("2.4.5")}
    assert installed_complaints(declared, pins("torch==2.13.0\nnumpy==2.4.6\nrich==15.0.0\n"), installed) == [
        "installed numpy 2.4.5, pinned 2.4.6",
        "not installed: rich",
    ]


def test_an_unpinned_dependency_of_a_dependency_is_noticed_unless_only_some_platforms_need_it():
    needs = {
        "a": ["b[fast]>=1", "setuptools", "docs-only; extra == 'docs'", "linux-only; platform_system == 'Linux'"],
        "b": ["c; extra == 'fast'", "d; extra == 'slow'"],
    }
    assert closure_complaints([Requirement("a")], pins("a==1\n"), needs) == ["not pinned: b", "not pinned: c"]
