"""What the tests of every exercise share: a machine that is busy."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def busy(request):
    """Both cores busy, and all others: a process for each that never rests, ended by its own handle.

    For the first right answer of a test, and in `make soak` for each; the other workers of `make test` have to bear it.
    """
    call = getattr(request.node, "callspec", None)
    first = call is None or not any(call.indices.values()) or request.node.get_closest_marker("soak")
    cores = (os.cpu_count() or 2) if first else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    yield
    for loop in loops:
        loop.kill()
    for loop in loops:
        loop.wait()
