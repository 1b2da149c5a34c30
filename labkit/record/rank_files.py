"""One rank's files: its lines, decoded and made safe to show, and the arrays beside them.

What a line says is foreign text. Characters that could act on a terminal, a page or a file's name are replaced by symbols
as the line is read, so that everything that shows a record later shows text.
"""

from __future__ import annotations

import contextlib
import gc
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from ..errors import RecordError
from ..words import printable
from . import compact
from .bounds import MAX_ARRAY_BYTES, MAX_ARRAYS, MAX_LINE_BYTES, MAX_LINES, MAX_RUN_BYTES
from .columns import Gathering
from .files import lines_of, open_regular
from .rank_log import Take, rank_log
from .safe_json import decoded
from .schema import SCHEMA_VERSION, End, Head, Line, RankLog

_decoder = msgspec.json.Decoder(Line)


class _OutOfBounds(ValueError):
    """A line that is valid JSON of the right kind, and still not to be taken in."""


def rank_file(folder: Path, rank: int, attempt: int = 0) -> Path:
    """Where a rank writes: rank-00003.jsonl, and rank-00003.attempt1.jsonl after a restart."""
    return folder / (f"rank-{rank:05d}" + (f".attempt{attempt}" if attempt else "") + ".jsonl")


def read_rank(path: Path) -> RankLog:
    """Decode one rank's file.

    Raises:
        RecordError: it is no regular file, or too large; a line that cannot be read, by its number.
    """
    with _without_collector():
        return _read_rank(path)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing that is read is garbage: looking again and again whether it is takes as long as reading it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_rank(path: Path) -> RankLog:
    if compact.is_long(path):
        log = compact.read(path, lambda take: _checked_lines(path, take))
        if log is not None:
            return log
    gathering = Gathering()
    return rank_log(_checked_lines(path, gathering.take), gathering.steps)


def _checked_lines(path: Path, take: Take) -> Iterator[Line]:
    """The lines of a file, each as `take` gives it back, up to one that was cut off as the rank was killed."""
    head: Head | None = None
    finished = False
    for number, raw, whole in _lines(path):
        if not raw:
            continue
        try:
            line = _decoded_line(raw, take)
        except (msgspec.DecodeError, _OutOfBounds) as error:
            if not whole:
                break  # no newline after it: the rank was killed while writing, which `finished` says already
            raise RecordError(f"{path}, line {number}: {error}; the file is damaged or not a labkit record") from error
        if finished:
            raise RecordError(
                f"{path}, line {number}: it comes after the end mark; another process wrote into this file too: give each "
                "process a probe and a file of its own"
            )
        if isinstance(line, Head):
            _check_head(path, number, line, head)
            head = line
        finished = isinstance(line, End)
        yield line
    if head is None:
        raise RecordError(f"{path}: no head line; the rank ended before its first step")


def _lines(path: Path):
    return lines_of(path, most_bytes=MAX_RUN_BYTES, most_lines=MAX_LINES, most_line_bytes=MAX_LINE_BYTES)


def _check_head(path: Path, number: int, line: Head, earlier: Head | None) -> None:
    if earlier is not None:
        raise RecordError(
            f"{path}, line {number}: a second head; two probes wrote into this file: give each rank one probe, and a file "
            "of its own"
        )
    if line.schema != SCHEMA_VERSION:
        raise RecordError(
            f"{path}, line {number}: schema {line.schema}, this labkit reads {SCHEMA_VERSION}; "
            "read it with the labkit that wrote it, or run the lab again"
        )


def _decoded_line(raw: bytes, take: Take) -> Line:
    try:
        return take(decoded(raw, _decoder))
    except OverflowError:
        raise _OutOfBounds("a hash of a sample is not a number of 64 bits") from None


def head_of(path: Path) -> Head:
    """The head of a rank's file, without decoding its steps."""
    with contextlib.suppress(RecordError, msgspec.DecodeError, StopIteration):
        line = decoded(next(_lines(path))[1], _decoder)
        if isinstance(line, Head):
            return line
    return read_rank(path).head  # says what is wrong with the file


def began(path: Path) -> bool:
    """Whether a rank wrote a whole line."""
    first = next(_lines(path), None)
    return first is not None and first[2]


def read_arrays(rank_0: Path) -> dict[str, np.ndarray]:
    """What rank 0 kept beside its file, in the same attempt.

    Raises:
        RecordError: the archive is damaged, larger inside than it may be, or holds what is no array of numbers.
    """
    path = rank_0.with_suffix(".npz")
    if not path.exists():
        return {}
    with open_regular(path, MAX_ARRAY_BYTES) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                parts = archive.infolist()
                if len(parts) > MAX_ARRAYS or sum(part.file_size for part in parts) > MAX_ARRAY_BYTES:
                    raise ValueError(f"more than {MAX_ARRAYS:,} arrays or {MAX_ARRAY_BYTES:,} bytes in it")
                return {printable(part.filename.removesuffix(".npy")): _array(archive, part) for part in parts}
        except Exception as error:  # a damaged archive raises whatever its bytes lead to: of zip, of zlib, of numpy
            raise RecordError(f"{path}: {error}; the file is damaged or not a labkit record") from error


def _array(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> np.ndarray:
    """One array; its header is believed only where the bytes for it are there."""
    with archive.open(part) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
    if dtype.kind not in "biufc":
        raise ValueError(f"{part.filename} holds no numbers")
    if any(side < 0 for side in shape) or math.prod(shape) * dtype.itemsize > part.file_size:
        raise ValueError(f"{part.filename} states a shape of {shape}, and holds {part.file_size:,} bytes")
    with archive.open(part) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
