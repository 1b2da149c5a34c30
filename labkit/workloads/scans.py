"""The digits as an input pipeline meets them: scans to be read and prepared, before a model can train on them.

A scan is a bitmap in which each pixel of the 8 × 8 digit is a block with as many inked dots as the pixel's value says.
Preparing counts them again, so what comes out is the digit to the bit, whatever the preparation costs and wherever the
scan was read.

Shapes: a scan is [D, D] bytes, where D is 32 times its scale; an item is (image [64], label [], id).
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset

from .digits import NUM_PIXELS, Digits

SIDE = 8
DOTS = 4
_ORDER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])  # Bayer's: any number of dots, spread out


def scan_bytes(scale: int) -> int:
    """The size of one scan: a byte for each of its dots, each drawn `scale` × `scale`."""
    return (SIDE * DOTS * scale) ** 2


def draw(images: np.ndarray, scale: int) -> np.ndarray:
    """Scans of digits: values 0..16 [N, 64] -> bitmaps of 0 and 255 [N, 32·scale, 32·scale], uint8."""
    counts = images.reshape(-1, SIDE, 1, SIDE, 1)
    dots = (_ORDER[None, None, :, None, :] < counts).reshape(-1, SIDE * DOTS, SIDE * DOTS)
    inked = dots * np.uint8(255)  # bytes from here on: eight times as many would be needed for numpy's own integers
    return inked.repeat(scale, axis=1).repeat(scale, axis=2)


def all_scans(num_samples: int, scale: int) -> bytes:
    """What a store of scans holds: the first digits, one after the other."""
    return draw(_values(Digits(num_samples)), scale).tobytes()


def _values(digits: Digits) -> np.ndarray:
    return (digits.images.double().numpy() * 16).round().astype(np.int64)


def count_dots(scan: np.ndarray) -> np.ndarray:
    """The digit of a scan: [S, S] uint8 -> 64 values in 0..1, float32, exactly those that it was drawn from."""
    block = len(scan) // SIDE
    inked = (scan.reshape(SIDE, block, SIDE, block) > 0).sum((1, 3))
    return (inked / (block * block)).astype(np.float32).reshape(NUM_PIXELS)


def straighten(scan: np.ndarray, cpu_s: float) -> np.ndarray:
    """Look for the slant under which a scan's columns are sharpest, for a given processor time.

    Real work of an amount that is set: by the clock of this thread, which stands while others have the core. The scans
    are straight, so the scan comes back as it was: what a model learns does not hang on how far the search came.
    """
    began, slant = time.thread_time(), 0
    rows, columns = np.arange(len(scan))[:, None], np.arange(scan.shape[1])[None, :]
    while time.thread_time() - began < cpu_s:
        slanted = scan[rows, (columns + rows * slant // len(scan)) % scan.shape[1]]
        np.var(slanted.sum(0, dtype=np.int64))
        slant += 1
    return scan


def sleep_until(moment: float) -> None:
    """Sleep until a moment of time.monotonic()."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


