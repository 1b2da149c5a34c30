"""Dropout stays on in a validation, on purpose: each batch is asked several times."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1


def data(count):
    inputs = torch.randn(count, 8)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
train, held_out = DataLoader(data(96), 8, shuffle=True), DataLoader(data(32), 8)
for _ in range(2):
    for batch, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    with torch.no_grad():
        for batch, _labels in held_out:
            spread = torch.stack([model(batch).softmax(1) for _ in range(5)]).std(0)
print(float(spread.mean()))
