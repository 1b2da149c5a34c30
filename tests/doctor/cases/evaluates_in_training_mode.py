"""The validation runs without eval(): dropout is on, and BatchNorm learns from the data that are held out."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "eval() forgotten", "found": ["train-mode/evaluated-in-training-mode"], "ranks": 1}


@torch.no_grad()
def validate(model, loader):
    return sum(float((model(batch).argmax(1) == labels).sum()) for batch, labels in loader)  # <- here


def data(count):
    inputs = torch.randn(count, 8)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
train, held_out = DataLoader(data(96), 8, shuffle=True), DataLoader(data(32), 8)
for _ in range(2):
    for batch, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    model.train(sick)
    validate(model, held_out)
    model.train()
