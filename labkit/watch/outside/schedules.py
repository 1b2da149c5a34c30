"""Learning rates: what each update used, and how schedulers were stepped."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from, named
from .written import store_of_rate

LENGTHS = ("total_steps", "T_max", "total_iters")
"""Attributes in which torch's schedulers keep how many steps they are made for."""


@dataclass(eq=False)
class _Schedule:
    """What is known of one scheduler."""

    kind: str
    where: str
    stepped_at: str = ""
    length: int = 0
    calls: int = 0
    before_update: int = 0
    given: bool = False
    within: bool = False
    updates: int = 0
    rates: tuple[float, float] | None = None
    """First and last learning rate that it set, where only another optimizer with the same parameters makes updates."""


class Schedules:
    """The learning-rate schedulers of the process. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.calls, self._updates = 0, 0
        self._inside = False
        self._known: weakref.WeakKeyDictionary[Any, _Schedule] = weakref.WeakKeyDictionary()
        self._every: list[_Schedule] = []
        self._of_optimizer: weakref.WeakKeyDictionary[Any, list[_Schedule]] = weakref.WeakKeyDictionary()
        self._updating: weakref.WeakSet[Any] = weakref.WeakSet()
        self._beside: dict[str, tuple[float, float]] = {}
        self.where = ""
        self._followed: Callable[[], Any] = lambda: None
        """The scheduler that was stepped last, if its optimizer makes updates: between bursts its calls are counted."""
        self._followed_as = _Schedule("", "")

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.optim import lr_scheduler

        watch, sampling = self, patches.sampling
        note, made = patches.noting(self._stepped), patches.noting(self._made)

        def around(original):
            def step(scheduler, *args, **kwargs):
                # the first one is made by the scheduler itself, and one of a chain by the chain
                if watch._inside or getattr(scheduler, "_is_initial", False):
                    return original(scheduler, *args, **kwargs)
                if not sampling.in_burst and not args and not kwargs and watch._followed() is scheduler:
                    watch.calls += 1
                    watch._followed_as.calls += 1
                else:
                    given = args[0] if args else next(iter(kwargs.values()), None)
                    note(scheduler, given, called_from() if sampling.in_burst else "")
                watch._inside = True
                try:
                    return original(scheduler, *args, **kwargs)
                finally:
                    watch._inside = False

            return step

        def making(original):
            def __init__(scheduler, *args, **kwargs):
                outer, watch._inside = watch._inside, True
                try:
                    original(scheduler, *args, **kwargs)
                finally:
                    watch._inside = outer
                made(scheduler, called_from())

            return __init__

        for kind in vars(lr_scheduler).values():
            if isinstance(kind, type) and kind.__module__ == lr_scheduler.__name__:
                if "step" in vars(kind):
                    patches.wrap(kind, "step", around)
                if issubclass(kind, lr_scheduler.LRScheduler) and "__init__" in vars(kind):
                    patches.wrap(kind, "__init__", making)

    def _made(self, scheduler: Any, where: str) -> None:
        """A scheduler was made; of a class that calls the one above it, both say so."""
        if scheduler not in self._known:
            self._known[scheduler] = _Schedule(type(scheduler).__name__, where)
            self._every.append(self._known[scheduler])
            if getattr(scheduler, "optimizer", None) is not None:
                self._of_optimizer.setdefault(scheduler.optimizer, []).append(self._known[scheduler])
        self._known[scheduler].length = _length(scheduler)
        for part in getattr(scheduler, "_schedulers", ()):
            if part in self._known:
                self._known[part].within = True

    def _stepped(self, scheduler: Any, given: Any, where: str) -> None:
        self.calls += 1
        self.where = self.where or where
        if self.calls == 1:
            self._probe.event("scheduler", where=where, updates_before=self._updates)
        known = self._known.get(scheduler)
        if known is None:
            return
        self._followed, self._followed_as = (weakref.ref(scheduler) if known.updates else lambda: None), known
        known.calls += 1
        known.stepped_at = where or known.stepped_at
        known.given = known.given or given is not None
        known.before_update += not known.updates
        if not known.updates and known.calls & (known.calls - 1) == 0:
            self._look_past(scheduler, known)
        if known.kind == "ReduceLROnPlateau" and given is not None:
            self._probe.event("plateau", metric=float(given), where=where or known.stepped_at)

    def _look_past(self, scheduler: Any, known: _Schedule) -> None:
        """The scheduler's optimizer made no update so far. Does another one that has the same parameters, and no group of
        them in common through which the learning rate would reach it?"""
        own = getattr(scheduler, "optimizer", None)
        if own is None or known.within:
            return
        held = {id(parameter) for group in own.param_groups for parameter in group["params"]}
        groups = {id(group) for group in own.param_groups}
        for other in self._updating:
            same = any(id(parameter) in held for group in other.param_groups for parameter in group["params"])
            if same and not any(id(group) in groups for group in other.param_groups):
                rate = float(own.param_groups[0]["lr"])
                known.rates = (known.rates[0] if known.rates else rate, rate)

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step: write which learning rate it used, and what the schedulers did since the last."""
        self.skipped(optimizer, 1)
        self._updating.add(optimizer)
        if not self._probe.in_step:
            return
        rate = rate_of(optimizer)
        if rate is not None:
            self._probe.scalar("lr_used", rate)
        for name, value in _rates_beside(optimizer):
            self._beside[name] = (self._beside.get(name, (value,))[0], value)
        if self.calls:
            self._probe.scalar("scheduler_steps", self.calls)

    def skipped(self, optimizer: Any, updates: int) -> None:
        """An optimizer made so many updates."""
        self._updates += updates
        for known in self._of_optimizer.get(optimizer, ()):
            known.updates += updates

    def close(self, cut: bool) -> None:
        """The run is over: write what became of each scheduler.

        Args:
            cut: whether it was ended because it had made as many updates as were asked for.
        """
        for name, (first, last) in self._beside.items():
            if first != last:
                at = store_of_rate()
                self._probe.event("lr_beside", what=name, first=first, last=last, where=named(*at) if at else "")
        for known in self._every:
            if known.rates and not known.updates:
                first, last = known.rates
                self._probe.event(
                    "scheduler_astray", scheduler=known.kind, where=known.where, calls=known.calls, first=first, last=last
                )
            if known.within or not known.updates:
                continue
            self._probe.event(
                "scheduler_end",
                scheduler=known.kind,
                where=known.where,
                calls=known.calls,
                before_first_update=known.before_update,
                given=known.given,
                length=known.length,
                updates=known.updates,
                cut=cut,
            )


