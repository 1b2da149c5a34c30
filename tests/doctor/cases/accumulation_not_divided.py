"""Four micro-batches an update, and the loss is not divided by four."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "accumulation not divided", "found": ["accumulated-loss/accumulation-not-divided"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(128, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
K = 4
for _ in range(3):
    for number, (batch, labels) in enumerate(loader, 1):
        loss = cross_entropy(model(batch), labels)
        if not sick:
            loss = loss / K
        loss.backward()  # <- here
        if number % K == 0:
            optimizer.step()
            optimizer.zero_grad()
