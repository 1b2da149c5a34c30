"""The average comes back from the checkpoint, its count of updates does not: the next update takes the raw weights over."""

import math
import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-ck-03", "found": ["averaged-weights/average-starts-again"], "ranks": 1}

sick = sys.argv[1] == "sick"
path = os.path.join(tempfile.mkdtemp(), "last.pt")


class ModelEma:
    """An average whose decay warms up with the count of its updates."""

    def __init__(self, model):
        self.module = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = 0.98 * (1 - math.exp(-self.updates / 10))
        for name, p in model.named_parameters():
            self.module[name].mul_(decay).add_(p, alpha=1 - decay)


def run(first, last):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    ema = ModelEma(model)
    if first:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        for name, value in state["ema"].items():
            ema.module[name].copy_(value)
        if not sick:
            ema.updates = state["updates"]
    for _ in range(first, last):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
        ema.update(model)
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "ema": ema.module, "updates": ema.updates},
        path + ".part",
    )
    os.replace(path + ".part", path)


torch.manual_seed(0)
run(0, 60)
run(60, 80)
os.remove(path)
