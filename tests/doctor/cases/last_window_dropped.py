"""11 batches in windows of 4: the last 3 of each epoch are computed and cleared."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "acc-03 dropped", "found": ["old-gradients/last-window-dropped"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(88, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
K = 4
for _ in range(3):
    optimizer.zero_grad()
    for number, (batch, labels) in enumerate(loader, 1):
        (cross_entropy(model(batch), labels) / K).backward()  # <- here
        if number % K == 0 or (not sick and number == len(loader)):
            optimizer.step()
            optimizer.zero_grad()
