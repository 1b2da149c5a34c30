"""The probe: what a program writes with, on its own rank.

One line of JSON a step, written when the step ends, so that a SIGKILLed rank leaves every step that it finished;
but `whole_step`, by which the doctor follows a long run, writes a few at once.
The hot path is kept under 30 µs a step (tests/benchmarks measures it): no object is made for a span until the line is.
"""

from __future__ import annotations

import contextlib
import operator
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from ..errors import UnknownName, UsageError
from .batches import as_ints, digest_rows, digest_tensors, samples_and_ids
from .clocks import clock_id
from .probe_checks import check_head, from_torchrun, one_each, plain
from .schema import LANES, SCHEMA_VERSION, Digest, End, Event, Head, Lane, Seen
from .whole_steps import Told, WholeSteps

if TYPE_CHECKING:
    import torch

Batch = TypeVar("Batch")

_now = time.monotonic_ns


class _OpenSpan:
    """A span that is open; closed also when the body raises."""

    __slots__ = ("_lane", "_name", "_probe", "_start")

    def __init__(self, probe: Probe, name: str, lane: Lane) -> None:
        self._probe, self._name, self._lane = probe, name, lane

    def __enter__(self) -> None:
        self._start = _now()

    def __exit__(self, *_: object) -> None:
        self._probe._spans.append((self._name, self._lane, self._start, _now()))


