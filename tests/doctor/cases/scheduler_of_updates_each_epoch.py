"""A schedule made for updates is stepped once an epoch: the run ends in its warm-up."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "t2-lr-02 1/K", "found": ["learning-rate-schedule/scheduler-stepped-too-seldom"], "ranks": 1}

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
                schedule.step()
        for _ in range(each_epoch):
            schedule.step()  # <- here


train(torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=48), 4, int(not sick), int(sick))
