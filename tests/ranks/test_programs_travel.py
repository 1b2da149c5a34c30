"""How a program reaches its ranks, from wherever it was written; and what is refused before anything starts."""

from __future__ import annotations

import math
import tempfile
import threading
from pathlib import Path

import pytest
import rank_programs as programs

from labkit.errors import UsageError
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks

WITHOUT_A_GUARD = """
import logging, sys, time
from dataclasses import dataclass
from pathlib import Path

logging.basicConfig(level=logging.DEBUG)
print("the script runs", flush=True)

from labkit.ranks.launch import launch

@dataclass
class Config:
    factor: int

def helper(value):
    return value * 10

def program(context):
    import torch, torch.distributed as dist
    total = torch.tensor([context.rank + 1])
    dist.all_reduce(total)
    print("printed by a rank")
    return helper(total.item() * context.task.factor), context.task

for number in range(3):
    folder = Path(sys.argv[0] + f".run{number}")
    folder.mkdir()
    values = launch(program, Config(number), ranks=2, folder=folder).values
    assert values == ((30 * number, Config(number)),) * 2, values
print("done", flush=True)
"""


def test_scripts_without_a_main_guard_run_once_each_also_two_at_a_time(script):
    with tempfile.TemporaryDirectory(prefix="lk") as temporary:  # short: sockets are made in it
        both = [script(WITHOUT_A_GUARD, env={"TMPDIR": temporary}) for _ in range(2)]
        for process in both:
            output, errors = process.communicate(timeout=60)
            assert (output, errors, process.returncode) == ("the script runs\ndone\n", "", 0)
        # torch makes its cache of compiled kernels there, whoever imports it
        assert [path.name for path in Path(temporary).iterdir() if not path.name.startswith("torchinductor_")] == []


def test_a_temporary_folder_too_deep_for_a_socket_is_named_with_the_remedy(script, tmp_path):
    deep = tmp_path / ("deep-" * 20)
    deep.mkdir()
    process = script(WITHOUT_A_GUARD, env={"TMPDIR": str(deep)})
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"too long for a socket in it: {deep}" in errors and "set TMPDIR to a shorter one" in errors


NOTEBOOK_CELLS = """
import torch
def scale(value):
    return value * FACTOR
FACTOR = 7
def program(context):
    return scale(context.rank)
class Model(torch.nn.Module):
    pass
def makes_model(context):
    return type(Model()).__name__
"""


def test_functions_that_no_module_holds_travel_by_value(folder, tmp_path):
    space: dict = {"__name__": "__main__"}
    exec(compile(NOTEBOOK_CELLS, "<ipython-input-1>", "exec"), space)
    assert launch(space["program"], ranks=2, folder=folder).values == (0, 7)
    (tmp_path / "next").mkdir()
    assert launch(space["makes_model"], ranks=1, folder=tmp_path / "next").values == ("Model",)


def test_a_closure_travels_with_what_it_holds(folder):
    offset = 5

    def program(context):
        return context.rank + offset

    assert launch(program, ranks=2, folder=folder).values == (5, 6)


@pytest.mark.parametrize(("program", "config"), [(programs.empty, threading.Lock()), (threading.Lock().acquire, None)])
def test_what_cannot_travel_is_refused_before_anything_starts(folder, program, config):
    with pytest.raises(UsageError, match="cannot be sent to the ranks"):
        launch(program, config, ranks=2, folder=folder)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranks": 0}, "ranks must be a whole number from 1 to 256; given 0"),
        ({"ranks": 257}, "given 257"),
        ({"ranks": 2.0}, "given 2.0"),
        ({"ranks": True}, "given True"),
        ({"ranks": "two"}, "given 'two'"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"max_restarts": -1}, "max_restarts must be a whole number"),
        ({"deadline_s": 0}, "the deadline must be above 0 seconds"),
        ({"deadline_s": -1}, "given -1"),
        ({"deadline_s": math.nan}, "given nan"),
        ({"deadline_s": math.inf}, "given inf"),
        ({"deadline_s": "soon"}, "given 'soon'"),
        ({"program": "train"}, "the program must be a function"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(folder, options, said):
    arguments = {"program": programs.empty, "ranks": 2, "folder": folder, **options}
    with pytest.raises(UsageError, match=said):
        launch(arguments.pop("program"), **arguments)
    assert not list(folder.iterdir())


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not a folder"):
        launch(programs.empty, ranks=2, folder=tmp_path / "nowhere")


def test_a_folder_that_was_used_is_refused(folder):
    launch(programs.empty, ranks=1, folder=folder)
    with pytest.raises(UsageError, match="each launch needs a folder of its own"):
        launch(programs.empty, ranks=1, folder=folder)
