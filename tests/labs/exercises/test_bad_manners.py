"""Functions of learners that raise, hang, print, return nothing, end their process or leave others: a sentence each.

Each is asked once in a process of its own, and once on a group of ranks.
"""

import os
import subprocess
import sys
import time

import psutil
import pytest

import labkit
from labkit.errors import LabkitError
from labkit.labs.checking import call_each

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(200)]
ALONE, GROUP = labkit.lab("zero-stages"), labkit.lab("overlap")


def raises(*_):
    raise KeyError("the third layer")


def prints(*_):
    for _ in range(20_000):
        print("x" * 100)


def ends(*_):
    os._exit(3)


def leaves(*_):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # left behind"])


SAYS = {
    raises: ("KeyError", "the third layer"),
    prints: ("returned", "None"),
    ends: ("did not", "3"),
    leaves: ("None",),
}


def left_behind():
    return [one.pid for one in psutil.process_iter(["cmdline"]) if "left behind" in " ".join(one.info["cmdline"] or [])]


@pytest.mark.parametrize("function", SAYS, ids=lambda function: function.__name__)
@pytest.mark.parametrize(("lab", "exercise"), [(ALONE, None), (GROUP, "bucketed-ddp")], ids=["alone", "group"])
def test_what_went_wrong_is_one_sentence_and_nothing_is_left(lab, exercise, function, capfd):
    if exercise:
        adapted = {"raises": lambda a, b: raises(), "prints": lambda a, b: prints(), "ends": lambda a, b: ends()}
        asked = adapted.get(function.__name__, lambda a, b: leaves())
    else:
        asked = function
    result = lab.check(asked, exercise, seed=3)
    assert len(result.findings) == 1 and len(result.findings[0]) < 1500
    for word in SAYS[function] if not (exercise and function in (prints, leaves)) else ("NoneType",):
        assert word in result.findings[0]
    assert "xxxx" not in capfd.readouterr().out
    until = time.monotonic() + 20
    while left_behind() and time.monotonic() < until:
        time.sleep(0.1)
    assert not left_behind()


def test_one_that_hangs_is_ended_and_the_line_where_it_stood_is_named():
    def hangs(*_):
        while True:
            time.sleep(0.1)

    with pytest.raises(LabkitError, match=r"(?s)rank 0.*hangs|test_bad_manners"):
        ALONE.try_out(call_each, (hangs, (labkit_question(),)), deadline_s=1.0)


def labkit_question():
    from labkit.labs.checking import Question

    return Question("a case", ())


def test_one_that_cannot_travel_is_said_so():
    lock = __import__("threading").Lock()
    result = ALONE.check(lambda case: lock)
    assert len(result.findings) == 1 and "travel" in result.findings[0]
