"""Copies in fp32 that the optimizer made of the weights before the load are written over what was loaded."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "t2-amp-02",
    "found": ["resume-is-whole/loaded-weights-put-back"],
    "may": ["mixed-precision-setup/fp16-without-a-scaler"],
    "ranks": 1,
}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
path = os.path.join(tempfile.mkdtemp(), "weights.pt")


class WithMasters(torch.optim.Optimizer):
    """Plain descent on copies in fp32."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.masters = [[p.detach().float().clone() for p in group["params"]] for group in self.param_groups]

    @torch.no_grad()
    def step(self):
        for group, masters in zip(self.param_groups, self.masters, strict=True):
            for weight, master in zip(group["params"], masters, strict=True):
                master -= group["lr"] * weight.grad.float()
                weight.copy_(master)


def made():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).bfloat16()


def train(model, optimizer):
    for _ in range(40):
        batch = torch.randn(16, 8).bfloat16()
        optimizer.zero_grad()
        cross_entropy(model(batch).float(), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


model = made()
train(model, WithMasters(model.parameters(), lr=0.1))
torch.save(model.state_dict(), path)
model = made()
optimizer = WithMasters(model.parameters(), lr=0.1)
model.load_state_dict(torch.load(path))  # <- here
if not sick:
    optimizer = WithMasters(model.parameters(), lr=0.1)
train(model, optimizer)
os.remove(path)
