"""Who keeps what of a training's state, when and where, and what a restart finds of it: one class a variant."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ...errors import CheckpointError
from ...ranks.context import RankContext
from ...watch.saves import tell_failed_save, tell_load, tell_save
from ...workloads.checkpoint import Checkpointer, Restored, Saved
from ...workloads.packing import digest_state, pack, unpack
from .training import Training


class Keeper:
    """Keeps nothing, and tells the record what those that keep something do.

    Args:
        context, training: of this rank.
        storage: a folder that all ranks see, and that outlives them.
    """

    def __init__(self, context: RankContext, training: Training, storage: Path) -> None:
        self.context, self.training, self.storage = context, training, storage

    def resume(self) -> None:
        """Before the first step of an attempt: bring back what there is."""

    def after_step(self) -> None:
        """After each step."""

    def after_epoch(self) -> None:
        """After each epoch."""

    def finish(self) -> None:
        """After the last step."""

    def due(self, every: int) -> bool:
        """Whether a multiple of `every` steps is done."""
        return self.training.step % every == 0

    def tell_saved(self, what: str, path: Path, took: Saved | None = None, **more: Any) -> None:
        """Record a save that is complete."""
        times = {"stall_s": took.stall_s, "write_s": took.write_s, "bytes": took.num_bytes} if took else {}
        step = took.step if took else self.training.step
        tell_save(self.context.probe, step, path, what=what, **times, **more)

    def tell_loaded(self, step: int, path: Path | None, seconds: float, **more: Any) -> None:
        """Record what a restart found; step 0 if there was nothing."""
        tell_load(self.context.probe, step, path, seconds, **more)


class Nothing(Keeper):
    """No checkpoint: a restart begins at the first step. The variant `broken`."""

    def after_step(self) -> None:
        pass

    def resume(self) -> None:
        pass


class ModelAndEpoch(Keeper):
    """Weights and epoch, by rank 0, straight into their file: the form that tutorials have."""

    @property
    def path(self) -> Path:
        return self.storage / "checkpoint.pt"

    def after_epoch(self) -> None:
        self.training.tell_state("saved")
        if self.context.rank == 0:
            began = time.monotonic()
            state = {"epoch": self.training.sampler.epoch, "model": self.training.model.state_dict()}
            with open(self.path, "wb") as file:
                torch.save(state, _Interrupted(file, self.context))  # pyright: ignore[reportArgumentType]
            took = time.monotonic() - began
            saved = Saved(self.training.step, self.path, took, took, self.path.stat().st_size)
            self.tell_saved("weights", self.path, saved, alone=True)

    def resume(self) -> None:
        self.context.reached("load")
        if self.path.exists():
            began, training = time.monotonic(), self.training
            state = torch.load(self.path, weights_only=True)
            fresh = training.state_dict()  # of all that was not kept
            end_of_epoch = {**fresh["place"], "epoch": state["epoch"], "consumed": training.config.num_samples}
            step = (state["epoch"] + 1) * training.config.steps_per_epoch
            training.go_on_from(step, {**fresh, "model": state["model"], "place": end_of_epoch}, None)
            self.tell_loaded(step, self.path, time.monotonic() - began)
        else:
            self.tell_loaded(0, None, 0.0)


class Full(Keeper):
    """All state of all ranks, to shared storage, whole or not at all. The variant `fixed`."""

    def __init__(self, context: RankContext, training: Training, storage: Path) -> None:
        super().__init__(context, training, storage)
        self.checkpoints = Checkpointer(storage / "full", reached=context.reached)

    def after_step(self) -> None:
        if self.due(self.training.config.interval):
            self.save()

    def save(self) -> None:
        training = self.training
        training.tell_state("saved")
        try:
            took = self.checkpoints.save(training.step, training.state_dict(), training.rank_state())
        except CheckpointError as error:  # the run is worth more than one checkpoint; the last good one is still there
            tell_failed_save(self.context.probe, training.step, error)
        else:
            self.tell_saved("full", took.path, took, alone=False)

    def resume(self) -> None:
        began = time.monotonic()
        restored = self.checkpoints.restore()
        if restored is None:
            self.tell_loaded(0, None, time.monotonic() - began)
            return
        self.go_on_from(restored)
        self.tell_loaded(restored.step, restored.path, time.monotonic() - began, refused=len(restored.refused))

    def go_on_from(self, restored: Restored) -> None:
        self.training.go_on_from(restored.step, restored.shared, restored.own)


class Async(Full):
    """The same, copied at once and written while training goes on."""

    _stall_s = 0.0

    def save(self) -> None:
        training = self.training
        began = time.monotonic()
        self._tell_outcome()
        waited_s = time.monotonic() - began
        training.tell_state("saved")
        copied_s = self.checkpoints.save_in_background(training.step, training.state_dict(), training.rank_state())
        self._stall_s = waited_s + copied_s

    def finish(self) -> None:
        self._tell_outcome()

    def _tell_outcome(self) -> None:
        """Wait for the save before, if there was one, and record what became of it."""
        try:
            took = self.checkpoints.wait()
        except CheckpointError as error:
            tell_failed_save(self.context.probe, -1, error)
        else:
            if took is not None:
                self.tell_saved("full", took.path, dataclasses.replace(took, stall_s=self._stall_s), alone=False)


class Light(Full):
    """Full checkpoints, and between them weights and place alone, which cost less; goes on from the newest of either."""

    def __init__(self, context: RankContext, training: Training, storage: Path) -> None:
        super().__init__(context, training, storage)
        self.light = Checkpointer(storage / "light", reached=context.reached)

    def after_step(self) -> None:
        super().after_step()
        training = self.training
        if self.due(training.config.light_interval) and not self.due(training.config.interval):
            training.tell_state("saved")
            state = training.state_dict()
            took = self.light.save(training.step, {"model": state["model"], "place": state["place"]})
            self.tell_saved("light", took.path, took, alone=False)

    def resume(self) -> None:
        newest_full = max(self.checkpoints.steps(), default=0)
        if max(self.light.steps(), default=0) <= newest_full:
            super().resume()
            return
        began = time.monotonic()
        restored = self.light.restore()
        assert restored is not None
        self.training.go_on_from(restored.step, {**self.training.state_dict(), **restored.shared}, None)
        self.tell_loaded(restored.step, restored.path, time.monotonic() - began)


class OnePath(Keeper):
    """Every rank saves all that it has to one path, by way of a file of its own: whole, and the last writer's."""

    @property
    def path(self) -> Path:
        return self.storage / "checkpoint.pt"

    def after_step(self) -> None:
        if self.due(self.training.config.interval):
            began, training = time.monotonic(), self.training
            training.tell_state("saved")
            state = {"step": training.step, "shared": training.state_dict(), "own": training.rank_state()}
            document, tensors = pack(state)
            aside = self.path.with_suffix(f".{self.context.rank}")
            torch.save({"document": document, "tensors": tensors}, aside)
            self.context.reached("save")
            num_bytes = aside.stat().st_size
            os.replace(aside, self.path)
            took = time.monotonic() - began
            saved = Saved(training.step, self.path, took, took, num_bytes)
            self.tell_saved("full", self.path, saved, alone=True, digest=digest_state(state))

    def resume(self) -> None:
        self.context.reached("load")
        if self.path.exists():
            began = time.monotonic()
            stored = torch.load(self.path, weights_only=True)
            state = unpack(stored["document"], stored["tensors"].__getitem__)
            self.training.go_on_from(state["step"], state["shared"], state["own"])
            self.tell_loaded(state["step"], self.path, time.monotonic() - began, digest=digest_state(state))
        else:
            self.tell_loaded(0, None, 0.0)


