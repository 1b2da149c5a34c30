"""Every public function names the argument that is of the wrong kind; a new parameter is tried without an edit here."""

import inspect

import pytest

import labkit
from labkit.arguments import words_of
from labkit.errors import LabkitError
from labkit.labs.spec import LabSpec

from .builders import record_of, run_of

WRONG = ("2", 5, 2.5, True, None, ["x"], {"a": 1}, b"x", object(), float("nan"))
METHODS = ("run", "judge", "measures", "tables", "compare", "try_out", "figure", "diff", "report", "invariants", "check")
FUNCTIONS = ("lab", "judge", "read", "read_record", "read_baseline", "Lab", "Fault")


class Reached(Exception):
    """The arguments were taken, and the work would begin."""


def functions():
    for name in FUNCTIONS:
        yield name, getattr(labkit, name)
    for name in METHODS:
        yield f"Lab.{name}", getattr(labkit.lab("duplicate-data"), name)


def good(record):
    """An argument for each parameter that has no default."""
    return {
        "slug": "duplicate-data", "spec": labkit.lab("overlap").spec, "record": record, "folder": "nowhere", "kind": "kill",
        "rank": 0, "step": 0, "name": "loss", "program": print, "task": None, "function": print, "records": record,
    }  # fmt: skip


def cases():
    for name, function in functions():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is not parameter.VAR_KEYWORD:
                for at, value in enumerate(WRONG):
                    yield pytest.param(function, parameter, value, id=f"{name}-{parameter.name}-{at}")


@pytest.fixture
def nothing_runs(monkeypatch, tmp_path):
    def reached(*_, **__):
        raise Reached

    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr("labkit.runner.store.new_folder", reached)
    monkeypatch.setattr("labkit.facade.launch", reached)


@pytest.mark.parametrize(("function", "parameter", "value"), list(cases()))
def test_an_argument_of_the_wrong_kind_is_named(function, parameter, value, nothing_runs):
    record = record_of(run_of([[[[0, 1]], [[0, 1]]]]))
    known, positional, words = good(record), [], {}
    parameters = inspect.signature(function).parameters.values()
    several = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    for each in parameters:
        if each.name == parameter.name or (each.default is each.empty and each.kind is not each.VAR_KEYWORD):
            given = value if each.name == parameter.name else known[each.name]
            if several and each.kind is not each.KEYWORD_ONLY:
                positional.append(given)
            else:
                words[each.name] = given
    try:
        function(*positional, **words)
    except LabkitError as error:
        assert str(error)
    except Reached:
        pass


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"hosts": "2"}, "hosts must be a whole number or None; given '2', which is of type str"),
        ({"record_dir": 5}, "record_dir must be a path, text or None; given 5, which is of type int"),
        ({"faults": ["x"]}, "faults must be a list, each of it a Fault; given ['x'], which is of type list"),
        ({"faults": 5}, "faults must be a list"),
        ({"control": "x"}, "control must be a Control or None; given 'x'"),
        ({"on_progress": 1}, "on_progress must be a function or None; given 1"),
        ({"deadline_s": "soon"}, "deadline_s must be a number; given 'soon'"),
        ({"emulate_link": "no"}, "emulate_link must be True or False; given 'no'"),
        ({"device": 1}, "device must be text or None; given 1"),
        ({"ranks": "2"}, "ranks must be a whole number from 1 to"),
        ({"seed": 1.5}, "seed must be a whole number from 0 to"),
        ({"record_dir": "a\0b"}, "cannot make the record folder a␀b"),
    ],
)
def test_run_says_what_was_expected_and_what_was_given(words, said):
    with pytest.raises(LabkitError) as caught:
        labkit.lab("duplicate-data").run(**words)
    assert said in str(caught.value)


def test_kinds_are_said_in_words():
    assert words_of(int | None) == "a whole number or None"
    assert words_of(LabSpec) == "a LabSpec"
