"""Ranks that a script starts by itself: with torch.multiprocessing.spawn, Process, torchrun in a subprocess, or a library.

A process of the script's is known for a rank when it joins a process group. From then on it is watched, and writes a file
of its own beside that of the process that started it; once all have ended the files are put in the order of the ranks.
Forked processes drop the watch that they were born with: most of them load data.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..record.probe import Probe
from ..watch.outside.attach import Attached

FOLDER, STEPS = "LABKIT_DOCTOR_CHILDREN", "LABKIT_DOCTOR_STEPS"
"""Variables of the environment that a script's processes inherit: where to write, and after how many steps to end."""

_HOOK = Path(__file__).resolve().parent / "hook"
STACK, PLACE = ".stack", ".place"
"""Suffixes of the files beside a rank's record: the stacks of its threads, and which rank it is."""


@dataclass
class _Own:
    """What watches this process, if anything does."""

    attached: Attached | None = None


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
    _own.attached = attached
    os.register_at_fork(after_in_child=_forked)
    import torch.distributed as dist

    if dist.is_available():
        from torch.distributed import distributed_c10d

        arm(distributed_c10d)


def watch_no_more() -> None:
    """The script is over: what it left running is its own affair."""
    _own.attached = None
    os.environ.pop(FOLDER, None)


def _forked() -> None:
    if _own.attached is not None:
        _own.attached.abandon()
        _own.attached = None


# In each of them


def arm(module: Any) -> None:
    """Replace what makes a process group by what makes one and then watches this process, if nothing watches it yet."""
    original = module.init_process_group
    if hasattr(original, "_labkit_armed"):
        return

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        given = original(*args, **kwargs)
        try:
            _joined()
        except Exception as error:
            print(f"labkit doctor: rank {module.get_rank()} is not watched: {error!r}", file=sys.stderr)
        return given

    vars(init_process_group)["_labkit_armed"] = True
    module.init_process_group = init_process_group
    for name in ("torch.distributed", "torch.distributed.device_mesh"):
        other: Any = sys.modules.get(name)
        if getattr(other, "init_process_group", None) is original:
            other.init_process_group = init_process_group


def _joined() -> None:
    """This process has joined a process group: it is a rank."""
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    if _own.attached is not None:
        with contextlib.suppress(RuntimeError):  # one that has trained already stays what it was
            _own.attached.probe.runs_on(rank=rank, world_size=world_size)
        return
    folder = os.environ.get(FOLDER)
    if not folder or not Path(folder).is_dir():
        return
    path = Path(folder) / f"child-{os.getpid()}.jsonl"
    local_rank = int(os.environ.get("LOCAL_RANK") or rank)
    faulthandler.register(signal.SIGUSR1, file=path.with_suffix(STACK).open("w"), all_threads=True)
    path.with_suffix(PLACE).write_text(f"{rank} {world_size} {time.monotonic_ns()}")
    steps = os.environ.get(STEPS)
    probe = Probe(path, rank=rank, local_rank=local_rank, world_size=world_size)
    _own.attached = Attached(probe, int(steps) if steps else None)
    _at_the_end(_own.attached)


def _at_the_end(attached: Attached) -> None:
    """Close the record as this process ends: one of multiprocessing's runs finalizers, any other what atexit knows."""
    from multiprocessing import util

    def close() -> None:
        if _own.attached is not attached:
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