def rate_of(optimizer: Any) -> float | None:
    """The learning rate of an optimizer's group that has the largest; None without one."""
    groups = optimizer.param_groups
    if len(groups) == 1 and type(rate := groups[0].get("lr")) is float:
        return rate
    rates = [float(group["lr"]) for group in groups if group.get("lr") is not None]
    return max(rates, key=abs) if rates else None


def _rates_beside(optimizer: Any) -> list[tuple[str, float]]:
    """(how it is written, value) of what a script may take for an optimizer's learning rate, and no step of torch reads."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return []
    of_groups = optimizer.defaults.get("lr")
    found = [(f"optimizer.{name}", vars(optimizer)[name]) for name in ("lr", "learning_rate") if name in vars(optimizer)]
    every = [*found, ('optimizer.defaults["lr"]', of_groups)]
    return [(name, float(value)) for name, value in every if isinstance(value, (int, float))]


def _length(scheduler: Any) -> int:
    """For how many of its steps a scheduler is made; 0 where it does not say."""
    for name in LENGTHS:
        value = getattr(scheduler, name, None)
        if isinstance(value, (int, float)) and value > 0:
            return int(value)
    for function in getattr(scheduler, "lr_lambdas", ()):
        value = (getattr(function, "keywords", None) or {}).get("num_training_steps")
        if isinstance(value, (int, float)) and value > 0:
            return int(value)
    return 0
