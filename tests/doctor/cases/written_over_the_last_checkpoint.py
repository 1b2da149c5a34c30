"""Each checkpoint is written straight over the last good one."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "ck-07", "undecided": ["checkpoint-files/written-over-the-last-one"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
folder = tempfile.mkdtemp()
path = os.path.join(folder, "last.pt")


def save(state):
    where = path if sick else path + ".part"
    torch.save(state, where)  # <- here
    os.replace(where, path)


for step in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 4 == 3:
        save({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
os.remove(path)
os.rmdir(folder)
