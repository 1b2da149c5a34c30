"""The files of a checkpoint: a marker that says it is complete, hashes that say it is whole, a reader that runs nothing."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import msgspec
import torch
import xxhash
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import StorageMeta

from ..errors import CheckpointError
from ..record.files import open_regular, read_regular
from .together import file_system_error

MARKER = "complete.json"
SCHEMA_VERSION = 1
_CHUNK_BYTES = 1 << 22
MAX_MARKER_BYTES, MAX_INDEX_BYTES, MAX_FILE_BYTES = 1 << 26, 1 << 30, 1 << 46
_DAMAGE = (
    *(pickle.UnpicklingError, EOFError, AttributeError, ValueError, IndexError, KeyError, TypeError),
    *(RecursionError, OverflowError, MemoryError, ImportError),
)
"""What unpickling raises on bytes that are no index."""
_REMEDY = "go on from an earlier checkpoint"


class StoredFile(msgspec.Struct, frozen=True):
    """Size and xxh3 of one file."""

    num_bytes: int
    xxh3: str


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What a complete checkpoint says of itself."""

    step: int
    world_size: int
    files: dict[str, StoredFile]
    schema: int = SCHEMA_VERSION


class _Sealed(msgspec.Struct, frozen=True):
    """The marker with a hash of itself: a changed byte of it is noticed as well."""

    marker: msgspec.Raw
    xxh3: str


class _Version(msgspec.Struct, frozen=True):
    schema: int


def digest_file(path: Path) -> StoredFile:
    """Size and hash of a file as it can be read now."""
    state, num_bytes = xxhash.xxh3_128(), 0
    with open_regular(path, MAX_FILE_BYTES, error=CheckpointError, remedy=_REMEDY) as file:
        while chunk := file.read(_CHUNK_BYTES):
            state.update(chunk)
            num_bytes += len(chunk)
    return StoredFile(num_bytes, state.hexdigest())


def write_marker(path: Path, marker: Marker) -> None:
    """Write the marker, through to the disk."""
    body = msgspec.json.encode(marker)
    with open(path, "wb") as file:
        file.write(msgspec.json.encode(_Sealed(msgspec.Raw(body), xxhash.xxh3_128_hexdigest(body))))
        file.flush()
        os.fsync(file.fileno())


def read_marker(folder: Path) -> Marker:
    """The marker of a checkpoint.

    Raises:
        CheckpointError: missing, damaged, or of a version that this labkit does not read.
    """
    path = folder / MARKER
    if not path.exists():
        raise CheckpointError(f"{folder} is not complete: it has no {MARKER}")
    try:
        sealed = msgspec.json.decode(
            read_regular(path, MAX_MARKER_BYTES, error=CheckpointError, remedy=_REMEDY), type=_Sealed
        )
        body = bytes(sealed.marker)
        if xxhash.xxh3_128_hexdigest(body) != sealed.xxh3:
            raise CheckpointError(f"{path} is damaged: its hash is not the one it states")
        schema = msgspec.json.decode(body, type=_Version).schema
        if schema != SCHEMA_VERSION:
            raise CheckpointError(
                f"{folder} is of version {schema}, this labkit reads {SCHEMA_VERSION}; read it with the labkit that wrote it"
            )
        return msgspec.json.decode(body, type=Marker)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def verify(folder: Path, share: int = 0, shares: int = 1) -> Marker:
    """Read the marker, and hold every `shares`-th file against it: present, of its size, and unchanged to the bit.

    Raises:
        CheckpointError: names the file and what is wrong with it.
    """
    marker = read_marker(folder)
    if folder.name != f"step-{marker.step:08d}":
        raise CheckpointError(f"{folder} says that it is of step {marker.step}; it was renamed")
    for name in sorted(marker.files)[share::shares]:
        path, stated = folder / name, marker.files[name]
        if not path.exists():
            raise CheckpointError(f"{path} is missing")
        try:
            found = digest_file(path)
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
        if found.num_bytes != stated.num_bytes:
            raise CheckpointError(f"{path} has {found.num_bytes:,} bytes of {stated.num_bytes:,}: it was cut short")
        if found.xxh3 != stated.xxh3:
            raise CheckpointError(f"{path} is damaged: its bytes are not those that were written")
    return marker


def flush_folder(folder: Path) -> None:
    """Have names that were made or changed in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_INDEX = {
    "torch.distributed.checkpoint.metadata": (
        *("Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "_MEM_FORMAT_ENCODING"),
        *("TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata"),
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    "torch.serialization": ("_get_layout",),
    "torch": ("Size", *(name for name, value in vars(torch).items() if isinstance(value, torch.dtype))),
    "pathlib": ("PosixPath",),
    "pathlib._local": ("PosixPath",),
}
"""What torch's index of a checkpoint is made of, by module."""


class _IndexUnpickler(pickle.Unpickler):
    """Knows the parts of an index, and nothing that could do anything."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _INDEX.get(module, ()):
            return super().find_class(module, name)
        raise CheckpointError(f"the index of a checkpoint names {module}.{name}, which is no part of an index")


class Writer(FileSystemWriter):
    """torch's writer, which says what the file system said: on its way to the other ranks an error loses its cause."""

    def write_data(self, plan: Any, planner: Any) -> Any:
        try:
            return super().write_data(plan, planner)
        except Exception as error:
            cause = file_system_error(error)
            if cause is None or cause is error:
                raise
            raise cause from error


class SafeReader(FileSystemReader):
    """torch's reader, but for the index: torch loads it by pickle, which runs what it names."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        path = Path(self.path) / ".metadata"
        try:
            with open_regular(path, MAX_INDEX_BYTES, error=CheckpointError, remedy=_REMEDY) as file:
                metadata = _IndexUnpickler(file).load()
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
        except _DAMAGE as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata
