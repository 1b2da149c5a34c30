"""What is noted of each step between bursts (see `sampling`), in as few calls as will do.

The epoch, which samples were read, calls of backward, the loss where reading it waits for nothing, updates and their
learning rate. Each such step carries the count `between_bursts`: what it does not have was not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...record.columns import NOT_HASHED
from .contents import contents_of
from .read_passes import Batch, Pass
from .sampling import BURST, Sampling, next_due
from .steps import TRAIN, Steps
from .streams import in_one_whole

_now = time.monotonic_ns


@dataclass(eq=False)
class FollowedSteps(Steps):
    """Steps that are looked at in bursts, and followed between them. Between bursts only `followed_…` are called, and all of
    `Steps` may be: a script that holds what was replaced calls it still."""

    sampling: Sampling = field(default_factory=Sampling)
    since_update: int = 0
    """Backward passes since the last update, between bursts."""
    by_optimizer: dict[int, tuple[Any, int]] = field(default_factory=dict)
    """Between bursts: each optimizer that made updates, and how many."""
    busy: Callable[[], bool] = lambda: False
    """Whether a watcher waits for something that only a burst shows."""
    loads: Callable[[], int] = lambda: 0
    """How many states were loaded."""
    noted: Callable[[Any], float | None] = lambda optimizer: None
    """Called with each update's optimizer between bursts; gives its learning rate."""
    calls: Callable[[], int] = lambda: 0
    """How often learning-rate schedulers were stepped."""
    _pass: Pass | None = None
    _in_main: bool = True
    _ahead: int = 0
    _due_at: int = 0
    _loads: int = 0
    _wanted: bool = False
    _backwards: int = 0
    _made: int = 0
    _start: int = 0
    _loss: float | None = None
    _rate: float | None = None
    _fetched: list[tuple[Pass, list[int], int, int]] = field(default_factory=list)
    _reads: list[tuple[Pass, list[int], int, int]] = field(default_factory=list)

    # When

    def is_followed(self, of: Pass) -> bool:
        """A loader gave a batch: whether it is only followed. Ends a burst, and begins one, where it is time."""
        if self.sampling.in_burst:
            if not self._updated or not self._may_rest(of):
                return False
            self.sampling.end()
            if self.sampling.in_burst:
                return False
        elif self._is_called_for(of):
            self.look_closely()
            return False
        if of is not self._pass or self._ended:
            self._enter(of)
            self._pass, self._ahead = of, self.ahead.get(of.loader, 0)
            self._in_main = self.main is not None and in_one_whole(of.base, self.main.base)
        return True

    def look_closely(self) -> None:
        """Begin a burst, if none is under way."""
        if not self.sampling.in_burst:
            if self._updated:
                self._end()
            self.open_step()
            self._give_back()
            self.sampling.until = self.updates + BURST
            self.sampling.begin()
            self.since_update, self._wanted = 0, False
            self.by_optimizer.clear()

    def want_a_burst(self) -> None:
        """Have one begin with the next batch. May be called from a hook."""
        self._wanted = True

    def _may_rest(self, of: Pass) -> bool:
        """Whether the script does what it did before: it trains on each batch of its main loader as it comes."""
        if self.main is None or of.loader != self.main.loader or not self._on_main or self.backward_in_update:
            return False
        self._due_at = next_due(self.updates)
        if self._due_at == self.updates + 1 or self.updates < self.sampling.until or self.busy():
            return False
        self._pass, self._loads, self._wanted = None, self.loads(), False
        return self.fetched_last > 0 and len(self.pending) <= self.ahead.get(of.loader, 0)

    def _is_called_for(self, of: Pass) -> bool:
        """Whether something was done that is to be looked at, or it is time."""
        if self._updated and self.updates + 1 >= self._due_at:
            return True
        if len(self.pending) + len(self._fetched) > self._ahead or self._wanted or self._loads != self.loads():
            return True  # a batch that nobody trained on; an exchange of weights; a load
        if of is self._pass:
            return False
        # another loader; or gradients that are left of the epoch before
        return self.main is None or of.loader != self.main.loader or self.since_update > 0

    # What is noted

    def followed_batch(self, of: Pass, data: Any, ids: list[int] | None, start_ns: int, end_ns: int, worker: Any) -> None:
        """A loader gave a batch."""
        if self._updated:
            self._end()
        self._read_since = True
        of.given += 1
        if ids is not None and of.reread:
            of.rows += len(ids)
            self._fetched.append((of, ids, start_ns, end_ns))
            return
        found = contents_of(data)
        if found is not None:
            digests, elements, targets = found
            of.rows += len(digests)
            fitting = ids if ids is not None and len(ids) == len(digests) else None
            more = {"worker": worker, "elements": elements, "targets": targets}
            self.pending.append(Batch(of, digests, fitting, start_ns, end_ns, **more))

    def followed_backward(self, start_ns: int, loss: float | None) -> None:
        """A backward pass is over: what was read before it is trained on."""
        if not self.probe.in_step and not self._reads and not self._backwards:
            self.probe.step += 1  # the step that is noted: what happens in it carries its number
            self._start = min([start_ns, *(at[2] for at in self._fetched[:1]), *(b.start_ns for b in self.pending[:1])])
        self.since_update += 1
        self._backwards += 1
        self._loss, self.new_epoch = loss, False
        if self.pending:
            self._commit_pending()
            return
        fetched = self._fetched
        used = len(fetched) - self._ahead if not (self._ahead and fetched and fetched[0][0].ended) else 1
        if used > 0:
            self._reads += fetched[:used]
            del fetched[:used]
            first = self._reads[0][0]
            self._epoch, first.trains = first.number, True

    def _commit_pending(self) -> None:
        """What was read has contents to be noted, or was read before a burst ended: write it as in a burst."""
        used = self._due(self._pass) if self._ahead and self._pass is not None else self.pending
        for batch in used:
            batch.of.trains = True
            self._epoch = batch.of.number
        self.open_step()
        for batch in used:
            self.probe.add_span("fetch", "data", batch.start_ns, batch.end_ns)
            if self._in_main:
                self._trained(batch)
        self.pending = [] if used is self.pending else [batch for batch in self.pending if batch not in used]

    def followed_update(self, optimizer: Any) -> None:
        """An optimizer's step is over."""
        if not self._backwards and not self.probe.in_step and not self._updated:
            self.probe.step += 1
            self._start = _now()
        self._updated, self._read_since, self._rows_evaluated = True, False, 0
        self.updates += 1
        self.since_update = 0
        self._made += 1
        known = self.by_optimizer.get(id(optimizer))
        self.by_optimizer[id(optimizer)] = (optimizer, known[1] + 1 if known is not None else 1)
        self._rate = self.noted(optimizer)

    def open_step(self) -> None:
        """Something is to be counted in the step that is noted: have the probe open it."""
        if self.sampling.in_burst or self.probe.in_step:
            return
        read = [*self._fetched[:1], *((batch.of, batch.ids, batch.start_ns, 0) for batch in self.pending[:1])]
        if self._backwards or self._made:
            self.probe.step -= 1
        elif read:
            self._epoch, self._start = read[0][0].number, read[0][2]
        else:
            return
        self.probe.begin_step(self._epoch, start_ns=self._start)

    def _end(self) -> None:
        """Write what was noted of the step: in few lines at a time, or with what else the probe has of it."""
        if not (self._backwards or self._made):
            return super()._end()
        counts = {"updates": self._made, "backward_calls": self._backwards, "between_bursts": 1}
        scalars = {"lr_used": self._rate, "loss_local": self._loss, "scheduler_steps": float(self.calls()) or None}
        reads, self._reads = self._reads, []
        self._backwards, self._made, self._loss, self._rate = 0, 0, None, None
        if self.probe.in_step:
            for of, ids, start, end in reads:
                of.trains = True
                self.probe.add_span("fetch", "data", start, end)
                if self._in_main:
                    self.probe.add_ids(TRAIN, ids)
            for counted, amount in counts.items():
                self.probe.count(counted, amount)
            for measured, value in scalars.items():
                if value is not None:
                    self.probe.scalar(measured, value)
            return super()._end()
        self._updated = False
        fetches = [("fetch", "data", start, end) for _, _, start, end in reads]
        ids = [one for _, ids, _, _ in reads for one in ids] if self._in_main else []
        self.probe.whole_step(self._epoch, self._start, fetches, scalars, counts, {TRAIN: ids})

    def _is_open(self) -> bool:
        return self.probe.in_step or bool(self._backwards or self._made)

    def pass_ended(self, of: Pass) -> None:
        self._give_back()
        super().pass_ended(of)

    def _give_back(self) -> None:
        """What was read and not used yet is for a burst to look at."""
        self.pending += [Batch(of, [NOT_HASHED] * len(ids), ids, start, end) for of, ids, start, end in self._fetched]
        self._fetched.clear()


def loss_of(of: Any) -> float | None:
    """The value of what backward is called on; None where it is several, or reading it waits for a device."""
    if getattr(of, "is_cpu", False) and of.numel() == 1 and not hasattr(of, "device_mesh"):
        return of.item()
    return None
