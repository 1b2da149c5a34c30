"""Each micro-batch clears the gradients of those before it: only the last one reaches the optimizer."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-acc-03", "undecided": ["old-gradients/micro-batches-cleared"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(12):
    optimizer.zero_grad()
    for batch in torch.randn(16, 8).chunk(4):
        if sick:
            optimizer.zero_grad()
        (cross_entropy(model(batch), (batch.sum(1) > 0).long()) / 4).backward()
    optimizer.step()
