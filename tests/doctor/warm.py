"""Ranks of a script under the doctor, forked from a server that has torch loaded: the same as new interpreters, sooner."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from typing import Any

from labkit.doctor import diagnosis, launch
from labkit.ranks import forkserver


class Forked:
    """A rank's process, with the methods of `subprocess.Popen` that the doctor's launcher uses."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid: int = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("rank", timeout or 0.0)
        return self._process.exitcode


def start(arguments: list[str], environment: dict[str, str]) -> Forked:
    """Take the place of `launch.start`."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_rank, args=(arguments, environment, os.getcwd()))
    with forkserver.starting_ranks():
        process.start()
    return Forked(process)


def always() -> None:
    """Have whatever is examined in this process started so."""
    assert diagnosis.examine.__kwdefaults__["start"] in (launch.start, start)
    diagnosis.examine.__kwdefaults__["start"] = start


def _rank(arguments: list[str], environment: dict[str, str], cwd: str) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    # how a new interpreter starts the workers of a loader; a process of a server would go on with the server's way
    multiprocessing.set_start_method(multiprocessing.get_all_start_methods()[0], force=True)
    from labkit.doctor import rank

    try:
        code = rank.main(arguments)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)
