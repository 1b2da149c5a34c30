"""A decay by ten every 3 epochs is stepped at each update, and the rate is gone after an epoch or two."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "t2-lr-02 decay", "found": ["learning-rate-schedule/schedule-decays-to-nothing"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(schedule, epochs, each_update, each_epoch):
    for _ in range(epochs):
        for batch, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimizer.step()
            for _ in range(each_update):
                schedule.step()  # <- here
        for _ in range(each_epoch):
            schedule.step()


train(torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.1), 4, int(sick), int(not sick))
