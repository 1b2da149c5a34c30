"""What these tests share beside fixtures."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path

import psutil

from labkit.ranks import forkserver

# Inherited by all that these tests start, however far down and whoever its parent has become. A process that was
# forked shows the environment of the program that it was forked from: so it is set before any server starts.
MARK, MARK_VALUE = "LABKIT_TEST_SESSION", uuid.uuid4().hex
os.environ[MARK] = MARK_VALUE

ROOT = Path(__file__).resolve().parents[2]


def foreground() -> None:
    """Run in a new process before its program: a shell that puts the tests into the background has them ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ours() -> dict[int, str]:
    """Processes that descend from this session and run: pid -> command, but for the servers that are kept."""
    kept = {os.getpid(), forkserver.server_pid(), resource_tracker._resource_tracker._pid}
    found = {}
    for process in [*psutil.Process().children(recursive=True), *psutil.process_iter()]:
        with contextlib.suppress(psutil.Error):
            if process.pid in kept or process.status() == psutil.STATUS_ZOMBIE:
                continue
            parents = [parent.pid for parent in process.parents()]
            if os.getpid() in parents or process.environ().get(MARK) == MARK_VALUE:
                found[process.pid] = " ".join(process.cmdline())[:100]
    return found


def wait_until(condition: Callable[[], object], *, within_s: float = 20.0, what: str = "") -> None:
    """Wait for a condition; a generous bound, to end a test that would otherwise hang."""
    patience = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < patience, f"not within {within_s} s: {what or condition}"
        time.sleep(0.01)
