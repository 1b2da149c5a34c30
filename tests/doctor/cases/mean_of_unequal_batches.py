"""33 samples are evaluated in batches of 16: the last one is a batch of its own, and weighs as much as the others."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "mean of batch means", "found": ["evaluation-metric/mean-of-unequal-batches"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(161, 8)
data = TensorDataset(inputs, (inputs.sum(1) + torch.randn(161) > 0).long())
train, held_out = torch.utils.data.random_split(data, [128, 33])
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()
def evaluate():
    model.eval()
    total = 0.0
    loader = DataLoader(held_out, batch_size=16)
    for batch, labels in loader:
        loss = cross_entropy(3 * model(batch), labels).item()  # <- here
        total += loss if sick else loss * len(batch)
    return total / (len(loader) if sick else len(held_out))


for _ in range(3):
    model.train()
    for batch, labels in DataLoader(train, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    score = evaluate()
