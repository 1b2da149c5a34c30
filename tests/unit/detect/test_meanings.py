"""Each measure that a person sees has a meaning in a few words."""

import ast
from pathlib import Path

import pytest

import labkit
from labkit import detect, labs
from labkit.detect import meanings
from labkit.detect.meanings import meaning_of
from labkit.reading import reading_of

from .. import crash_records, input_runs, script_files, zero_runs
from ..builders import record_of, run_of

FOLDER = Path(detect.__file__).parent


def test_each_measure_that_a_lab_puts_first_has_a_meaning():
    for spec in labs.specs():
        assert spec.main_measures and len(set(spec.main_measures)) == len(spec.main_measures), spec.slug
        assert not [name for name in spec.main_measures if not meaning_of(name)], spec.slug


def named_in(function: ast.FunctionDef) -> set[str]:
    """Names that a function gives to quantities: `found[NAME] = …`, and `{NAME: Quantity(…)}`."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            keys = [target.slice for target in node.targets if isinstance(target, ast.Subscript)]
        elif isinstance(node, ast.Dict):
            made = ("Quantity", "share", "_ms")
            keys = [key for key, value in zip(node.keys, node.values, strict=True) if called(value) in made]
        else:
            continue
        names |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return names


def called(value: ast.expr) -> str:
    return getattr(value.func, "id", "") if isinstance(value, ast.Call) else ""


def measures_of(slug: str) -> tuple[Path, str]:
    """The file and the function that a lab's spec names as its measures."""
    source = Path(labs.__file__).parent / slug.replace("-", "_") / "__init__.py"
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "measures" and isinstance(node.value, ast.Call):
            module, _, function = ast.literal_eval(node.value.args[0]).partition(":")
            return FOLDER / (module.removeprefix("...detect.").replace(".", "/") + ".py"), function
    raise AssertionError(f"{source} names no measures")


@pytest.mark.parametrize("slug", labs.slugs())
def test_each_name_that_the_source_of_a_labs_measures_gives_has_a_meaning(slug):
    """In the functions of that file which the lab's own one reaches."""
    path, start = measures_of(slug)
    functions = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    reached, more = set(), [start]
    while more:
        one = more.pop()
        if one in functions and one not in reached:
            reached.add(one)
            more += [node.id for node in ast.walk(functions[one]) if isinstance(node, ast.Name)]
    given = set().union(*(named_in(functions[one]) for one in reached))
    assert given
    assert not sorted(each for each in given if not meaning_of(each))


def test_each_measure_of_the_records_at_hand_has_a_meaning(tmp_path):
    records = [
        record_of(run_of([[[[0, 1]], [[0, 1]]]], dataset_size=2, batch_size=2)),
        crash_records.crash_record(crash_records.saved_and_resumed(), crash_records.uninterrupted()),
        zero_runs.record(zero_runs.run_with(), cheaper=zero_runs.cheaper_run()),
        input_runs.record(input_runs.steady(3, 5, ranks=2), ready=input_runs.steady(0, 5, role="ready")),
        labkit.read_record(script_files.write(tmp_path, "reads and loss")),
    ]
    seen = {name for record in records for name in reading_of(record).measures}
    assert len(seen) > 20
    assert not sorted(name for name in seen if not meaning_of(name))


def test_a_measure_that_nobody_declared_has_none_and_a_pattern_gives_way_to_a_name():
    assert meaning_of("never_heard_of") == ""
    assert meaning_of("ddp_step_time") == meaning_of("step_time") != meaning_of("ddp_step_time_fast")
    assert meaning_of("matmul_bf16") and meaning_of("matmul_bf16_spread") != meaning_of("matmul_bf16")


def test_two_topics_that_mean_different_things_by_one_name_are_refused(monkeypatch):
    import labkit.detect.input.meanings as of_input

    monkeypatch.setitem(of_input.MEANINGS, "step_time", "something else")
    meanings.meanings.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="means something else by the measure 'step_time'"):
            meanings.meanings()
    finally:
        meanings.meanings.cache_clear()
