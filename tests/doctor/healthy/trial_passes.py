"""Backward passes that no update uses, on purpose: trial steps of LBFGS, and the first pass of a sharpness-aware step."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(88, 8)
labels = (inputs.sum(1) > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for batch, wanted in DataLoader(TensorDataset(inputs, labels), batch_size=8, shuffle=True):
        cross_entropy(model(batch), wanted).backward()
        moves = [0.01 * parameter.grad.sign() for parameter in model.parameters()]
        optimizer.zero_grad()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.add_(move)
        cross_entropy(model(batch), wanted).backward()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves, strict=True):
                parameter.sub_(move)
        optimizer.step()
        optimizer.zero_grad()

quasi_newton = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6, line_search_fn="strong_wolfe")


def closure():
    quasi_newton.zero_grad()
    loss = cross_entropy(model(inputs), labels)
    loss.backward()
    return loss


for _ in range(6):
    quasi_newton.step(closure)
