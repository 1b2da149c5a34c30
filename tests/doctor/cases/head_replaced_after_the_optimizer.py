"""The head is replaced after the optimizer was made: the optimizer keeps the old one, and the new one never learns."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "parameters replaced", "found": ["untrained-parameters/optimizer-holds-others"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))
if not sick:
    model[2] = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
if sick:
    model[2] = torch.nn.Linear(8, 2)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
