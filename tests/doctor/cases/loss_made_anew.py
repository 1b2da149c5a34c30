"""The loss is taken as a number and wrapped again: it no longer depends on the model."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "loss detached", "found": ["empty-updates/no-gradient-reaches-the-optimizer"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(2):
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), labels)
        if sick:
            loss = torch.tensor(loss.item(), requires_grad=True)
        loss.backward()
        optimizer.step()  # <- here
