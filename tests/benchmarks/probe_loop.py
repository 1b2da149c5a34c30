"""A script: the same training loop bare, bare again, with labkit's probe, and with traceml where it is there.

All variants run in this one process, in short blocks in random order, each on a copy of the model of its own. Prints one
line of JSON: for each variant the median step, and the median over the rounds of its difference to `bare`, in µs.

Arguments: the number of rounds, a folder, and `traceml` if this runs under `traceml run`.
"""

from __future__ import annotations

import copy
import json
import random
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

from labkit.record.probe import Probe

BLOCK = 12
"""Steps of one variant in a row; the first, which finds the caches of the variant before, is not counted."""

BATCHES = [torch.randn(64, 256) for _ in range(64)]
TARGETS = torch.randint(0, 10, (64,))


class Bare:
    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, number: int) -> None:
        batch = BATCHES[number % len(BATCHES)]
        loss = nn.functional.cross_entropy(self.model(batch), TARGETS)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        loss.item()


class WithProbe(Bare):
    def __init__(self, model: nn.Module, folder: Path) -> None:
        super().__init__(model)
        self.probe = Probe(folder / "loop.jsonl")

    def step(self, number: int) -> None:
        probe = self.probe
        probe.begin_step()
        with probe.span("fetch", "data"):
            batch = BATCHES[number % len(BATCHES)]
        probe.samples("train", batch)
        with probe.span("forward"):
            loss = nn.functional.cross_entropy(self.model(batch), TARGETS)
        with probe.span("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with probe.span("optimizer"):
            self.optimizer.step()
        probe.scalar("loss_local", loss.item())
        probe.scalar("lr", 1e-3)
        probe.end_step()


class WithTraceml(Bare):
    """Its step, forward, backward and optimizer timers; it has no digests."""

    def __init__(self, model: nn.Module) -> None:
        import traceml_ai

        super().__init__(model)
        self.traceml = traceml_ai
        assert not traceml_ai.init(mode="manual").disabled  # no global patches, which would reach the other variants
        traceml_ai.wrap_forward(self.model)
        traceml_ai.wrap_optimizer(self.optimizer)

    def step(self, number: int) -> None:
        with self.traceml.trace_step(self.model):
            batch = BATCHES[number % len(BATCHES)]
            loss = nn.functional.cross_entropy(self.model(batch), TARGETS)
            self.optimizer.zero_grad()
            self.traceml.wrap_backward(loss).backward()
            self.optimizer.step()
            loss.item()


def main(rounds: int, folder: Path, with_traceml: bool) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    variants = {"bare": Bare(model), "bare again": Bare(model), "labkit": WithProbe(model, folder)}
    if with_traceml:
        variants["traceml"] = WithTraceml(model)
    for variant in variants.values():
        _block(variant)
    blocks: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name in random.sample(list(variants), len(variants)):
            blocks[name].append(statistics.median(_block(variants[name])[1:]))
    result = {}
    for name, medians in blocks.items():
        differences = sorted(b - a for a, b in zip(blocks["bare"], medians, strict=True))
        quarter = len(differences) // 4
        result[name] = {
            "step_us": statistics.median(medians),
            "more_us": statistics.median(differences),
            "quartiles_us": [differences[quarter], differences[-1 - quarter]],
        }
    print("RESULT " + json.dumps(result), flush=True)


def _block(variant: Bare) -> list[float]:
    times = []
    for number in range(BLOCK):
        started = time.perf_counter_ns()
        variant.step(number)
        times.append((time.perf_counter_ns() - started) / 1000)
    return times


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), "traceml" in sys.argv[3:])
