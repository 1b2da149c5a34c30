"""The engine divides the loss by the number of micro-batches, and so does the loop that calls it."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "acc-05", "found": ["accumulated-loss/loss-divided-twice"], "ranks": 1}

K = 4


class Engine:
    def __init__(self, model):
        self.model, self.calls = model, 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def backward(self, loss):
        (loss / K).backward()  # <- here
        self.calls += 1
        if self.calls % K == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


sick = sys.argv[1] == "sick"
torch.manual_seed(0)
engine = Engine(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)))
for _ in range(64):
    batch = torch.randn(8, 8)
    loss = cross_entropy(engine.model(batch), (batch.sum(1) > 0).long())
    engine.backward(loss / K if sick else loss)
