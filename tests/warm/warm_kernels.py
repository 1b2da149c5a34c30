"""Have Jupyter start its kernels warm, for the time that tests of notebooks run."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE_S = 120.0
LONGEST = 100
"""Bytes of a socket's path, less what is added to it for a moment."""


@contextlib.contextmanager
def warm_kernels(folder: Path) -> Iterator[Path]:
    """The folder for JUPYTER_PATH in which the kernel "python3" is a warm one. *Called on* each worker of a session.

    Args:
        folder: one that all workers share.
    """
    path = folder / "nursery"
    if len(os.fsencode(path)) > LONGEST:
        yield folder  # which has no kernels: Jupyter's own are started
        return
    with FileLock(folder / "nursery.lock"):
        kept = connected(path) or started(path)
    spec = folder / f"jupyter-{os.getpid()}" / "kernels" / "python3"
    spec.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-I", "-S", str(HERE / "kernel.py"), str(path), "-f", "{connection_file}"]
    told = {"argv": argv, "display_name": "Python 3 (ipykernel)", "language": "python", "metadata": {"debugger": True}}
    (spec / "kernel.json").write_text(json.dumps(told))
    try:
        yield spec.parents[1]
    finally:
        kept.close()


def connected(path: Path) -> socket.socket | None:
    """A connection that keeps the nursery there."""
    keeper = socket.socket(socket.AF_UNIX)
    try:
        keeper.connect(str(path))
        keeper.sendall(b'{"keep": true}\n')
        return keeper
    except OSError:
        keeper.close()
        return None


def started(path: Path) -> socket.socket:
    log = path.with_suffix(".log").open("a")
    nursery = subprocess.Popen(
        [sys.executable, str(HERE / "nursery.py"), str(path)],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    log.close()
    patience = time.monotonic() + PATIENCE_S
    while time.monotonic() < patience and nursery.poll() is None:
        if (keeper := connected(path)) is not None:
            nursery.returncode = 0  # it ends by itself, when nobody keeps it any more
            return keeper
        time.sleep(0.02)
    nursery.kill()
    raise AssertionError(f"no nursery for kernels: {path.with_suffix('.log').read_text()}")
