"""Ranks that a script starts by itself: with torch.multiprocessing.spawn, Process, torchrun in a subprocess, or a library.

A process of the script's is known for a rank when it joins a process group. From then on it is watched, and writes a file
of its own beside that of the process that started it; once all have ended the files are put in the order of the ranks.
A forked one drops the watch that it was born with only then: most of them load data.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..record.probe import Probe
from ..watch.outside.attach import Attached
from . import alone
from .alone import FOLDER
from .arming import arm

STEPS = "LABKIT_DOCTOR_STEPS"
"""With `FOLDER`, variables of the environment that a script's processes inherit: after how many steps to end."""

_HOOK = Path(__file__).resolve().parent / "hook"
STACK, PLACE = ".stack", ".place"
"""Suffixes of the files beside a rank's record: the stacks of its threads, and which rank it is."""


@dataclass
class _Own:
    """What watches this process, if anything does."""

    attached: Attached | None = None
    pid: int = 0


_own = _Own()


def stacks(folder: Path) -> list[Path]:
    """The files into which ranks that the script started write the stacks of their threads when they are asked to."""
    return list(folder.glob("child-*" + STACK))


def ask_where_they_stand(folder: Path) -> None:
    """Ask each of them that still runs."""
    for path in stacks(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            os.kill(int(path.stem.removeprefix("child-")), signal.SIGUSR1)


# In the process that runs the script


def watch_children(folder: Path, steps: int | None, attached: Attached) -> None:
    """See to it that processes which the script starts are watched. *Called on* the process that runs it, before it does."""
    os.environ[FOLDER] = str(folder)
    os.environ[STEPS] = "" if steps is None else str(steps)
    paths = [str(_HOOK), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    _own.attached, _own.pid = attached, os.getpid()
    import torch.distributed as dist

    if dist.is_available():
        from torch.distributed import distributed_c10d

        arm(distributed_c10d)
    os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    """This process was forked off the one that runs the script: it loads data, or trains."""
    if _own.attached is not None:
        alone.arm_optimizers(sys.modules["torch.optim.optimizer"])


def is_watched() -> bool:
    """Whether this process is."""
    return _own.attached is not None and _own.pid == os.getpid()


def watch_no_more() -> None:
    """The script is over: what it left running is its own affair."""
    _own.attached = None
    os.environ.pop(FOLDER, None)


# In each of them


def joined() -> None:
    """This process has joined a process group: it is a rank."""
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    if _own.attached is not None and _own.pid != os.getpid():  # it was forked off a watched process
        _own.attached.abandon()
        _own.attached = None
    if _own.attached is not None:
        with contextlib.suppress(RuntimeError):  # one that has trained already stays what it was
            _own.attached.probe.runs_on(rank=rank, world_size=world_size)
        return
    folder = os.environ.get(FOLDER)
    if not folder or not Path(folder).is_dir():
        return
    alone.take_back(Path(folder))
    path = Path(folder) / f"child-{os.getpid()}.jsonl"
    local_rank = int(os.environ.get("LOCAL_RANK") or rank)
    faulthandler.register(signal.SIGUSR1, file=path.with_suffix(STACK).open("w"), all_threads=True)
    path.with_suffix(PLACE).write_text(f"{rank} {world_size} {time.monotonic_ns()}")
    steps = os.environ.get(STEPS)
    probe = Probe(path, rank=rank, local_rank=local_rank, world_size=world_size)
    _own.attached, _own.pid = Attached(probe, int(steps) if steps else None), os.getpid()
    _at_the_end(_own.attached)


def _at_the_end(attached: Attached) -> None:
    """Close the record as this process ends: one of multiprocessing's runs finalizers, any other what atexit knows."""
    from multiprocessing import util

    def close() -> None:
        if _own.attached is not attached or _own.pid != os.getpid():
            return
        _own.attached = None
        error = sys.exc_info()[1] or getattr(sys, "last_value", None)
        if isinstance(error, SystemExit):  # torch's spawn makes one of what the rank raised
            error = error.__context__ if error.code else None
        with contextlib.suppress(Exception):
            if error is not None:
                attached.raised(error)
            attached.close(finished=error is None)

    util.Finalize(None, close, exitpriority=100)
    atexit.register(close)
