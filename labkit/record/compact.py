"""Long files of ranks, kept as columns: read from JSON once, then mapped into memory page by page as they are needed.

The lines that a rank wrote are the truth, and columns are made of them: an Arrow file with a row a line, in the user's cache
and not beside the record. So a record that cannot be written to is read as fast, and nobody else's file is believed. It is
found by where the lines are, how long they are and when they were written last; whatever is wrong with it, it is made anew.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
import xxhash

from .bounds import MAX_LINES
from .cache import cache_folder
from .columns import DIGEST, ID, Column, Keys, fill_in, with_columns
from .rank_log import Take, rank_log
from .schema import SCHEMA_VERSION, Line, RankLog, Seen, Step

if TYPE_CHECKING:
    import pyarrow as pa

FROM_BYTES = 4 * 2**20
"""A shorter file is decoded as fast as its columns would be looked up."""

MOST_BYTES = 4 * 2**30
"""Of all columns that are kept; the ones used longest ago are forgotten."""

VERSION = 1
"""Of the columns; another one is made anew."""

MOST_NAMES = 32
"""Columns of one file; a rank that reads under more names is read into memory."""

BLOCK = 2**20
"""Numbers gathered before they are written."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Line).decode
_BYTES = np.dtype(np.uint8)
_LINE, _SEEN, _SEEN_IDS, _DIGESTS, _IDS = "line", "seen", "seen ids", "digests of ", "ids of "


def is_long(path: Path) -> bool:
    """Whether a file is long enough for columns."""
    try:
        return path.stat().st_size >= FROM_BYTES
    except OSError:
        return False  # said when it is opened