class Probe:
    """Write what one rank sees into one file. Close it at the end, or use it in a `with` block.

    *Called on* every rank. No collective is made.

    Args:
        path: the rank's file, called rank-00000.jsonl, rank-00001.jsonl, … after its rank; its folder exists.
        rank, local_rank, world_size: as in `Head`; what is left out is read from RANK, LOCAL_RANK and WORLD_SIZE, as
            torchrun sets them, and is 0, 0 and 1 without them.
        host, attempt, device, backend, threads: as in `Head`.
        barrier_ns: the monotonic clock as this rank left the barrier that all ranks share.
        on_step: called with the number of each step as it begins (progress, injected faults).

    Raises:
        UsageError: the file cannot be made, or a variable of torchrun's is no whole number.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        host: str = "localhost",
        attempt: int = 0,
        device: str = "cpu",
        backend: str = "none",
        threads: int = 1,
        barrier_ns: int | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self.path = Path(path)
        self.step = -1
        self._head = Head(
            schema=SCHEMA_VERSION,
            rank=from_torchrun("RANK", 0) if rank is None else rank,
            local_rank=from_torchrun("LOCAL_RANK", 0) if local_rank is None else local_rank,
            world_size=from_torchrun("WORLD_SIZE", 1) if world_size is None else world_size,
            host=host,
            pid=os.getpid(),
            attempt=attempt,
            device=device,
            backend=backend,
            threads=threads,
            barrier_ns=_now() if barrier_ns is None else barrier_ns,
            clock=clock_id(),
        )
        check_head(self._head)
        self._on_step = on_step
        self._encode = msgspec.json.Encoder().encode
        try:
            self._fd = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(
                f"the probe cannot write {self.path}: {error.strerror}; give a file in a folder that exists, as in "
                'Probe(f"my_run/rank-{rank:05d}.jsonl") after os.makedirs("my_run", exist_ok=True)'
            ) from error
        self._head_written = False
        self._held: list[bytes] | None = None
        self._whole = WholeSteps()
        self._epoch = 0
        self._loader = 0
        self._loaders: dict[tuple[str, int], int] = {}
        self._by_itself = ""
        self._in_step = False
        self._start = 0
        self._spans: list[tuple[str, str, int, int]] = []
        self._scalars: dict[str, float | str] = {}
        self._counts: dict[str, int] = {}
        self._digests: dict[str, list[int]] = {}
        self._ids: dict[str, list[int]] = {}
        self._series: dict[str, list[int]] = {}
        self._arrays: dict[str, np.ndarray] = {}

    def declare(self, **facts: int | float | str | bool) -> None:
        """State facts about the program (dataset_size=…, batch_size=…). Before the first step."""
        if self._head_written:
            raise RuntimeError(f"declare({', '.join(facts)}) came after the first step; call it before")
        self._head = msgspec.structs.replace(self._head, facts={**self._head.facts, **plain("declare", facts)})

    def runs_on(self, **known: str | int) -> None:
        """State device, backend, threads, rank or world_size of `Head`, where known only now. Before the first step."""
        if self._head_written:
            raise RuntimeError("runs_on() came after the first step; call it before")
        self._head = msgspec.structs.replace(self._head, **known)
        check_head(self._head)

    def resume_at(self, step: int) -> None:
        """Number the next step `step`: a run that goes on from a checkpoint counts on, so that a record shows what it
        repeats."""
        self.end_step()
        self.step = step - 1

    def begin_step(self, epoch: int = 0, *, start_ns: int | None = None) -> int:
        """Open the next step and return its number.

        Args:
            start_ns: when it began, by the monotonic clock; None is now.
        """
        if self._in_step:
            self.end_step()
        self.step += 1
        self._epoch, self._loader, self._by_itself = epoch, 0, ""
        if self._on_step is not None:
            self._on_step(self.step)
        self._in_step = True
        self._start = _now() if start_ns is None else start_ns
        return self.step

    def end_step(self) -> None:
        """Close the step and write its line; without an open step, nothing."""
        if not self._in_step:
            return
        self._check_owner()
        line = {"kind": "step", "step": self.step, "epoch": self._epoch, "start_ns": self._start, "end_ns": _now()}
        if self._spans:
            line["spans"] = self._spans
        if self._scalars:
            line["scalars"] = self._scalars
        if self._counts:
            line["counts"] = self._counts
        if self._digests:
            line["digests"] = self._digests
        if self._ids:
            line["ids"] = self._ids
        if self._series:
            line["series"] = self._series
        if self._loader:
            line["loader"] = self._loader
        self._put(self._encode(line) + b"\n")
        self._spans, self._scalars, self._counts, self._digests, self._ids, self._series = [], {}, {}, {}, {}, {}
        self._in_step = False

    def batches(
        self,
        loader: Iterable[Batch],
        *,
        epoch: int = 0,
        name: str = "train",
        ids_at: int | str | None = None,
        max_steps: int | None = None,
    ) -> Iterator[Batch]:
        """Yield the loader's batches, each in a step of its own: fetching is a `data` span, every sample is digested.

        Several loaders may be read in one epoch, one after the other or in turn: each is a pass of its own.
        An `epoch_end` event tells a whole epoch from one that was cut short; one that `max_steps` ends at its last batch
        is whole, if the loader can say how many there are.

        Args:
            loader: yields tensors, tuples whose first part is the samples, or mappings (dataclasses too): their first value
                is, or the first with more than a number a sample. Samples may be nested: see `batches.as_rows`.
            epoch: recorded with each step.
            name: under which the samples are recorded; a pass under another name than "train" is no step of the training.
            ids_at: where in a batch the samples' ids are (a position, or a key of a mapping); None if it has none.
            max_steps: stop once the probe has counted this many steps in all epochs together.
        """
        iterator, count = iter(loader), 0
        number = self._loaders[name, epoch] = self._loaders.get((name, epoch), -1) + 1
        while max_steps is None or self.step + 1 < max_steps:
            start = _now()
            try:
                batch = next(iterator)
            except StopIteration:
                self._end_epoch(name, epoch, number)
                return
            fetched = _now()
            self.begin_step(epoch)  # only now: at the end of an epoch there is no step, and no fault may fire in it
            self._start, self._loader = start, number
            self._spans.append(("fetch", "data", start, fetched))
            self.samples(name, *samples_and_ids(batch, ids_at))
            self._by_itself = name
            count += 1
            try:
                yield batch
            finally:
                self.end_step()
        with contextlib.suppress(TypeError):  # a stream has no length
            if count == len(loader):  # pyright: ignore[reportArgumentType]
                self._end_epoch(name, epoch, number)

    def _end_epoch(self, name: str, epoch: int, loader: int) -> None:
        """Note that all of a loader was read; which it was is said where it is not the training's, or not the first."""
        which = {} if name == "train" else {"of": name}
        self.event("epoch_end", epoch=epoch, **which, **({"loader": loader} if loader else {}))

    def span(self, name: str, lane: Lane = "compute") -> _OpenSpan:
        """A context that records an interval; closed also when its body raises."""
        if lane not in LANES:
            raise UnknownName("lane of a span", lane, LANES)
        return _OpenSpan(self, name, lane)

    def add_span(self, name: str, lane: Lane, start_ns: int, end_ns: int) -> None:
        """Record an interval that was timed elsewhere, such as in the callback of a collective (any thread)."""
        if lane not in LANES:
            raise UnknownName("lane of a span", lane, LANES)
        self._spans.append((name, lane, start_ns, end_ns))

    def scalar(self, name: str, value: float) -> None:
        """Record a number of this step. JSON has no NaN and no infinity: those are written as words."""
        value = float(value)  # of numpy and torch too
        self._scalars[name] = value if value - value == 0 else repr(value)

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter of this step (bytes, collectives)."""
        self._counts[name] = self._counts.get(name, 0) + operator.index(amount)  # of numpy too; refuses a fraction

    def whole_step(
        self,
        epoch: int,
        start_ns: int,
        tell: Callable[[Any], Told],
        seen: Any,
    ) -> None:
        """Write the step `self.step` at once, which ends now. A few are written together, unless that would take long: so a
        rank that is killed may not leave its last `whole_steps.AT_ONCE` steps.

        Args:
            epoch, start_ns: as in `begin_step`.
            tell: called with `seen` when the step is written: it says what the step holds.
            seen: what nobody changes any more.
        """
        if self._whole.add((self.step, epoch, start_ns, _now(), tell, seen)):
            self._write_waiting()

    def _write_waiting(self) -> None:
        self._check_owner()
        self._put(self._whole.taken())

    def counted(self, name: str) -> int:
        """What a counter of this step stands at."""
        return self._counts.get(name, 0)

    def series(self, name: str, values: Iterable[int]) -> None:
        """Add whole numbers to a list of this step: one a bucket, one a micro-batch."""
        self._series.setdefault(name, []).extend(int(operator.index(value)) for value in values)

    @property
    def in_step(self) -> bool:
        """Whether a step is open."""
        return self._in_step

    def samples(self, name: str, batch: torch.Tensor | np.ndarray, ids: torch.Tensor | Sequence[int] | None = None) -> None:
        """Record which samples this step read: an xxh3 hash of each row, and the ids where the data has them.

        The hash is of a sample's bytes, in order; `torch.hash_tensor` would ignore the order of the elements. Several calls
        in one step add up, as its micro-batches do; what `batches` recorded by itself is replaced.

        Raises:
            UsageError: there are no rows, or not as many ids as samples.
        """
        self.add_samples(name, digest_rows(batch), None if ids is None else as_ints(ids))

    def add_samples(self, name: str, digests: list[int], ids: Sequence[int] | None = None) -> None:
        """Record samples whose hashes are known already: see `samples`.

        Raises:
            UsageError: there are not as many ids as samples.
        """
        whole = None if ids is None else one_each("samples", name, digests, list(ids))
        if whole is not None and name in self._ids and name not in self._digests:
            return self.add_ids(name, whole)
        before = [] if self._by_itself == name else self._digests.get(name, [])
        if not before:
            self._by_itself = ""
            self._ids.pop(name, None)
        if whole is not None and len(self._ids.get(name, [])) == len(before):
            self._ids[name] = [*self._ids.get(name, []), *whole]
        elif whole is None:
            self._ids.pop(name, None)  # ids of a part of the samples would be taken for those of all
        self._digests[name] = [*before, *digests] if before else digests

    def add_ids(self, name: str, ids: Sequence[int]) -> None:
        """Record samples by their ids alone, where steps before had their hashes: see `samples`. The step then has no hashes
        under this name; a reader finds `columns.NOT_HASHED` in their place."""
        known = self._ids.get(name, [])
        if len(known) == len(self._digests.get(name, known)):
            self._digests.pop(name, None)
            self._ids[name] = [*known, *ids]

    def seen(
        self, name: str, epoch: int, batch: torch.Tensor | np.ndarray, ids: torch.Tensor | Sequence[int] | None = None
    ) -> None:
        """Record samples that were read outside a step (a validation pass)."""
        self.add_seen(name, epoch, digest_rows(batch), None if ids is None else as_ints(ids))

    def add_seen(self, name: str, epoch: int, digests: list[int], ids: Sequence[int] | None = None) -> None:
        """Record samples that were read outside a step, whose hashes are known already: see `seen`."""
        self._write(Seen(name, epoch, digests, [] if ids is None else one_each("seen", name, digests, list(ids))))

    def digest(self, name: str, tensors: Iterable[torch.Tensor]) -> str:
        """Record one hash over the bytes of several tensors, in order, and return it."""
        value = digest_tensors(tensors)
        self._write(Digest(name, value))
        return value

    def array(self, name: str, values: np.ndarray) -> None:
        """Keep a whole array (final weights) beside the file; written at `close`. Only rank 0's is read back."""
        self._arrays[name] = np.array(values, copy=True)

    def event(self, name: str, **fields: int | float | str | bool) -> None:
        """Record something that happened now; written at once. JSON has no NaN and no infinity: those become words."""
        self._write(Event(name, self.step, _now(), plain(f"event({name!r})", fields)))

    def close(self, finished: bool = True) -> None:
        """Write what is open and end the file; `finished=False` leaves it without its end mark. Again is harmless."""
        if self._fd < 0:
            return
        if self._in_step:
            self.end_step()
        if self._whole.waiting:
            self._write_waiting()
        self.release()
        if finished:
            self._write(End(self.step + 1, _now()))
            if self._arrays:
                np.savez(self.path.with_suffix(".npz"), **self._arrays)  # pyright: ignore[reportArgumentType]
        os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the probe; where the block raised, without the end mark, so that readers learn that the rank ended early."""
        self.close(finished=kind is None)

    def _check_owner(self) -> None:
        """Refuse what would spoil the file: a line after the last one, or one of a process that was forked off."""
        if self._fd < 0:
            raise UsageError(f"the probe of {self.path} is closed, and nothing more can be recorded; close it last")
        if os.getpid() != self._head.pid:
            raise UsageError(
                f"the probe of {self.path} belongs to process {self._head.pid}, and process {os.getpid()} was forked off "
                "it; give each process a probe and a file of its own"
            )

    def hold(self) -> None:
        """Keep lines in memory until `release`: facts come first in a file, and a watcher learns some of them late.

        A rank that is killed meanwhile leaves none of them.
        """
        self._held = []

    def release(self) -> None:
        """Write what was held back, and every line at once from now on; without a `hold`, nothing."""
        held, self._held = self._held, None
        for line in held or ():
            self._put(line)

    def _write(self, line: Any) -> None:
        self._check_owner()
        self._put(self._encode(line) + b"\n")

    def _put(self, line: bytes) -> None:
        if self._whole.waiting:
            self._write_waiting()
        if self._held is not None:
            self._held.append(line)
            return
        if not self._head_written:
            self._head_written = True
            os.write(self._fd, self._encode(self._head) + b"\n")
        os.write(self._fd, line)
