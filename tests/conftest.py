"""CUDA is hidden from every test but those marked `gpu`, which run with --gpu only, on a machine that has one."""

import os
import re
import sys

import pytest

from labkit.ranks import forkserver

pytest.register_assert_rewrite("lab_cases")  # they assert what a lesson says

# The package stays as it is while tests run: ranks are forked with it, in place of each importing it. Kernels and
# commands of the tests have servers of their own, without it, as users have.
forkserver.PRELOAD = (*forkserver.PRELOAD, "labkit.ranks.entry", "labkit.watch", "labkit.doctor.rank")

# jsonschema would load a grammar for one more format of its own: 1.5 s of each worker, for addresses that no test checks.
sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]

# Workers share the cores: a thread that waits for its turn by spinning takes it from those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if not os.environ.get("LABKIT_TEST_GPU"):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="run the tests that need a GPU, and those alone")


# The slow ones first, so that workers end together.
ORDER = ("notebooks", "browser", "exercises", "slides", "labs", "doctor", "claims", "ranks", "cli", "meta", "unit")


def group_of(nodeid: str) -> str:
    """What one worker runs together: a file, whose tests share records; where tests are named after lessons, a lab.

    Answers to exercises are checked one by one, and so are scripts under the doctor: they share nothing, and wait.
    """
    file, _, test = nodeid.partition("::")
    lesson = re.search(r"[\[-](\d\d_\w+)", test)
    if "/exercises/" in file or file.startswith("tests/doctor/"):
        return nodeid
    return f"{file} {lesson[1]}" if lesson else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadscope` with these groups, in the order of the tests, so that the slow ones start first."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    places = {folder: place for place, folder in enumerate(ORDER)}
    items.sort(key=lambda item: min((places[part] for part in item.path.parts if part in places), default=len(ORDER)))
    wanted = config.getoption("--gpu")
    for item in items:
        if item.get_closest_marker("gpu") and not wanted:
            item.add_marker(pytest.mark.skip(reason="needs a GPU: LABKIT_TEST_GPU=1 pytest --gpu"))
        elif wanted and not item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="--gpu runs the tests that need one, and those alone"))
