"""512 micro-batches are added up in bf16, where a sum stops growing at 256 times one of them."""

import sys

import torch

CASE = {"shows": "t2-amp-04", "found": ["gradient-average/gradients-lost-in-16-bits"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
K = 512
model = torch.nn.Linear(8, 1).to(torch.bfloat16 if sick else torch.float32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    optimizer.zero_grad()
    for _ in range(K):
        batch = (torch.rand(4, 8) + 1).to(model.weight.dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (model(batch) - 9.0).square().mean()
        (loss / K).backward()  # <- here
    optimizer.step()
