"""What a script does, put together to steps of a record.

A step is one update: from the first batch, or the first forward pass, after an optimizer's step to that step and what
follows it. Batches are not known to be training's when they are read: those whose forward pass is followed by no backward
pass were evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...record.batches import digest_rows, samples_and_ids
from ...record.probe import Probe

_now = time.monotonic_ns

TRAIN, EVALUATED = "train", "validation"


class EnoughSteps(SystemExit):
    """The script has made as many updates as were asked for, and ends here."""


@dataclass(eq=False)
class Pass:
    """One pass over a loader: an epoch of its data.

    Attributes:
        loader: number of the loader, in the order of first use.
        number: of the pass over this loader, from 0.
        size: samples of the whole data set; None where it cannot tell.
        trains: whether a batch of it was followed by a backward pass.
    """

    loader: int
    number: int
    size: int | None = None
    trains: bool = False


@dataclass(eq=False)
class Batch:
    """A batch that was read, and is not known to be trained on yet."""

    of: Pass
    digests: list[int]
    ids: list[int] | None
    start_ns: int
    end_ns: int
    forwarded: bool = False


@dataclass(eq=False)
class Steps:
    """Writes steps through a probe. *Called on* the rank's main thread."""

    probe: Probe
    most: int | None = None
    updates: int = 0
    pending: list[Batch] = field(default_factory=list)
    _updated: bool = False
    _read_since: bool = False
    _epoch: int = 0
    new_epoch: bool = False
    """Whether a loader came to its end since the last backward pass."""
    _released: bool = False
    before_first: Callable[[Batch | None], None] | None = None
    after_update: Callable[[Any, int], None] | None = None
    after_backward: Callable[[], None] | None = None

    # What happens

    def fetched(self, of: Pass, data: Any, ids: list[int] | None, start_ns: int, end_ns: int) -> None:
        """A loader gave a batch."""
        self._drop_evaluated()
        if self._updated:
            self._end()
        self._read_since = True
        digests = _digests(data)
        if digests is None:
            return
        fitting = ids if ids is not None and len(ids) == len(digests) else None
        self.pending.append(Batch(of, digests, fitting, start_ns, end_ns))

    def pass_ended(self, of: Pass) -> None:
        """A loader has no more batches in this pass."""
        self._drop_evaluated()
        self.new_epoch = self.new_epoch or of.trains
        which = {} if of.trains or any(batch.of is of for batch in self.pending) else {"of": EVALUATED}
        if of.trains and self.probe.in_step and not self._updated:
            self._end()  # what comes next is of another epoch
        which |= {"loader": of.loader} if of.loader else {}
        self.probe.event("epoch_end", epoch=of.number, **which)

    def forward(self, start_ns: int, grad: bool) -> None:
        """A module that no other called begins its forward pass."""
        if grad and self._updated and not self._read_since:
            self._end()
        for batch in self.pending:
            batch.forwarded = True
        if grad:
            self._begin(start_ns)

    def forwarded(self, start_ns: int, end_ns: int) -> None:
        """It ended, with gradients wanted."""
        if self.probe.in_step:
            self.probe.add_span("forward", "compute", start_ns, end_ns)
            self.probe.count("forwards")

    def backward(self, start_ns: int, end_ns: int, loss: float | None) -> None:
        """A backward pass is over: what was read before it is trained on."""
        self._begin(start_ns)
        self._commit()
        self.probe.add_span("backward", "compute", start_ns, end_ns)
        self.probe.count("backward_calls")
        if loss is not None:
            self.probe.scalar("loss_local", loss)
        if self.after_backward is not None:
            self.after_backward()

    def backward_onto(self, *, used: bool = False, last_epoch: bool = False) -> None:
        """A backward pass adds to gradients that an update has used, or that are left of the epoch before."""
        if self.probe.in_step:
            self.probe.count("backward_onto_used", int(used))
            self.probe.count("backward_onto_last_epoch", int(last_epoch))

    def backward_unused(self, passes: int) -> None:
        """The gradients of so many backward passes were cleared, and no update used them."""
        if self.probe.in_step:
            self.probe.count("backward_unused", passes)

    def stepped(self, optimizer: Any, start_ns: int, end_ns: int) -> None:
        """An optimizer's step is over."""
        self._begin(start_ns)
        self._commit()
        self.probe.add_span("optimizer", "compute", start_ns, end_ns)
        self.probe.count("updates")
        self._updated, self._read_since = True, False
        self.updates += 1
        if self.after_update is not None:
            self.after_update(optimizer, self.updates)

    def end_if_enough(self) -> None:
        """Raise `EnoughSteps` where the optimizers have made as many steps as were asked for."""
        if self.most is not None and self.updates >= self.most:
            raise EnoughSteps(0)

    def close(self) -> None:
        """Write what is open."""
        self._drop_evaluated()
        self._release(None)
        if self.probe.in_step:
            self._end()

    # Steps

    def _release(self, first: Batch | None) -> None:
        """At the first backward pass: declare what is known by now, then let the probe write."""
        if self._released:
            return
        self._released = True
        if self.before_first is not None:
            self.before_first(first)
        self.probe.release()

    def _begin(self, start_ns: int) -> None:
        if self.probe.in_step:
            return
        for batch in self.pending:
            self._epoch = batch.of.number
        self.probe.begin_step(self._epoch, start_ns=min([start_ns, *(batch.start_ns for batch in self.pending)]))

    def _end(self) -> None:
        self.probe.end_step()
        self._updated = False

    def _commit(self) -> None:
        self._release(self.pending[0] if self.pending else None)
        for batch in self.pending:
            batch.of.trains = True
            self.probe.add_span("fetch", "data", batch.start_ns, batch.end_ns)
            self.probe.add_samples(TRAIN, batch.digests, batch.ids)
        self.pending.clear()

    def _drop_evaluated(self) -> None:
        """Batches whose forward pass led to no backward pass were evaluated."""
        kept = []
        for batch in self.pending:
            if not batch.forwarded:
                kept.append(batch)
            else:
                self.probe.add_seen(EVALUATED, batch.of.number, batch.digests, batch.ids)
        self.pending[:] = kept


def _digests(data: Any) -> list[int] | None:
    try:
        return digest_rows(samples_and_ids(data, None)[0])
    except Exception:  # what a batch may be, nobody knows: then it is not counted
        return None
