"""Start ranks warm: a forkserver that has torch loaded, started once and kept.

`fork` hangs from the second launch on (the parent has threads by then); `spawn` pays the import of torch in every rank.
labkit's own modules are not among what it loads, so that an edit of labkit counts in the next run.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker, spawn

from ..errors import LaunchError

PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.checkpoint",
    "torch.distributed.optim",
    "torch.nn.parallel",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.flop_counter",
    "numpy",
    "msgspec",
    "xxhash",
    "cloudpickle",
    "platformdirs",
)

_lock = threading.Lock()
_hidden = threading.local()
# the standard library's function, also when this module is loaded a second time
_preparation_data = getattr(spawn.get_preparation_data, "replaces", spawn.get_preparation_data)


def warm() -> None:
    """Start the forkserver if it is not running. Returns at once; the first launch waits for what is left.

    CUDA is never initialised in it: a context does not survive a fork.

    Raises:
        LaunchError: the path of the folder for temporary files is too long for the server's socket.
    """
    with _lock:
        mp.set_forkserver_preload(list(PRELOAD))
        with _without_main(), _interrupts_held_back():
            try:
                forkserver.ensure_running()
            except OSError as error:
                if "too long" not in str(error):
                    raise
                where = tempfile.gettempdir()
                raise LaunchError(
                    f"the path of the temporary folder is too long for a socket in it: {where}; "
                    "set TMPDIR to a shorter one and start again"
                ) from error


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Have what this thread starts begin with SIGINT blocked.

    A terminal's Ctrl-C, and a notebook's interrupt, reach the server too. It ignores them once it serves; while it loads
    torch they would end it, with a traceback. A rank unblocks the signal when it has chosen to ignore it.
    """
    resource_tracker.ensure_running()  # which unblocks the signal when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def server_pid() -> int:
    """The forkserver's process, 0 while there is none."""
    return forkserver._forkserver._forkserver_pid or 0  # pyright: ignore[reportAttributeAccessIssue]


def kill_server(pid: int) -> None:
    """Kill a forkserver that does not answer; the next launch starts another."""
    if pid and pid == server_pid():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide `__main__` from processes that this thread starts.

    Otherwise each rank would execute the caller's script again, and one without a main guard would launch itself.
    Programs defined in `__main__` travel by value instead.
    """
    spawn.get_preparation_data = _preparation_data_without_main
    _hidden.on = True
    try:
        yield
    finally:
        _hidden.on = False


def _preparation_data_without_main(name: str) -> dict:
    data = _preparation_data(name)
    if getattr(_hidden, "on", False):
        data.pop("init_main_from_path", None)
        data.pop("init_main_from_name", None)
    return data


_preparation_data_without_main.replaces = _preparation_data  # pyright: ignore[reportFunctionMemberAccess]


@contextlib.contextmanager
def starting_ranks() -> Iterator[None]:
    """Context in which the elastic agent starts its processes: a warm server, `__main__` hidden."""
    warm()
    with _without_main():
        yield
