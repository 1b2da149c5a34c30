"""Where a rank stands, read from its traceback or from the dump of its threads."""

from pathlib import Path

import labkit
from labkit.ranks.stacks import is_program, waits_in, where_raised

PACKAGE = Path(labkit.__file__).parent
TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
HERE = Path(__file__)


def frames(*of_thread: tuple[str | Path, int, str]) -> str:
    return "".join(f'  File "{file}", line {line} in {function}\n' for file, line, function in of_thread)


ENTRY = ((PACKAGE / "ranks/entry.py", 90, "run_program"), (PACKAGE / "ranks/entry.py", 80, "enter"))
BELOW_LABKIT = (("/usr/lib/python3.11/multiprocessing/process.py", 108, "run"),)
WATCHER = "Thread 0x00007f01 (most recent call first):\n" + frames((PACKAGE / "ranks/entry.py", 60, "watch"))


def dump(*inner, entry=ENTRY) -> str:
    return WATCHER + "\nCurrent thread 0x00007f02 (most recent call first):\n" + frames(*inner, *entry, *BELOW_LABKIT)


def test_a_rank_in_a_collective_is_named_by_the_collective_and_the_programs_line():
    collective = (
        (f"{TORCH}/distributed/distributed_c10d.py", 2900, "all_reduce"),
        (f"{TORCH}/distributed/c10d_logger.py", 81, "wrapper"),
        ("train.py", 7, "step"),
        ("train.py", 20, "program"),
    )
    assert waits_in(dump(*collective)) == ("all_reduce", "train.py:7")


def test_what_the_program_called_counts_not_what_that_called():
    deep = (
        (f"{TORCH}/autograd/graph.py", 800, "_engine_run_backward"),
        (f"{TORCH}/autograd/__init__.py", 347, "backward"),
        (f"{TORCH}/_tensor.py", 600, "backward"),
        (PACKAGE / "workloads/loop.py", 50, "train"),
    )
    assert waits_in(dump(*deep)) == ("backward", "labkit/workloads/loop.py:50")


def test_a_program_in_c_code_is_named_by_its_own_function():
    assert waits_in(dump(("train.py", 7, "spin"), ("train.py", 20, "program"))) == ("spin", "train.py:7")


def test_a_cell_and_a_function_that_travelled_are_named_for_the_reader():
    assert waits_in(dump(("/var/folders/ipykernel_12/34.py", 3, "program"))) == ("program", "notebook cell:3")
    assert waits_in(dump(("<dynamic-code>", 3, "program")), origin="mine.py") == ("program", "mine.py:3")


def test_a_rank_that_is_not_in_the_program_has_no_line():
    leaving = ((f"{TORCH}/distributed/distributed_c10d.py", 2200, "destroy_process_group"),)
    assert waits_in(dump(*leaving)) == ("destroy_process_group", None)
    assert waits_in(dump()) == ("labkit", None)


def test_a_dump_without_the_ranks_thread_or_none_at_all_is_unknown():
    assert waits_in(WATCHER) == ("unknown", None)
    assert waits_in("") == ("unknown", None)


def test_a_dump_that_was_cut_is_no_error():
    whole = dump(("train.py", 7, "step"))
    for cut in range(len(whole)):
        waits_in(whole[:cut])


def test_an_error_is_placed_at_the_programs_innermost_line_with_what_it_called():
    try:
        Path("no such file").read_text()
    except OSError as error:
        where, called = where_raised(error.__traceback__)
        line = error.__traceback__.tb_lineno
    assert where.endswith(f"{HERE.name}:{line}") and called == "read_text"


def test_an_error_of_the_program_itself_called_nothing():
    try:
        raise ValueError
    except ValueError as error:
        where, called = where_raised(error.__traceback__)
        line = error.__traceback__.tb_lineno
    assert where.endswith(f"{HERE.name}:{line}") and called is None
    assert where_raised(None) == (None, None)


def test_the_program_is_what_is_neither_torch_nor_python_nor_labkits_machinery():
    assert is_program("train.py") and is_program(str(PACKAGE / "workloads/loop.py"))
    for file in (f"{TORCH}/x.py", str(PACKAGE / "ranks/entry.py"), str(PACKAGE / "record/probe.py"), "<frozen runpy>"):
        assert not is_program(file)