class Address(Protocol):
    """Where a store is."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def token(self) -> str: ...
    @property
    def item_bytes(self) -> int: ...


class Remote:
    """Scans that are read from a store over the network: a connection for each process, made when it first reads."""

    def __init__(self, address: Address, side: int) -> None:
        self._address, self._side = address, side
        self._pid, self._connection = 0, None

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        """The scans of these ids, in one request."""
        if self._connection is None or self._pid != os.getpid():  # a forked worker may not share its parent's
            self._connection = http.client.HTTPConnection(self._address.host, self._address.port, timeout=120)
            self._pid = os.getpid()
        words = {"Authorization": f"Bearer {self._address.token}"}
        self._connection.request("GET", "/items?ids=" + ",".join(map(str, ids)), headers=words)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the store answered {answer.status}: {content.decode(errors='replace')}")
        return np.frombuffer(content, np.uint8).reshape(len(ids), self._side, self._side)


class Counters:
    """What all processes of a rank, its workers too, did to the data so far."""

    NAMES = ("prepared", "prepare_us", "store_bytes")

    def __init__(self) -> None:
        self._values = multiprocessing.get_context("fork").Array("q", len(self.NAMES))

    def add(self, **amounts: int) -> None:
        with self._values.get_lock():
            for name, amount in amounts.items():
                self._values[self.NAMES.index(name)] += amount

    def read(self) -> dict[str, int]:
        with self._values.get_lock():
            return dict(zip(self.NAMES, self._values[:], strict=True))


class Scans(Dataset):
    """Digits behind the work of getting them ready. An item is (image [64] in 0..1, label, id), as of `Digits`.

    Args:
        digits: what is on the scans.
        scale: of the scans.
        prepare_s: what a sample costs.
        by: "cpu" for processor time, "wait" for waiting, as on a slow disk or a remote decoder.
        read: where scans come from; drawn beforehand into this process's memory if None.
        local: a folder on this host's own disk.
        mark: gives a context that records that its body runs, by a name.

    Attributes:
        counters: what was done so far, in this process and in the workers that it forked.
    """

    def __init__(
        self,
        digits: Digits,
        *,
        scale: int = 1,
        prepare_s: float = 0.0,
        by: str = "cpu",
        read: Callable[[Sequence[int]], np.ndarray] | None = None,
        local: Path = Path(),
        mark: Callable[[str], AbstractContextManager] = lambda name: contextlib.nullcontext(),
    ) -> None:
        self.digits, self.local, self.mark = digits, local, mark
        self.counters = Counters()
        self._prepare_s, self._by, self._read = prepare_s, by, read
        self._scans = draw(_values(digits), scale) if read is None else None

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
        """A batch at once, as DataLoader asks for it."""
        ready = self.prepared(indices)
        return [(torch.from_numpy(image), self.digits.labels[i], i) for image, i in zip(ready, indices, strict=True)]

    def prepared(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Read these scans and prepare them."""
        began = time.monotonic()
        if self._scans is not None:
            scans = self._scans[list(indices)]
        else:
            assert self._read is not None
            scans = self._read(indices)
            self.counters.add(store_bytes=scans.nbytes)
        read = time.monotonic()
        if self._by == "wait":
            sleep_until(read + self._prepare_s * len(indices))
            ready = [count_dots(scan) for scan in scans]
        else:
            ready = [count_dots(straighten(scan, self._prepare_s)) for scan in scans]
        self.counters.add(prepared=len(ready), prepare_us=round((time.monotonic() - began) * 1e6))
        return ready


class DiskCache(Dataset):
    """Prepare each sample once, and keep it on this host's own disk for whoever asks next: this rank or another."""

    RECORD = 1 + 4 * NUM_PIXELS

    def __init__(self, data: Scans) -> None:
        self.data = data
        self._fd = os.open(data.local / "prepared", os.O_CREAT | os.O_RDWR, 0o600)
        os.truncate(self._fd, len(data) * self.RECORD)  # to the same size, whichever rank comes first

    def __len__(self) -> int:
        return len(self.data)

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
        kept = {i: self._kept(i) for i in indices}
        missing = [i for i, image in kept.items() if image is None]
        for i, image in zip(missing, self.data.prepared(missing) if missing else [], strict=True):
            kept[i] = image
            os.pwrite(self._fd, image.tobytes(), i * self.RECORD + 1)
            os.pwrite(self._fd, b"\1", i * self.RECORD)  # last: who sees it finds the image whole
        labels = self.data.digits.labels
        return [(torch.from_numpy(np.array(kept[i])), labels[i], i) for i in indices]

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.__getitems__([index])[0]

    def _kept(self, index: int) -> np.ndarray | None:
        record = os.pread(self._fd, self.RECORD, index * self.RECORD)
        return np.frombuffer(record, np.float32, offset=1) if record[0] else None


class Locked(Dataset):
    """Data that are read and prepared under a lock."""

    def __init__(self, data: Scans, lock: AbstractContextManager[Any]) -> None:
        self.data, self.lock = data, lock

    def __len__(self) -> int:
        return len(self.data)

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
        with self.lock, self.data.mark("inside the lock"):
            return self.data.__getitems__(indices)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.__getitems__([index])[0]


class FileLock:
    """A lock that all processes of a host share: one at a time, whichever rank it belongs to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fds: list[int] = []

    def __enter__(self) -> None:
        fd = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self._fds.append(fd)

    def __exit__(self, *_: object) -> None:
        os.close(self._fds.pop())


class Counted:
    """A loader that tells what its data cost since the batch before.

    Args:
        loader: any iterable of batches.
        counters: of its data.
        tell: called with a name and an amount after each batch was fetched.
    """

    def __init__(self, loader: Any, counters: Counters, tell: Callable[[str, int], None]) -> None:
        self._loader, self._counters, self._tell = loader, counters, tell
        self._before = counters.read()

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            now = self._counters.read()
            for name, value in now.items():
                if value != self._before[name]:
                    self._tell(name, value - self._before[name])
            self._before = now
            yield batch
