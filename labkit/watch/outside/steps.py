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

from ...record.probe import Probe
from .contents import contents_of, memory_of
from .feeds import ON_DEVICE, fed_rows
from .read_passes import Batch, Pass
from .streams import in_one_whole

_now = time.monotonic_ns

TRAIN, EVALUATED, FED, TARGET = "train", "validation", "fed", "targets"
HELD_OUT = ("validation", "validation_2", "validation_3", "validation_4")
"""Names of the first streams of data that are evaluated."""

TARGETS = 4096
"""Samples whose labels are noted, at most."""

FED_STEPS = 64
"""Steps in which is noted what modules are given beside what a loader gave."""


class EnoughSteps(SystemExit):
    """The script has made as many updates as were asked for, and ends here."""


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
    backward_in_update: bool = False
    """Whether an optimizer ever made backward passes of its own (a closure)."""
    fetched_last: int = 0
    """Batches that the last backward pass was made on."""
    in_update: bool = False
    """Whether an optimizer makes a step just now: backward passes then are its own (a closure), as many as it wants."""
    new_epoch: bool = False
    """Whether a batch of a loader's next pass was read since the last backward pass."""
    _open: dict[int, Pass] = field(default_factory=dict)
    _ended: list[Pass] = field(default_factory=list)
    ahead: dict[int, int] = field(default_factory=dict)
    """Loader: how many batches what is around it reads before they are used."""
    main: Pass | None = None
    """The first pass that was trained on: its stream of data is the one that is asked about."""
    _on_main: bool = True
    _fed_away: bool = False
    _targets: int = 0
    _rows_evaluated: int = 0
    _early: list[Batch] = field(default_factory=list)
    _held_out: list[int] = field(default_factory=list)
    _released: bool = False
    before_first: Callable[[Batch | None], None] | None = None
    after_update: Callable[[Any, int], None] | None = None
    after_backward: Callable[[], None] | None = None

    # What happens

    def fetched(
        self, of: Pass, data: Any, ids: list[int] | None, start_ns: int, end_ns: int, worker: int | None = None
    ) -> None:
        """A loader gave a batch."""
        self._enter(of)
        if self._updated:
            self._end()
        self._read_since = True
        of.read += 1
        of.given += 1
        of.begin_ns = of.begin_ns or start_ns
        found = contents_of(data)
        if found is None:
            return
        digests, elements, targets = found
        of.rows += len(digests)
        fitting = ids if ids is not None and len(ids) == len(digests) else None
        self.pending.append(Batch(of, digests, fitting, start_ns, end_ns, memory_of(data), worker, elements, targets))

    def _enter(self, of: Pass) -> None:
        """A batch of this pass was read, perhaps its first one."""
        self._drop_evaluated()
        before = self._open.get(of.loader)
        if before is not None and before is not of:
            self._end_if_whole(before)
        self._open[of.loader] = of
        self._end_passes(but=of)

    def pass_ended(self, of: Pass) -> None:
        """A loader has no more batches in this pass. A wrapper that reads ahead may hold some that are still to be used."""
        self._drop_evaluated()
        of.ended = True
        self._ended.append(of)
        if all(batch.of is not of for batch in self.pending):
            self._end_passes()

    def _end_if_whole(self, of: Pass) -> None:
        """A loop that counts batches does not ask for one more than there are, and so hears of no end."""
        if not of.ended and of.given == of.batches:
            self.pass_ended(of)

    def _end_passes(self, but: Pass | None = None) -> None:
        """Write that passes have ended of which no batch is still to be used."""
        for of in [of for of in self._ended if of is not but]:
            self._ended.remove(of)
            self.new_epoch = self.new_epoch or of.trains
            if of.trains and self._is_open() and not self._updated:
                self._end()  # what comes next is of another epoch
            if not of.trains and all(batch.of is not of for batch in self.pending):
                self.probe.event("epoch_end", epoch=of.number, of=EVALUATED, **({"loader": of.loader} if of.loader else {}))
                self._tell_evaluated(of)
            elif self._is_main(of):
                self.probe.event("epoch_end", epoch=of.number)

    def forward(self, start_ns: int, grad: bool, given: Any = None) -> None:
        """A module that no other called begins its forward pass.

        Args:
            given: what it is called with. Where that lies in a batch that was read, later ones were read ahead.
        """
        if grad and self._updated and not self._read_since:
            self._end()
        for batch in self._batches_in(given):
            batch.forwarded = True
        if grad:
            self._begin(start_ns)
            self._feed(given)

    def _feed(self, given: Any) -> None:
        """Note what a module is given: in the first steps, and as long as no loader's batches are trained on."""
        step = self.probe.step
        if given is None or (self.main is not None and step >= FED_STEPS):
            return
        try:
            found = fed_rows(given) if not self._fed_away or step < ON_DEVICE else None
        except Exception:  # what a module may be given, nobody knows: then it is not counted
            found = None
        if found is not None:
            digests, elements, self._fed_away = found
            self.probe.add_samples(FED, digests)
            self.probe.count("fed_elements", elements)

    def _tell_evaluated(self, of: Pass) -> None:
        """A pass has ended that was not trained on: its batches went through a model, or there were none."""
        if of.evaluated or not (of.given or (self.main is not None and self._is_main(of))):
            seconds = (_now() - of.begin_ns) / 1e9 if of.given else 0.0
            told = {"loader": of.loader, "number": of.number, "rows": of.rows, "size": of.whole}
            self.probe.event("evaluation_pass", seconds=seconds, updates=self.updates, **told)

    @property
    def rows_evaluated(self) -> int:
        """Samples that were evaluated since the last update."""
        return self._rows_evaluated + sum(len(batch.digests) for batch in self.pending if batch.forwarded)

    @property
    def is_updated(self) -> bool:
        """Whether the step that is open has made its update."""
        return self._updated

    def _is_main(self, of: Pass) -> bool:
        """Whether a pass reads the data that is asked about."""
        return self.main is None or of.loader == self.main.loader

    def _batches_in(self, given: Any) -> list[Batch]:
        """The batches that a model is called with: those up to the last one whose memory it is given. Where it is given
        none, being given copies on another device, the loader's newest batches are held back, as many as are read ahead."""
        passes = self._passes()
        for of in passes:
            self._learn_ahead(of)
        known = self._known_in(given) if len(self.pending) > 1 and given is not None else []
        self._drop_looks(passes, known)
        if known:
            return self.pending[: self.pending.index(known[-1]) + 1]
        return [batch for of in self._passes() for batch in self._due(of)]

    def _known_in(self, given: Any) -> list[Batch]:
        """The batches in whose memory lies what a model is given. Memory that two batches had is the later one's."""
        memory, known = memory_of(given), []
        for batch in reversed(self.pending):
            if batch.memory & memory:
                known.insert(0, batch)
                memory -= batch.memory
        return known

    def _passes(self) -> list[Pass]:
        return list({id(batch.of): batch.of for batch in self.pending}.values())

    def _due(self, of: Pass) -> list[Batch]:
        """The batches of a pass that are not only read ahead."""
        mine = [batch for batch in self.pending if batch.of is of]
        ahead = self.ahead.get(of.loader, 0)
        if ahead and of.ended:
            return mine[:1]
        return mine[: max(0, len(mine) - ahead)]

    def _drop_looks(self, passes: list[Pass], known: list[Batch]) -> None:
        """Forget batches that the script only looked at, as next(iter(loader)) does to learn a shape: it has let go of
        their pass and uses a later one of the same loader."""
        for of in passes:
            later = any(other.loader == of.loader and other.number > of.number for other in passes)
            if later and of.dropped() and all(batch.of is not of for batch in known):
                self.pending = [batch for batch in self.pending if batch.of is not of]

    def _learn_ahead(self, of: Pass) -> None:
        """Before the first call of a model a wrapper that reads ahead has read more batches than between later calls."""
        if not of.read:
            return
        if not of.first_read:
            of.first_read = of.read
        elif of.loader not in self.ahead:
            self.ahead[of.loader] = max(0, of.first_read - of.read)
        of.read = 0

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

    def backward_unused(self, passes: int, *, at_end: bool) -> None:
        """The gradients of so many backward passes were cleared, and no update used them.

        Args:
            at_end: whether they are the last of an epoch.
        """
        if self.probe.in_step:
            self.probe.count("backward_unused" if at_end else "backward_cleared", passes)

    def stepped(self, optimizer: Any, start_ns: int, end_ns: int) -> None:
        """An optimizer's step is over."""
        self._begin(start_ns)
        if not self.probe.counted("backward_calls"):
            self._commit()  # gradients that no call of backward made
        self.probe.add_span("optimizer", "compute", start_ns, end_ns)
        self.probe.count("updates")
        self._updated, self._read_since = True, False
        self._rows_evaluated = 0
        self.updates += 1
        if self.after_update is not None:
            self.after_update(optimizer, self.updates)

    def end_if_updated(self) -> None:
        """Write the step that is open, where its update is made."""
        if self._is_open() and self._updated:
            self._end()

    def end_if_enough(self) -> None:
        """Raise `EnoughSteps` where the optimizers have made as many steps as were asked for."""
        if self.most is not None and self.updates >= self.most:
            raise EnoughSteps(0)

    def close(self) -> None:
        """Write what is open."""
        self._drop_evaluated()
        for of in self._open.values():
            self._end_if_whole(of)
        self._end_passes()
        self._release(None)
        if self._is_open():
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
        used = self._used()
        for batch in used:
            if self._is_main(batch.of):
                self._epoch = batch.of.number
        self.probe.begin_step(self._epoch, start_ns=min([start_ns, *(batch.start_ns for batch in used)]))

    def _is_open(self) -> bool:
        """Whether there is a step to be written."""
        return self.probe.in_step

    def _end(self) -> None:
        self.probe.end_step()
        self._updated = False

    def _used(self) -> list[Batch]:
        """The batches that a model was called with; all where none was, for then no call was seen."""
        called_with = [batch for batch in self.pending if batch.forwarded]
        if called_with or any(self.ahead.get(batch.of.loader) for batch in self.pending):
            return called_with
        return self.pending

    def _commit(self) -> None:
        used = self._used()
        self.fetched_last = len(used)
        if self.main is None and used:
            self.main = used[0].of
        self._release(used[0] if used else None)
        for batch in used:
            batch.of.trains = True
            self.probe.add_span("fetch", "data", batch.start_ns, batch.end_ns)
        if used:
            self._on_main = any(self._is_main(batch.of) for batch in used)
        for batch in used:
            # one of another data set has ids of its own
            if self._on_main and self.main is not None and in_one_whole(batch.of.base, self.main.base):
                self._trained(batch)
        for batch in self._early if self.main is not None else ():
            self._evaluated(batch)
        self._early = [] if self.main is not None else self._early
        self.pending = [batch for batch in self.pending if batch not in used]

    def _trained(self, batch: Batch) -> None:
        self.probe.add_samples(TRAIN, batch.digests, batch.ids)
        self.probe.count("read_elements", batch.elements)
        if batch.targets is not None and batch.ids is not None and self._targets < TARGETS:
            self._targets += len(batch.targets)
            self.probe.add_samples(TARGET, batch.targets, batch.ids)
        if batch.worker is not None and batch.ids is None:
            self.probe.series("batch_worker", [batch.worker])
            self.probe.series("batch_rows", [len(batch.digests)])

    def _evaluated(self, batch: Batch) -> None:
        """A batch was evaluated: it was held out, unless it is of the data that are trained on, as for an accuracy on them,
        or of a training that has gone over to other data."""
        if self.main is None:
            self._early.append(batch)
            return
        same_data = batch.of.all_of is not None and batch.of.all_of == self.main.all_of
        if self._is_main(batch.of) or same_data or batch.of.trains or not self._on_main:
            return
        if batch.of.loader not in self._held_out:
            self._held_out.append(batch.of.loader)
        at = self._held_out.index(batch.of.loader)
        ids = batch.ids if in_one_whole(batch.of.base, self.main.base) else None
        for name in HELD_OUT[at : at + 1]:
            self.probe.add_seen(name, batch.of.number, batch.digests, ids)

    def _drop_evaluated(self) -> None:
        """Batches whose forward pass led to no backward pass were evaluated."""
        kept = []
        for batch in self.pending:
            if not batch.forwarded:
                kept.append(batch)
            else:
                batch.of.evaluated = True
                self._rows_evaluated += len(batch.digests)
                self._evaluated(batch)
        self.pending[:] = kept
