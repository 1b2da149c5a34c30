"""Weights are loaded, and then initialised."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "loaded and then overwritten", "found": ["resume-is-whole/loaded-weights-overwritten"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
path = os.path.join(tempfile.mkdtemp(), "weights.pt")


def init(module):
    if isinstance(module, torch.nn.Linear):
        torch.nn.init.xavier_normal_(module.weight)
        torch.nn.init.zeros_(module.bias)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def forward(self, batch):
        return self.layers(batch)


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(12):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


model = Net()
train(model)
torch.save(model.state_dict(), path)
model = Net()
if not sick:
    model.apply(init)
model.load_state_dict(torch.load(path))  # <- here
if sick:
    model.apply(init)
train(model)
os.remove(path)
