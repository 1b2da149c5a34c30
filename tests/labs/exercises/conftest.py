"""What the tests of every exercise share: a machine that is busy."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def busy():
    """Both cores busy, and all others: a process for each that never rests, ended by its own handle."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 2)]
    yield
    for loop in loops:
        loop.kill()
    for loop in loops:
        loop.wait()
