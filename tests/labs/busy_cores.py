"""Other programs that keep the cores busy, as on a machine that does something else as well."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from labkit.ranks.backend import usable_cores

SPIN = """
import os, sys
for other in range(int(sys.argv[2])):
    if os.fork() == 0:
        break
else:
    sys.exit()  # so that they are nobody's children, and no launch counts them as its own
os.write(1, b"%d\\n" % os.getpid())  # in one piece: numbers that run together would be nobody's, and never ended
os.close(1)
while True:
    os.kill(int(sys.argv[1]), 0)  # ends with the test, however that ends
    for _ in range(2_000_000):
        pass
"""


def runs(pid: int) -> bool:
    """Whether a process is there that has not ended."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def cores_that_rest() -> int:
    """How many cores the other workers of this session leave; a worker that runs alone has them all to itself."""
    others = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) - 1
    return max(0, usable_cores() - others)


@contextmanager
def busy_cores(count: int | None = None) -> Iterator[list[int]]:
    """Busy processes while the block lasts; gives their ids, and ends them whatever the block does.

    Args:
        count: how many; None for one on each core that the other workers of this session do not keep busy already.
    """
    command = [sys.executable, "-c", SPIN, str(os.getpid()), str(cores_that_rest() if count is None else count)]
    told = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
    pids = [int(word) for word in told.split()]
    try:
        yield pids
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(runs(pid) for pid in pids):
            time.sleep(0.01)
