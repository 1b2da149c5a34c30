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
from ...record.whole_steps import Told
from .contents import contents_of
from .read_passes import Batch, Pass
from .sampling import BURST, Sampling, is_due, next_due
from .steps import TARGETS, TRAIN, Steps
from .streams import in_one_whole

_now = time.monotonic_ns

Fetched = tuple[Pass, list[int], int, int, "list[int] | None", int]
"""A batch whose samples have ids: its pass, they, begin and end of reading in ns, a hash of each sample where the ids alone
do not say which it is, and elements of those that are hashed."""

Seen = tuple[int, int, "float | None", "float | None", int, list[Fetched], bool]
"""Of one step: updates, calls of backward, learning rate, loss, calls of schedulers, what was read, and whether it is read
from the data that is trained on."""


@dataclass(eq=False)
class FollowedSteps(Steps):
    """Steps that are looked at in bursts, and followed between them. Between bursts only `followed_…` are called, and all of
    `Steps` may be: a script that holds what was replaced calls it still."""

    sampling: Sampling = field(default_factory=Sampling)
    since_update: int = 0
    """Backward passes since the last update, between bursts."""
    by_optimizer: dict[int, list[Any]] = field(default_factory=dict)
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
    _plain: Pass | None = None
    """The pass that is followed, where its batches have ids and each is used before the next is read."""
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
    _fetched: list[Fetched] = field(default_factory=list)
    _reads: list[Fetched] = field(default_factory=list)

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
            self._pass, self._plain, self._ahead = of, None, self.ahead.get(of.loader, 0)
            self._in_main = self.main is not None and in_one_whole(of.base, self.main.base)
        return True

    def follows(self, of: Pass, index: Any, data: Any, start_ns: int) -> bool:
        """A loader gave a batch between bursts: note it, if it is one more of the pass that is followed, and all was as ever
        since the one before. What else there is to ask, `is_followed` does: most steps need none of it.

        Args:
            of: its pass.
            index: what the sampler asked for.
            data: the batch.
            start_ns: when it was asked for.
        """
        if of is not self._plain or not self._updated or self._fetched or self.pending or self._ended:
            return False
        if self._wanted or self.updates + 1 >= self._due_at or self._loads != self.loads():
            return False
        if type(index) is not list or not index or not (type(index[0]) is type(index[-1]) is int):
            return False
        digests, elements = None, 0
        if not of.reread:
            found = contents_of(data, labels=False)
            if found is None or len(found[0]) != len(index):
                return False
            digests, elements, _ = found
        self._end()
        self._read_since = True
        of.given += 1
        of.rows += len(index)
        self._fetched.append((of, index.copy(), start_ns, _now(), digests, elements))
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
        if self.updates < self.sampling.until or is_due(self.updates + 1) or self.busy():
            return False
        if not self.fetched_last or len(self.pending) > self.ahead.get(of.loader, 0):
            return False
        self._pass, self._plain, self._loads, self._wanted = None, None, self.loads(), False
        self._due_at = next_due(self.updates)
        return True

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
        plain = of if of.whole_numbers and self._in_main and not self._ahead else None
        if ids is not None and of.reread:
            of.rows += len(ids)
            self._plain = plain
            self._fetched.append((of, ids, start_ns, end_ns, None, 0))
            return
        found = contents_of(data, labels=self._targets < TARGETS)
        if found is None:
            return
        digests, elements, targets = found
        of.rows += len(digests)
        fitting = ids if ids is not None and len(ids) == len(digests) else None
        if plain is not None and fitting is not None and targets is None:
            self._plain = plain
            self._fetched.append((of, fitting, start_ns, end_ns, digests, elements))
            return
        more = {"worker": worker, "elements": elements, "targets": targets}
        self.pending.append(Batch(of, digests, fitting, start_ns, end_ns, **more))

    def followed_backward(self, start_ns: int, of: Any) -> None:
        """A backward pass is over: what was read before it is trained on.

        Args:
            of: what backward was called on.
        """
        if not self.probe.in_step and not self._reads and not self._backwards:
            self.probe.step += 1  # the step that is noted: what happens in it carries its number
            self._start = min([start_ns, *(at[2] for at in self._fetched[:1]), *(b.start_ns for b in self.pending[:1])])
        self.since_update += 1
        self._backwards += 1
        self._loss, self.new_epoch = loss_of(of), False
        if self._plain is not None and len(self._fetched) == 1 and not self.pending and not self._reads:
            self._reads, self._fetched = self._fetched, self._reads
            first = self._reads[0][0]
            self._epoch, first.trains = first.number, True
            return
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
        if known is None:
            known = self.by_optimizer[id(optimizer)] = [optimizer, 0]
        known[1] += 1
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
        seen = (self._made, self._backwards, self._rate, self._loss, self.calls(), self._reads, self._in_main)
        self._reads, self._backwards, self._made, self._loss, self._rate = [], 0, 0, None, None
        if not self.probe.in_step:
            self._updated = False
            self.probe.whole_step(self._epoch, self._start, _told, seen)
            return
        self._add(seen)
        super()._end()

    def _add(self, seen: Seen) -> None:
        """What was noted of a step, to what else the probe has of it: the same as `_told` says of a step written whole."""
        made, backwards, rate, loss, calls, reads, in_main = seen
        for of, ids, start, end, digests, _ in reads:
            of.trains = True
            self.probe.add_span("fetch", "data", start, end)
            if in_main and digests is None:
                self.probe.add_ids(TRAIN, ids)
            elif in_main:
                self.probe.add_samples(TRAIN, digests or [], ids)
        self.probe.count("updates", made)
        self.probe.count("backward_calls", backwards)
        self.probe.count("between_bursts", 1)
        if in_main and reads and all(read[4] is not None for read in reads):
            self.probe.count("read_elements", sum(read[5] for read in reads))
        if rate is not None:
            self.probe.scalar("lr_used", rate)
        if loss is not None:
            self.probe.scalar("loss_local", loss)
        if calls:
            self.probe.scalar("scheduler_steps", float(calls))

    def _is_open(self) -> bool:
        return self.probe.in_step or bool(self._backwards or self._made)

    def pass_ended(self, of: Pass) -> None:
        self._give_back()
        super().pass_ended(of)

    def _give_back(self) -> None:
        """What was read and not used yet is for a burst to look at."""
        for of, ids, start, end, digests, elements in self._fetched:
            hashes = digests if digests is not None else [NOT_HASHED] * len(ids)
            self.pending.append(Batch(of, hashes, ids, start, end, elements=elements))
        self._fetched.clear()


