"""train() stands before the loop over epochs: after the first validation the model trains on in evaluation mode."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "train() forgotten", "found": ["train-mode/stays-in-evaluation-mode"], "ranks": 1}


def data(count):
    inputs = torch.randn(count, 8)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
train, held_out = DataLoader(data(96), 8, shuffle=True), DataLoader(data(32), 8)
model.train()
for _ in range(3):
    if not sick:
        model.train()
    for batch, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()  # <- here
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for batch, _labels in held_out:
            model(batch)