class LocalDisk(Full):
    """Each rank keeps all state on its own node's disk; a restart goes on from the newest step that every rank has."""

    def __init__(self, context: RankContext, training: Training, storage: Path) -> None:
        Keeper.__init__(self, context, training, storage)
        self.checkpoints = Checkpointer(context.local_disk / "full", alone=True, reached=context.reached)

    def save(self) -> None:
        training = self.training
        training.tell_state("saved")
        took = self.checkpoints.save(training.step, training.state_dict(), training.rank_state())
        self.tell_saved("full", took.path, took, alone=True)

    def resume(self) -> None:
        began = time.monotonic()
        newest = max(self.checkpoints.steps(), default=0)
        of_all = torch.tensor([newest])
        dist.all_reduce(of_all, dist.ReduceOp.MIN)  # a rank that has nothing sends all of them back
        step = int(of_all)
        if step == 0:
            self.tell_loaded(0, None, time.monotonic() - began, had=newest)
            return
        restored = self.checkpoints.restore(step=step)
        assert restored is not None
        self.go_on_from(restored)
        self.tell_loaded(step, restored.path, time.monotonic() - began, had=newest)


class Ablated(Full):
    """The same as `Full`, but for one state, left as it was at the start: what it is for shows by its absence."""

    def __init__(self, context: RankContext, training: Training, storage: Path) -> None:
        super().__init__(context, training, storage)
        self._fresh, self._fresh_own = training.state_dict(), training.rank_state()

    def go_on_from(self, restored: Restored) -> None:
        left_out, shared, own = self.training.config.leave_out, dict(restored.shared), restored.own
        if left_out in shared:
            shared[left_out] = self._fresh[left_out]
        elif left_out in ("epoch", "consumed"):
            shared["place"] = {**shared["place"], left_out: self._fresh["place"][left_out]}
        elif left_out == "rng":
            own = self._fresh_own
        elif left_out == "rng-per-rank":
            of_rank_0: list[Mapping[str, Any]] = [own]
            dist.broadcast_object_list(of_rank_0, src=0)
            own = of_rank_0[0]
        elif left_out == "rng-after-iter":
            self.training.load_rank_state(own)
            own = None
        elif left_out.startswith("rng-"):
            name = left_out.removeprefix("rng-")
            own = {**own, name: self._fresh_own[name]}
        self.training.go_on_from(restored.step, shared, own)


class _Interrupted:
    """A file that is half written when the fault planned there comes."""

    def __init__(self, file: Any, context: RankContext) -> None:
        self._file, self._context = file, context

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._context.reached("save")
        return half + self._file.write(content[half:])

    def flush(self) -> None:
        self._file.flush()


KEEPERS: dict[str, type[Keeper]] = {
    "broken": Nothing,
    "model-and-epoch": ModelAndEpoch,
    "light": Light,
    "one-path": OnePath,
    "local-disk": LocalDisk,
    "async-save": Async,
    "fixed": Full,
}
"""By variant."""