def _told(seen: Seen) -> Told:
    """What the record holds of a step that was followed: see `FollowedSteps._end`."""
    made, backwards, rate, loss, calls, reads, in_main = seen
    counts = {"updates": made, "backward_calls": backwards, "between_bursts": 1}
    scalars = {"lr_used": rate, "loss_local": loss, "scheduler_steps": float(calls) or None}
    spans = [("fetch", "data", start, end) for _, _, start, end, _, _ in reads]
    if not in_main or not reads:
        return Told(spans, scalars, counts)
    ids = reads[0][1] if len(reads) == 1 else [one for read in reads for one in read[1]]
    if any(read[4] is None for read in reads):
        return Told(spans, scalars, counts, {TRAIN: ids})
    counts["read_elements"] = sum(read[5] for read in reads)
    return Told(spans, scalars, counts, {TRAIN: ids}, {TRAIN: [one for read in reads for one in read[4] or ()]})


def loss_of(of: Any) -> float | None:
    """The value of what backward is called on; None where it is several, or reading it waits for a device."""
    plain = type(of).__name__ == "Tensor"  # any other kind is asked whether ranks hold parts of it, which takes longer
    if getattr(of, "is_cpu", False) and of.numel() == 1 and (plain or not hasattr(of, "device_mesh")):
        return of.item()
    return None
