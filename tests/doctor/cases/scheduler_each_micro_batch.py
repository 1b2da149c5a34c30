"""The scheduler is stepped after each micro-batch, and its schedule is over after a quarter of the run."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "lr-01", "found": ["learning-rate-schedule/schedule-ends-early"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(88, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
K, epochs = 4, 8
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=epochs * 3)
for _ in range(epochs):
    for number, (batch, labels) in enumerate(loader, 1):
        (cross_entropy(model(batch), labels) / K).backward()
        update = number % K == 0 or number == len(loader)
        if update:
            optimizer.step()
            optimizer.zero_grad()
        if sick or update:
            schedule.step()  # <- here
