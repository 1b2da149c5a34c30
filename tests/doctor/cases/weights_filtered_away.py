"""Weights are taken from a checkpoint by name, and no name is the model's: only the optimizer comes back."""

import io
import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "loaded state not matching", "found": ["resume-is-whole/weights-not-given"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)


def made():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer):
    for _ in range(15):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


model, optimizer = made()
train(model, optimizer)
weights = {f"module.{name}": value for name, value in model.state_dict().items()}
file = io.BytesIO()
torch.save({"model": weights, "optimizer": optimizer.state_dict()}, file)
file.seek(0)

model, optimizer = made()
state = torch.load(file)  # <- here
if not sick:
    state["model"] = {name.removeprefix("module."): value for name, value in state["model"].items()}
own = model.state_dict()
own.update({name: value for name, value in state["model"].items() if name in own})
model.load_state_dict(own)
optimizer.load_state_dict(state["optimizer"])
train(model, optimizer)