def read(path: Path, lines: Callable[[Take], Iterable[Line]]) -> RankLog | None:
    """What a rank wrote, its samples in a file that is mapped; None where there is no room for such a file.

    Args:
        lines: reads the file from its beginning, each line as the function that it is given gives it back.

    Raises:
        RecordError: from `lines`.
    """
    folder = cache_folder() / "columns"
    mark = _mark(path)
    kept = folder / f"{xxhash.xxh3_128_hexdigest(mark)}.arrow"
    found = _opened(kept, mark)
    if found is not None:
        with contextlib.suppress(OSError):
            os.utime(kept)
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget_old(folder)
        part = folder / f"{uuid.uuid4().hex}.part"
    except OSError:
        return None
    try:
        with _Writing(folder) as writing:
            for line in lines(writing.take):
                writing.line(line)
            writing.finish(part, mark)
        found = _opened(part, mark)
        if found is not None and _mark(path) == mark:  # nobody wrote to it meanwhile
            part.replace(kept)
        return found
    except (OSError, msgspec.MsgspecError, _NoColumn):  # the disk is full, or a number that only JSON can write
        return None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _mark(path: Path) -> bytes:
    """What tells a file from another, and from itself before it was written to."""
    found = path.stat()
    return repr(
        (os.path.realpath(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, SCHEMA_VERSION, VERSION)
    ).encode()


def _forget_old(folder: Path) -> None:
    aged = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.arrow"))
    held = sum(size for _, size, _ in aged)
    for _, size, path in aged:
        if held <= MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        held -= size


class _NoColumn(ValueError):
    """What was kept is not what this labkit keeps."""


class _Staged:
    """The values of one column on their way to the file, in one that no folder lists: a killed process leaves nothing."""

    def __init__(self, folder: Path, dtype: np.dtype, lines_before: int) -> None:
        self.dtype, self._file = dtype, _unlisted(folder)
        self._waiting: list[np.ndarray] = []
        self._held = self._length = 0
        self._starts = [0] * (lines_before + 1)

    def add(self, values: np.ndarray | None) -> None:
        """The values of the next line; None if it has none of this name."""
        if values is not None:
            self._waiting.append(values)
            self._held += len(values)
            self._length += len(values)
        self._starts.append(self._length)
        if self._held >= BLOCK:
            self._write()

    def _write(self) -> None:
        if self._held:
            self._file.write(np.concatenate(self._waiting).data)
        self._waiting, self._held = [], 0

    def column(self) -> pa.Array:
        """The column, mapped: bytes, or a list of numbers a line."""
        import pyarrow as pa

        self._write()
        self._file.flush()
        values = np.memmap(self._file, self.dtype, "r", shape=(self._length,)) if self._length else np.empty(0, self.dtype)
        starts = pa.array(np.array(self._starts, np.int64))
        if self.dtype != _BYTES:
            return pa.LargeListArray.from_arrays(starts, pa.array(values))
        buffers = [None, starts.buffers()[1], pa.py_buffer(values)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(starts) - 1, buffers)

    def close(self) -> None:
        self._file.close()


def _unlisted(folder: Path) -> BinaryIO:
    return tempfile.TemporaryFile(dir=folder)  # pyright: ignore[reportReturnType]


class _Writing:
    """Takes lines in, and writes them as one Arrow file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lines = folder, 0
        self._staged: dict[str, _Staged] = {}
        self._of_line: dict[str, np.ndarray] = {}

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *_: object) -> None:
        for staged in self._staged.values():
            staged.close()

    def take(self, line: Line) -> Line:
        """The line with empty lists in place of its samples."""
        self._of_line = {}
        if isinstance(line, Step):
            fill_in(line)
            for name, values in line.digests.items():
                self._of_line[_DIGESTS + name] = np.array(values, DIGEST)
                line.digests[name] = []
            for name in line.ids.keys() & line.digests.keys():
                self._of_line[_IDS + name] = np.array(line.ids[name], ID)
                line.ids[name] = []
        if isinstance(line, Seen):
            self._of_line = {_SEEN: np.array(line.digests, DIGEST), _SEEN_IDS: np.array(line.ids, ID)}
            return msgspec.structs.replace(line, digests=[], ids=[])
        return line

    def line(self, line: Line) -> None:
        """Write down what `take` left of a line, and what it took."""
        self._of_line[_LINE] = np.frombuffer(_encode(line), _BYTES)
        for name, values in self._of_line.items():
            if name not in self._staged:
                self._staged[name] = _Staged(self._folder, values.dtype, self._lines)
        if len(self._staged) > MOST_NAMES:
            raise _NoColumn("a column for each of so many names")
        for name, staged in self._staged.items():
            staged.add(self._of_line.get(name))
        self._lines += 1

    def finish(self, path: Path, mark: bytes) -> None:
        """Write the file."""
        import pyarrow as pa

        columns = {name: staged.column() for name, staged in self._staged.items()}
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        batch = pa.record_batch(list(columns.values()), schema=pa.schema(fields, {b"of": mark}))
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)


def _opened(path: Path, mark: bytes) -> RankLog | None:
    """What was kept, or None where nothing was, or nothing that can be used."""
    if not path.exists():
        return None
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if (reader.schema.metadata or {}).get(b"of") != mark or reader.num_record_batches != 1:
            return None
        batch = reader.get_batch(0)
        batch.validate(full=True)
        return _Kept(batch).log() if batch.num_rows <= MAX_LINES else None
    except (OSError, pa.ArrowException, msgspec.MsgspecError, _NoColumn):
        return None


class _Kept:
    """One Arrow file, read."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        lists = {name: _list_of(batch.column(name), name) for name in batch.schema.names if name != _LINE}
        self._starts = {name: starts for name, (_, starts) in lists.items()}
        self._columns = {name: column for name, (column, _) in lists.items()}

    def log(self) -> RankLog:
        names = [name.removeprefix(_DIGESTS) for name in self._columns if name.startswith(_DIGESTS)]
        columns = {name: (self._columns[_DIGESTS + name], self._columns.get(_IDS + name, Column(ID))) for name in names}
        return rank_log(self._lines(), lambda steps: with_columns(steps, columns))

    def _lines(self) -> Iterator[Line]:
        import pyarrow as pa

        lines: Any = self._batch.column(_LINE)
        if lines.type != pa.large_binary() or lines.null_count or lines.offset:
            raise _NoColumn(_LINE)
        _, offsets, raw = lines.buffers()
        raw, starts = memoryview(raw), np.frombuffer(offsets, np.int64, len(lines) + 1).tolist()
        for place in range(len(lines)):
            line = _decode(raw[starts[place] : starts[place + 1]])
            if isinstance(line, Step):
                for name in line.ids.keys() & line.digests.keys():
                    line.ids[name] = self._keys(_IDS + name, place)  # pyright: ignore[reportArgumentType]
                for name in line.digests:
                    line.digests[name] = self._keys(_DIGESTS + name, place)  # pyright: ignore[reportArgumentType]
            if isinstance(line, Seen):
                line = msgspec.structs.replace(line, digests=self._keys(_SEEN, place), ids=self._keys(_SEEN_IDS, place))
            yield line

    def _keys(self, name: str, place: int) -> Keys:
        if name not in self._columns:
            raise _NoColumn(name)
        starts = self._starts[name]
        return Keys(self._columns[name], starts[place], starts[place + 1])


def _list_of(array: Any, name: str) -> tuple[Column, list[int]]:
    """The numbers of a column, without a copy, and where those of each line begin."""
    import pyarrow as pa

    dtype = DIGEST if name == _SEEN or name.startswith(_DIGESTS) else ID
    if array.type != pa.large_list(pa.from_numpy_dtype(dtype)) or array.null_count or array.values.null_count:
        raise _NoColumn(name)
    return Column(dtype, array.values.to_numpy(zero_copy_only=True)), array.offsets.to_pylist()
