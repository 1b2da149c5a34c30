"""Files that somebody else may have written: opened only if they are regular, and read only up to a bound.

A pipe in place of a file would keep its reader waiting, a device would never end, and a small file can stand for terabytes
of zeros. A link is followed, since the ranks' files of several machines may be gathered by links; what it leads to is held
to the same. What is only echoed, such as a rank's output, must lie in the record's own folder (`inside`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import LabkitError, RecordError

MIB = 2**20
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(
    path: Path,
    most_bytes: int,
    *,
    error: type[LabkitError] = RecordError,
    inside: Path | None = None,
    remedy: str = "copy the whole record again, or run the lab again",
) -> BinaryIO:
    """Open a file to read its bytes.

    Args:
        most_bytes: what it may hold; a larger one is refused before a byte is read.
        error: the kind of error for what cannot be opened; FileNotFoundError stays as it is for who wants to know.
        inside: the folder that it must lie in once links are followed; anywhere if None.
        remedy: what to do then, the end of the message.

    Raises:
        error: a pipe, a device, a socket, a file that is too large or lies elsewhere, or one that cannot be read.
    """
    try:
        _check(path, os.stat(path), most_bytes, error, remedy)  # so that a device with side effects is never opened
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except error:  # named already; some of ours are ValueErrors too
        raise
    except (OSError, ValueError) as cause:  # ValueError: a name with a NUL in it
        raise error(f"cannot read {path}: {reason_of(cause)}; {remedy}") from cause
    file = os.fdopen(handle, "rb")
    try:
        _check(path, os.fstat(handle), most_bytes, error, remedy)  # nobody exchanged it meanwhile
        if inside is not None and not path.resolve().is_relative_to(inside.resolve()):
            raise error(f"{path} is a link that leads out of {inside}; {remedy}")
    except BaseException:
        file.close()
        raise
    return file


def _check(path: Path, found: os.stat_result, most_bytes: int, error: type[LabkitError], remedy: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind:
        raise error(f"cannot read {path}: it is {kind}, where a file was expected; {remedy}")
    if found.st_size > most_bytes:
        raise error(f"cannot read {path}: it holds {found.st_size:,} bytes, and at most {most_bytes:,} are read; {remedy}")


def reason_of(cause: OSError | ValueError) -> str:
    """Why a file could not be used, in words: the system's, or those of the ValueError that a name with a NUL raises."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def read_regular(path: Path, most_bytes: int, **how) -> bytes:
    """All bytes of a file. Arguments and errors as of `open_regular`."""
    with open_regular(path, most_bytes, **how) as file:
        return _read(file, path, most_bytes + 1, how.get("error", RecordError))[:most_bytes]


def _read(file: BinaryIO, path: Path, most: int, error: type[LabkitError]) -> bytes:
    try:
        return file.read(most)
    except OSError as cause:
        raise error(f"cannot read {path}: {reason_of(cause)}; copy it again") from cause


def lines_of(path: Path, *, most_bytes: int, most_lines: int, most_line_bytes: int) -> Iterator[tuple[int, bytes, bool]]:
    """(number from 1 on, line without its end, whether it had one) of a file, one at a time.

    Raises:
        RecordError: as `open_regular`, and a line or a number of lines beyond the bounds.
    """
    with open_regular(path, most_bytes) as file:
        for number in range(1, most_lines + 2):
            try:
                raw = file.readline(most_line_bytes + 1)
            except OSError as cause:
                raise RecordError(f"cannot read {path}: {reason_of(cause)}; copy the whole record again") from cause
            if not raw:
                return
            if len(raw) > most_line_bytes:
                raise RecordError(
                    f"{path}, line {number}: it is longer than {most_line_bytes:,} bytes; the file is damaged or not a "
                    "labkit record"
                )
            if number > most_lines:
                raise RecordError(f"{path}: it has more than {most_lines:,} lines; record fewer steps")
            whole = raw.endswith(b"\n")
            yield number, raw[:-1] if whole else raw, whole
