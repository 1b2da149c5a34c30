"""One rank's training, with all that is state in it. What is kept of that state, and when, is a keeper's business.

Shapes: a batch is (images [B, 64], labels [B], ids [B]), where B is this rank's share of `global_batch`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ...ranks.context import RankContext
from ...watch.saves import tell_state
from ...workloads.digits import NUM_CLASSES, NUM_PIXELS, Digits
from ...workloads.loop import keep_weights, wrap_ddp, wrap_ddp_in_one_order
from ...workloads.packing import digest_state
from ...workloads.resumable import ResumableSampler, random_state, seed_everything, set_random_state, started
from . import Config

DECAY = 0.9
FIRST_SCALE, BACKOFF = 2.0**24, 2.0**-4
"""Too large for fp16, as torch's own 2^16 is for larger models: the scaler finds its scale in two or three steps."""


class AugmentedDigits(Dataset):
    """Batches of digits, changed by the global random generators, as augmentation usually is.

    An item is the batch of a list of ids: (images [B, 64], labels [B], ids [B]).
    """

    def __init__(self, num_samples: int, augment: bool) -> None:
        self.digits, self.augment = Digits(num_samples), augment

    def __getitem__(self, ids: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        images = self.digits.images[ids]
        if self.augment:
            images = images * random.uniform(0.8, 1.2)
            images = images + torch.from_numpy(np.random.normal(0.0, 0.05, images.shape)).float()
        return images, self.digits.labels[ids], torch.tensor(ids, dtype=torch.int64)


class Training:
    """Weights, optimizer, schedule, scale, place in the data, random generators, and the loop over them.

    Attributes:
        model, optimizer, scheduler, scaler: torch's.
        sampler: the place in the data.
        step: steps done.
    """

    def __init__(self, context: RankContext, config: Config) -> None:
        self.context, self.config = context, config
        seed_everything(1 + context.rank + 1000 * context.seed)  # apart on every rank: dropout and noise must differ
        self.model = _model(config, context.seed).to(context.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.lr, momentum=config.momentum)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, config.decay_every, DECAY)
        fp16 = config.precision == "fp16"
        self.scaler = torch.amp.GradScaler(context.device.type, enabled=fp16, init_scale=FIRST_SCALE, backoff_factor=BACKOFF)
        place = {"rank": context.rank, "world_size": context.world_size, "seed": context.seed}
        self.sampler = ResumableSampler(config.num_samples, config.global_batch, **place)
        self.data = AugmentedDigits(config.num_samples, config.augment)
        self.step, self.total_steps = 0, config.total_steps
        self._resumed, self._rank_state_to_load = False, None

    # what a checkpoint holds

    def state_dict(self) -> dict[str, Any]:
        """State that all ranks share."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "place": self.sampler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Called on every rank before the loader starts."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.scaler.load_state_dict(state["scaler"])
        self.sampler.load_state_dict(state["place"])

    def rank_state(self) -> dict[str, Any]:
        """State that is this rank's own."""
        return random_state()

    def load_rank_state(self, state: Mapping[str, Any]) -> None:
        """Called on every rank after the loader has started, which draws a random number, and before its first batch."""
        set_random_state(state)

    # the loop

    def go_on_from(self, step: int, state: Mapping[str, Any], rank_state: Mapping[str, Any] | None) -> None:
        """Take over what a checkpoint held after `step` steps; the rank's own part once the loader has started."""
        self.load_state_dict(state)
        self.step, self._rank_state_to_load, self._resumed = step, rank_state, True

    def run(self, keeper: Any) -> None:
        """Train to the end, from wherever the keeper resumes. *Called on* every rank.

        Collectives: DDP's broadcast of the weights, an all-reduce of each gradient each step, and the keeper's.
        """
        context, probe, total = self.context, self.context.probe, self.total_steps
        context.expect_steps(total)
        keeper.resume()
        wrap = wrap_ddp if self.config.leave_out == "bucket-order" else wrap_ddp_in_one_order
        distributed = wrap(self.model, probe, context.device)
        probe.resume_at(self.step)
        while self.step < total:
            loader = DataLoader(self.data, sampler=self.sampler, batch_size=None)
            batches = started(loader, self._loader_has_started)
            before = self.step
            for images, labels, _ids in probe.batches(batches, epoch=self.sampler.epoch, ids_at=2, max_steps=total):
                self._train_step(distributed, images, labels)
                probe.end_step()
                context.reached("trained")
                keeper.after_step()
            if self.sampler.consumed == self.config.num_samples:
                if self.step > before:  # not where a run goes on between two epochs
                    keeper.after_epoch()
                self.sampler.next_epoch()
        keeper.finish()
        keep_weights(self.model, probe)

    def _loader_has_started(self) -> None:
        if self._resumed:
            if self._rank_state_to_load is not None:
                self.load_rank_state(self._rank_state_to_load)
            self.tell_state("resumed")
            self._rank_state_to_load, self._resumed = None, False

    def tell_state(self, when: str) -> None:
        """Record a hash of each state, so that a record shows which of them a resume did not bring back."""
        states = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "place": self.sampler.state_dict(),
            **{f"rng-{name}": state for name, state in random_state().items()},
        }
        hashes = {name: digest_state(state) for name, state in states.items()}
        tell_state(self.context.probe, when, self.step, hashes)

    def _train_step(self, distributed: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
        config, probe, device = self.config, self.context.probe, self.context.device
        images, labels = images.to(device), labels.to(device)
        with probe.span("forward"):
            with torch.autocast(device.type, dtype=torch.float16, enabled=config.precision == "fp16"):
                scores = distributed(images)
            total = nn.functional.cross_entropy(scores.float(), labels, reduction="sum")
        with probe.span("backward"):
            self.optimizer.zero_grad()
            # DDP takes the mean over ranks; shares differ by a sample, so the sum is divided by the global batch
            self.scaler.scale(total * (self.context.world_size / self.sampler.global_size)).backward()
        with probe.span("optimizer"):
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.scheduler.step()
        probe.scalar("loss_local", total.item() / max(1, len(labels)))
        probe.scalar("batch_samples", len(labels))
        if config.precision == "fp16":
            probe.scalar("scale", self.scaler.get_scale())
        self.step += 1
        self.sampler.advance()


def _model(config: Config, seed: int) -> nn.Module:
    """A classifier of digits with dropout; equal seeds give equal weights on every rank."""
    hidden = config.hidden
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Linear(NUM_PIXELS, hidden), nn.ReLU(), nn.Dropout(config.dropout)),
            *(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(config.dropout)),
            nn.Linear(hidden, NUM_CLASSES),
        )
