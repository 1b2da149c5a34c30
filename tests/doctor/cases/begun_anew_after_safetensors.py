"""Weights come from a file of safetensors, and a method that initialises them is called after that."""

import os
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "safetensors",
    "found": ["resume-is-whole/loaded-weights-overwritten"],
    "ranks": 1,
    "needs": "safetensors",
}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")


class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def begin(self):
        for layer in self:
            if isinstance(layer, torch.nn.Linear):
                layer.reset_parameters()


def train(model, updates):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(updates):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


first = Net()
train(first, 12)
save_file(first.state_dict(), path)
second = Net()
if not sick:
    second.begin()
second.load_state_dict(load_file(path))  # <- here
if sick:
    second.begin()
train(second, 12)
os.remove(path)
os.rmdir(os.path.dirname(path))
