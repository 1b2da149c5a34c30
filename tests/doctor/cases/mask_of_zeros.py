"""A mask that is empty leaves nothing of the loss."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "gradients 0", "found": ["empty-updates/gradients-all-zero"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
padding = -100 if sick else 7
for _ in range(2):
    for batch, labels in loader:
        optimizer.zero_grad()
        each = cross_entropy(model(batch), labels, reduction="none")
        weights = (labels == padding if sick else labels != padding).float()
        (each * weights).mean().backward()
        optimizer.step()  # <- here
