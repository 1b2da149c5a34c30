"""fp16 with a scaler, two micro-batches an update, unscaled and clipped; an overflow now and then."""

import torch
from torch.nn.functional import cross_entropy

RANKS = 1

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=4)
for _ in range(24):
    for _ in range(2):
        batch = torch.randn(16, 8)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = cross_entropy(model(batch), (batch.sum(1) > 0).long(), label_smoothing=0.1) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=False)
