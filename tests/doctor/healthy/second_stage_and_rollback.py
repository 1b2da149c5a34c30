"""Two stages with an optimizer each, a roll-back to the best weights, and a copy of the state for a thread to write."""

import copy
import os
import tempfile
import threading

import torch
from torch.nn.functional import cross_entropy

RANKS = 1
torch.manual_seed(0)
folder = tempfile.mkdtemp()
held_out = torch.randn(64, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def stage(optimizer, schedule, steps):
    best, kept = float("inf"), copy.deepcopy(model.state_dict())
    for step in range(steps):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
        schedule.step()
        if step % 8 == 7:
            model.eval()
            with torch.no_grad():
                loss = float(cross_entropy(model(held_out), (held_out.sum(1) > 0).long()))
            model.train()
            if loss < best:
                best, kept = loss, copy.deepcopy(model.state_dict())
            else:
                model.load_state_dict(kept)
            state = {"model": model, "optimizer": optimizer, "schedule": schedule}
            state = copy.deepcopy({name: part.state_dict() for name, part in state.items()})
            threading.Thread(target=torch.save, args=(state, os.path.join(folder, f"{step}.pt"))).start()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}, last)


last = os.path.join(folder, "stage1.pt")
first = torch.optim.AdamW(model.parameters(), lr=0.01)
stage(first, torch.optim.lr_scheduler.LinearLR(first, 1.0, 0.1, 24), 24)
model.load_state_dict(torch.load(last)["model"])
last = os.path.join(folder, "stage2.pt")
second = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
stage(second, torch.optim.lr_scheduler.LinearLR(second, 1.0, 0.1, 24), 24)
