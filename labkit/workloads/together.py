"""Do a thing on every rank, so that it succeeds on all of them or raises on all: nobody waits for one that failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from ..errors import CheckpointError

Result = TypeVar("Result")


class Together:
    """The ranks that share a folder, on a process group of their own; or one process alone.

    Args:
        alone: work without the others although there is a process group.

    Attributes:
        rank, world_size: among those that work together; 0 and 1 alone.
        group: a gloo group, whatever the training uses: what is exchanged here lives on the CPU. None alone.
    """

    def __init__(self, alone: bool = False) -> None:
        together = dist.is_available() and dist.is_initialized() and not alone
        self.group: Any = dist.new_group(backend="gloo") if together else None
        self.rank = dist.get_rank() if together else 0
        self.world_size = dist.get_world_size() if together else 1

    def each(self, what: str, action: Callable[[], Result], *, where: Path) -> Result:
        """Run `action` on every rank, and return this rank's own result.

        Raises:
            CheckpointError: on every rank, if it failed on any.
        """
        own = self._gathered(what, action, where, travels=False)[self.rank]
        return own

    def all(self, what: str, action: Callable[[], Result], *, where: Path) -> list[Result]:
        """The same, returning the results of all ranks, by rank. They travel: keep them small."""
        return self._gathered(what, action, where, travels=True)

    def first(self, what: str, action: Callable[[], Result], *, where: Path) -> Result:
        """The same, on rank 0 alone, whose result all ranks return: where each would decide for itself, they may differ."""
        mine: Callable[[], Any] = action if self.rank == 0 else (lambda: None)
        return self._gathered(what, mine, where, travels=True)[0]

    def _gathered(self, what: str, action: Callable[[], Result], where: Path, travels: bool) -> list[Any]:
        try:
            own: tuple[str | None, Any] = (None, action())
        except CheckpointError as error:
            own = (str(error), None)
        except (Exception, CheckpointException) as error:  # torch's own is no Exception
            own = (_said(what, where, error), None)
        every: list[Any] = [own]
        if self.group is not None:
            every = [None] * self.world_size
            dist.all_gather_object(every, own if travels else (own[0], None), group=self.group)
            every[self.rank] = own
        failed = [(rank, text) for rank, (text, _) in enumerate(every) if text is not None]
        if failed:
            rank, text = failed[0]
            raise CheckpointError(text if len(failed) == len(every) else f"rank {rank}: {text}")
        return [value for _, value in every]


def file_system_error(error: BaseException | None) -> OSError | None:
    """The error of the file system that another error came of, if there is one."""
    while error is not None and not isinstance(error, OSError):
        failures = list(getattr(error, "failures", {}).values())  # of torch's CheckpointException
        error = (failures[0][0] if failures else None) or error.__cause__ or error.__context__
    return error


def _said(what: str, where: Path, error: BaseException) -> str:
    """An error of the file system, of torch or of ours, as a sentence that says what to try."""
    cause = file_system_error(error)
    if cause is None:
        return f"cannot {what} in {where}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    remedy = {
        errno.ENOSPC: "free space there, keep fewer, or choose another folder",
        errno.EDQUOT: "free space there, keep fewer, or choose another folder",
        errno.EROFS: "choose a folder that can be written",
        errno.EACCES: "choose a folder that can be written",
    }.get(cause.errno or 0, "see whether the folder is still there and whole")
    return f"cannot {what} in {where}: {os.strerror(cause.errno) if cause.errno else cause}; {remedy}"
