"""Other programs that keep the cores busy, as on a machine that does something else as well."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from labkit.ranks.backend import usable_cores

SPIN = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:  # ends with the test, however that ends
    for _ in range(2_000_000):
        pass
"""


@contextmanager
def busy_cores() -> Iterator[list[int]]:
    """One busy process a core while the block lasts; gives their ids, and ends them whatever the block does."""
    started = []
    try:
        for _ in range(usable_cores()):
            started.append(subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())], stdin=subprocess.DEVNULL))
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
