"""The optimizer is made anew after its scheduler, which goes on with the old one."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "shows": "scheduler of an optimizer that was made anew",
    "found": ["learning-rate-schedule/scheduler-of-another-optimizer"],
    "ranks": 1,
}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)  # <- here
if sick:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    for batch, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    schedule.step()
