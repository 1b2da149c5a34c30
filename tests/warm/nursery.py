"""Kernels of the tests, forked from one process that has loaded what they import: each would take 6 s of a core for it.

`python nursery.py SOCKET` serves until the last of those who keep it is gone. Jupyter starts `kernel.py`, which asks here
for a kernel and stands for it; the kernel is ipykernel's own, in a process of its own. labkit is imported by each kernel
and each rank itself, as always.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from multiprocessing import connection, forkserver
from typing import Any, NoReturn

LOADED = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "IPython.core.completer", "matplotlib_inline.backend_inline"),
    *("matplotlib.pyplot", "ipywidgets", "anywidget", "nbformat", "comm", "debugpy", "typer", "rich.console", "psutil"),
)
"""Of what kernels load; what ranks load comes from labkit, whose modules are forgotten again."""


class Nursery:
    """Who is connected, and which kernel each stands for (0: it only keeps this process)."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.selector = selectors.DefaultSelector()
        self.kernels: dict[socket.socket, int] = {}

    def serve(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(woken, selectors.EVENT_READ)
        came = False
        while self.kernels or not came:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    came = self._welcome() or came
                elif key.fileobj == woken:
                    os.read(woken, 4096)
                    self._bury()
                elif isinstance(key.fileobj, socket.socket):
                    self._hear(key.fileobj)

    def _welcome(self) -> bool:
        who, _ = self.listener.accept()
        request, fds = received(who)
        if not request:
            who.close()
            return False
        self.kernels[who] = 0
        if "kernel" in request:
            gc.freeze()
            child = os.fork()
            if not child:
                self._become_a_kernel(request, fds)
            self.kernels[who] = child
        for fd in fds:
            os.close(fd)
        self.selector.register(who, selectors.EVENT_READ)
        return True

    def _hear(self, who: socket.socket) -> None:
        """A signal's number to pass on; nothing: whoever stood for the kernel is gone, and it goes too."""
        numbers = b""
        with contextlib.suppress(OSError):
            numbers = who.recv(64)
        for number in numbers or [signal.SIGKILL]:
            if self.kernels[who]:
                with contextlib.suppress(ProcessLookupError):
                    (os.kill if numbers else os.killpg)(self.kernels[who], number)
        if not numbers:
            self._forget(who)

    def _bury(self) -> None:
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not child:
                return
            for who in [who for who, kernel in self.kernels.items() if kernel == child]:
                with contextlib.suppress(OSError):
                    who.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode() + b"\n")
                self._forget(who)

    def _forget(self, who: socket.socket) -> None:
        self.selector.unregister(who)
        del self.kernels[who]
        who.close()

    def _become_a_kernel(self, request: dict[str, Any], fds: list[int]) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            for fd in fds:
                os.close(fd)
            self.selector.close()
            self.listener.close()
            for who in self.kernels:
                who.close()
            os.environ.clear()
            os.environ.update(request["env"] | {"JPY_PARENT_PID": str(os.getppid())})
            os.chdir(request["cwd"])
            sys.path[:0] = [path for path in request["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
            start_ranks_from_here()
            run_kernel(request["kernel"])
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)


def run_kernel(arguments: list[str]) -> None:
    import numpy as np
    from ipykernel import kernelapp

    np.random.seed()  # each kernel its own numbers, as if it had started alone
    sys.argv = ["ipykernel_launcher", *arguments]
    kernelapp.launch_new_instance()


def start_ranks_from_here() -> None:
    """Have this process's warm server, from which ranks are forked, forked in its turn; it becomes what `main` starts."""
    listener = socket.socket(socket.AF_UNIX)
    address = connection.arbitrary_address("AF_UNIX")
    listener.bind(address)
    listener.listen()
    alive_read, alive_write = os.pipe()
    server = os.fork()
    if not server:
        try:
            os.close(alive_write)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as labkit's own server has it
            forkserver.main(listener.detach(), alive_read, [])
        finally:
            os._exit(0)
    listener.close()
    os.close(alive_read)
    own = forkserver._forkserver  # type: ignore[attr-defined]
    own._forkserver_address, own._forkserver_alive_fd, own._forkserver_pid = address, alive_write, server


def received(who: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A line of JSON, and the three streams that came with it."""
    text, fds = b"", array.array("i")
    while not text.endswith(b"\n"):
        part, beside, *_ = who.recvmsg(1 << 16, socket.CMSG_SPACE(3 * fds.itemsize))
        if not part:
            return {}, []
        text += part
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return json.loads(text), list(fds)


def load() -> None:
    from labkit.ranks.forkserver import PRELOAD

    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as ipykernel sets it
    for name in (*LOADED, *PRELOAD):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "labkit"]:
        del sys.modules[name]


def main() -> None:
    load()
    path = sys.argv[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path + ".new")
        listener.listen(64)
        os.rename(path + ".new", path)  # whoever sees it may connect
        try:
            Nursery(listener).serve()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


if __name__ == "__main__":
    main()
