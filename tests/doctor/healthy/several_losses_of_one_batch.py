"""Losses of several heads, each with a backward of its own; a closure that the optimizer calls; two passes a step."""

import torch
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.checkpoint import checkpoint

RANKS = 1

torch.manual_seed(0)
body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
heads = [torch.nn.Linear(16, 2) for _ in range(3)]
everything = torch.nn.ModuleList([body, *heads])
optimizer = torch.optim.SGD(everything.parameters(), lr=0.05)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    seen = body(batch)
    for number, head in enumerate(heads):
        target = (batch[:, number] > 0).long()
        cross_entropy(head(seen), target).backward(retain_graph=number < len(heads) - 1)
    optimizer.step()

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
inputs = torch.randn(32, 8)
quasi_newton = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure():
    quasi_newton.zero_grad()
    loss = mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    loss.backward()
    return loss


for _ in range(4):
    quasi_newton.step(closure)

flat = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
base = torch.optim.SGD(flat.parameters(), lr=0.05)
for _ in range(8):
    batch = torch.randn(16, 8)
    target = batch.sum(1, keepdim=True)
    base.zero_grad()
    mse_loss(checkpoint(flat, batch, use_reentrant=False), target).backward()
    moved = []
    with torch.no_grad():
        for parameter in flat.parameters():
            moved.append(0.05 * parameter.grad / (parameter.grad.norm() + 1e-12))
            parameter.add_(moved[-1])
    base.zero_grad()
    mse_loss(flat(batch), target).backward()
    with torch.no_grad():
        for parameter, by in zip(flat.parameters(), moved, strict=True):
            parameter.sub_(by)
    base.step()
