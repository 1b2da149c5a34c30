"""The scaler's state is in the checkpoint, and nobody gives it to the scaler."""

import io
import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "ck-03",
    "found": ["resume-is-whole/scaler-not-given"],
    "ranks": 1,
}

sick = sys.argv[1] == "sick"


def made():
    model = torch.nn.Linear(8, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01), torch.amp.GradScaler("cpu", growth_interval=5)


def train(model, optimizer, scaler):
    for _ in range(12):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = cross_entropy(model(batch).float(), (batch.sum(1) > 0).long())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


torch.manual_seed(0)
model, optimizer, scaler = made()
train(model, optimizer, scaler)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}, file)
file.seek(0)
state = torch.load(file)  # <- here
model, optimizer, scaler = made()
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
if not sick:
    scaler.load_state_dict(state["scaler"])
train(model, optimizer, scaler)
