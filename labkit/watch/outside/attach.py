"""All watchers of a script, attached and detached together."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from ...record.probe import Probe
from . import ends, sources
from .checkpoints import Checkpoints
from .collectives import Collectives, last_calls
from .effects import Effects
from .following import FollowedSteps
from .gathers import Gathers
from .idle import Idle
from .inputs import Inputs
from .loaders import Loaders
from .metrics import Metrics
from .modes import Modes
from .optimizers import Optimizers
from .parameters import Parameters
from .passes import Passes
from .patches import Patches, count_paths_from_here
from .precision import Precision
from .replicas import Replicas
from .samplers import Samplers
from .schedules import Schedules, rate_of
from .shadow import Shadow
from .sharding import Sharding
from .shares import share_of_data
from .starts import Starts
from .steps import Batch
from .warned import Warned
from .weighting import Weighting
from .workers import Workers
from .works import Works
from .wrappers import Wrappers

LAST_CALL = ".call"
"""Suffix of the file beside a rank's record that holds its last collective."""


class Attached:
    """What watches this process. *Called on* each rank, before the script runs; `close` it once.

    Args:
        probe: this rank's.
        steps: of the optimizer after which the script is ended; None lets it run.
        leaving: called as the script tears its process groups down.
    """

    def __init__(self, probe: Probe, steps: int | None = None, leaving: Callable[[], None] = lambda: None) -> None:
        self.probe = probe
        probe.hold()
        count_paths_from_here()
        self.patches = Patches()
        self.steps = FollowedSteps(probe, steps, sampling=self.patches.sampling)
        self.loaders, self.samplers = Loaders(self.steps), Samplers(probe)
        self.loaders.begins = self.patches.noting(self.samplers.begins)
        self.replicas = Replicas(probe)
        self.starts, self.sharding = Starts(probe), Sharding(probe, lambda: self.replicas.models)
        self.replicas.begins = (self.starts.met, self.sharding.met)
        self.passes = Passes(self.steps, self.replicas.met)
        self.inputs = Inputs(probe)
        self.modes = Modes(probe, self.steps, lambda: self.replicas.models)
        self.passes.before_forward = self._forward_begins
        self.parameters = Parameters(probe, lambda: self.replicas.models)
        self.idle = Idle(probe, lambda: self.replicas.models)
        self.precision = Precision(probe, self.passes.scaler_asked)
        self.schedules = Schedules(probe)
        self.effects = Effects(probe)
        self.workers = Workers(probe)
        seen = self.steps
        self.metrics = Metrics(probe, lambda: seen.rows_evaluated, lambda: seen.updates, lambda: seen.is_updated)
        self.steps.after_backward = self._after_backward
        self.checkpoints = Checkpoints(probe, lambda: self.replicas.models, lambda: self.collectives.number)
        self.weighting = Weighting(probe)
        self.passes.fed = self.weighting.fed
        self.shadow = Shadow(probe, self.replicas.name_of)
        self._after_passes = [self.patches.noting(note) for note in (self.effects.backward, self.sharding.backward)]
        self._idle_updated = self.patches.noting(self.idle.updated)
        self.steps.after_update = self._updated
        self.optimizers = Optimizers(self.steps)
        self.wrappers = Wrappers(probe)
        self.works = Works(probe)

        def leaves() -> None:
            self.works.let_go()
            self.gathers.let_go()
            self.replicas.look()
            self.steps.end_if_updated()  # tearing down hangs now and then, and what is open would be lost
            leaving()

        self.collectives = Collectives(
            probe,
            probe.path.with_suffix(LAST_CALL),
            leaving=leaves,
            phase=lambda: self.passes.phase,
            exchanged=self.replicas.exchanged,
        )
        self.gathers = Gathers(probe)
        self.weighting.before = self.patches.noting(self.gathers.backward)
        self.collectives.begun = self._collective_begun
        self.steps.before_first = self._declare
        for watcher in (
            self.loaders,
            self.samplers,
            self.passes,
            self.optimizers,
            self.wrappers,
            self.metrics,
            self.collectives,
            self.parameters,
            self.precision,
            self.schedules,
            self.effects,
            self.workers,
            self.checkpoints,
            self.starts,
            self.sharding,
            self.weighting,
            self.shadow,
            self.works,
            Warned(),
        ):
            watcher.attach(self.patches)
        self._caught_up: dict[int, int] = {}
        self._sample_in_bursts()

    def _sample_in_bursts(self) -> None:
        """Have what is looked at closely be looked at in bursts: see `sampling`."""
        steps, sampling = self.steps, self.patches.sampling
        steps.busy = lambda: self.checkpoints.evaluations.is_waiting or self.replicas.is_due
        steps.loads = lambda: self.checkpoints.loads.seen.generation
        steps.noted = self._followed()
        steps.calls = lambda: self.schedules.calls
        self.collectives.opens = steps.open_step
        self.replicas.updates = lambda: steps.updates
        self.checkpoints.saves.before = self._catch_up
        self.replicas.wants_a_look = steps.want_a_burst
        self.passes.only_in_bursts(self.patches)
        self.optimizers.follow(self.patches)
        sampling.begins.append(self._burst_begins)
        sampling.ends.append(self._burst_ends)

    def _followed(self) -> Callable[[Any], float | None]:
        """What is called with each update between bursts."""
        evaluations, rate = self.checkpoints.evaluations.updated, rate_of

        def followed(optimizer: Any) -> float | None:
            evaluations(optimizer)
            return rate(optimizer)

        return followed

    def _catch_up(self) -> None:
        """Tell who counts updates of those that were made between bursts."""
        steps = self.steps
        for key, (optimizer, updates) in list(steps.by_optimizer.items()):
            self.schedules.skipped(optimizer, updates - self._caught_up.get(key, 0))
            self.checkpoints.skipped(optimizer, updates - self._caught_up.get(key, 0), steps.updates)
            self._caught_up[key] = updates

    def _burst_begins(self) -> None:
        """Go on as if what was made meanwhile had been looked at."""
        steps = self.steps
        followed = list(steps.by_optimizer.values())
        made = sum(updates for _, updates in followed)
        self._catch_up()
        self._caught_up.clear()
        self.replicas.resumed(steps.updates, made)
        self.passes.resumed(made, steps.since_update)
        self.precision.resumed()
        self.sharding.skipped(made)
        for optimizer, updates in followed:
            self.effects.skipped(optimizer, updates)
            self.shadow.skipped(optimizer, updates)
        for watch in self.wrappers.watches:
            watch.resume()

    def _burst_ends(self) -> None:
        self.works.let_go()
        self.gathers.let_go()
        self.replicas.paused()
        for watch in self.wrappers.watches:
            watch.pause()

    def _collective_begun(self, *what: Any) -> None:
        if self.patches.sampling.in_burst:
            self.works.begun(*what)
            self.gathers.begun(*what)

    def _declare(self, first: Batch | None) -> None:
        """State what is known of the script when its first update is made."""
        probe = self.probe
        probe.declare(watched_by="doctor")
        self._place(probe)
        if first is not None:
            probe.declare(batch_size=len(first.digests))
            probe.declare(loader_where=self.loaders.where.get(first.of.loader, ""))
            probe.declare(workers=self.loaders.workers.get(first.of.loader, 0))
            if first.of.size is not None:
                probe.declare(dataset_size=first.of.size)
        probe.declare(loop_where=self.passes.where_backward)
        if self.wrappers.watches:
            probe.declare(ddp_modules=len(self.wrappers.watches))
        probe.declare(optimizer_where=self.parameters.where)
        probe.declare(wrap_where=self.wrappers.where, ddp_made_by=self.wrappers.made_by)

    def _place(self, probe: Probe) -> None:
        """State where the script runs, and how many ranks its process group has."""
        import torch
        import torch.distributed as dist

        devices = [str(p.device) for model in self.replicas.models for p in model.parameters()]
        met = dist.is_available() and dist.is_initialized()
        backend = str(dist.get_backend()) if met else "none"
        probe.runs_on(device=next(iter(devices), "cpu"), backend=backend, threads=torch.get_num_threads())
        probe.declare(group_size=dist.get_world_size() if met else 0)
        share = share_of_data(self.replicas.models) if met else None
        if share is not None:
            probe.declare(data_rank=share)

    def _forward_begins(self, module: Any, args: Any, kwargs: Any, learns: bool) -> None:
        self.replicas.look()
        self.modes.called(module)
        if learns:
            self.metrics.batches.trains()
            self.inputs.given(module, args, kwargs)
        else:
            self.metrics.batches.evaluates(args, kwargs)
            self.checkpoints.evaluated(module)

    def _after_backward(self) -> None:
        for note in self._after_passes:
            note()

    def _updated(self, optimizer: Any, update: int) -> None:
        self.precision.updating(optimizer, update)
        self.schedules.updated(optimizer)
        self.passes.updated(optimizer)
        self.parameters.stepped(optimizer)
        self.sharding.updating()
        self.modes.updated(optimizer)
        self.replicas.updated(optimizer, update)
        self.parameters.updated(update)
        self._idle_updated(optimizer, update)
        self.checkpoints.updated(optimizer, update)

    def raised(self, error: BaseException) -> None:
        """The script raised: note where, and whether it waited for other ranks there. *Called* before `close`."""
        self.patches.noting(ends.note)(self.probe, error, last_calls(self.probe.path.with_suffix(LAST_CALL)))

    def abandon(self) -> None:
        """Put back what was replaced, and write nothing: for a process that was forked off a watched one."""
        self.patches.sampling.begin()
        self.optimizers.detach()
        self.shadow.detach()
        self.works.detach()
        self.wrappers.detach()
        self.effects.detach()
        self.idle.detach()
        self.patches.noting(self.checkpoints.close)()
        self.patches.undo()

    def close(self, finished: bool) -> None:
        """Put back what was replaced, and end the record.

        Args:
            finished: whether the script came to its end, or to the end that was asked for.
        """
        self.patches.noting(self.steps.look_closely)()
        self.abandon()
        self.patches.noting(sources.note)(self.probe)
        for fault in self.patches.faults:
            print("labkit doctor:", fault, file=sys.stderr)
        with contextlib.suppress(Exception):  # what is said last must not keep the record from its end
            self.workers.close()
            self.schedules.close(self.steps.most is not None and self.steps.updates >= self.steps.most)
        self.patches.noting(self.modes.close)()
        if self.steps.most is not None and self.steps.updates >= self.steps.most:
            self.probe.event("stopped", updates=self.steps.updates)
        self.steps.close()
        self.probe.close(finished=finished)
