"""Weights in bf16 and a small learning rate: each update is less than half a step of the format."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "amp-09", "found": ["empty-updates/updates-round-away-in-16-bits"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
kind = torch.bfloat16 if sick else torch.float32
model.to(kind)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for _ in range(2):
    for batch, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch.to(kind)), labels).backward()
        optimizer.step()  # <- here
