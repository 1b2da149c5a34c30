"""Accelerate: all prepared, gradients accumulated in its context, clipped through it, its scheduler stepped each batch."""

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2
NEEDS = "accelerate"

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
torch.manual_seed(0)
inputs = torch.randn(128, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
held_out = torch.randn(36, 8)
checks = DataLoader(TensorDataset(held_out, (held_out.sum(1) > 0).long()), batch_size=8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
epochs = 3
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=epochs * len(loader))
model, optimizer, loader, checks, schedule = accelerator.prepare(model, optimizer, loader, checks, schedule)
for _ in range(epochs):
    model.train()
    for batch, labels in loader:
        with accelerator.accumulate(model):
            accelerator.backward(cross_entropy(model(batch), labels))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    right = total = 0
    with torch.no_grad():
        for batch, labels in checks:
            guessed, known = accelerator.gather_for_metrics((model(batch).argmax(1), labels))
            right, total = right + int((guessed == known).sum()), total + len(known)
    assert total == 36
    accelerator.print(right / total)
accelerator.end_training()
