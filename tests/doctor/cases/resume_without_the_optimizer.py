"""A run that saves, stops and goes on in new objects; the optimizer is saved, and never loaded."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "ck-03", "found": ["resume-is-whole/optimizer-not-given"], "ranks": 1}

sick = sys.argv[1] == "sick"
path = os.path.join(tempfile.mkdtemp(), "last.pt")


def train(first, last):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if first:
        checkpoint = torch.load(path)  # <- here
        model.load_state_dict(checkpoint["model"])
        if not sick:
            optimizer.load_state_dict(checkpoint["optimizer"])
        first = checkpoint["step"]
    for _ in range(first, last):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": last}, path + ".part")
    os.replace(path + ".part", path)


torch.manual_seed(0)
train(0, 12)
train(12, 24)
os.remove(path)
