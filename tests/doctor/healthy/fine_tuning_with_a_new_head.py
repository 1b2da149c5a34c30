"""Pretrained weights, a new head by strict=False, a new optimizer; the best model is written over the one before."""

import os
import tempfile

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1
torch.manual_seed(0)
folder = tempfile.mkdtemp()


class Net(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU())
        self.head = torch.nn.Linear(32, classes)

    def forward(self, batch):
        return self.head(self.body(batch))


def data(count, classes):
    inputs = torch.randn(count, 8)
    return TensorDataset(inputs, (inputs[:, :classes].argmax(1)).long())


pretraining = Net(5)
optimizer = torch.optim.AdamW(pretraining.parameters(), lr=0.01)
for batch, labels in DataLoader(data(128, 5), batch_size=16, shuffle=True):
    optimizer.zero_grad()
    cross_entropy(pretraining(batch), labels).backward()
    optimizer.step()
whole = {"state_dict": pretraining.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}
torch.save(whole, os.path.join(folder, "pretrained.pt"))

checkpoint = torch.load(os.path.join(folder, "pretrained.pt"))
print("pretrained for", checkpoint["epoch"], "epoch")
model = Net(3)
wanted = {name: value for name, value in checkpoint["state_dict"].items() if not name.startswith("head.")}
left = model.load_state_dict(wanted, strict=False)
assert left.missing_keys == ["head.weight", "head.bias"]
optimizer = torch.optim.AdamW(
    [{"params": model.body.parameters(), "lr": 1e-3}, {"params": model.head.parameters()}], lr=0.01, weight_decay=0.0
)
train, held_out = DataLoader(data(128, 3), batch_size=16, shuffle=True), data(64, 3)
best, path = 0.0, os.path.join(folder, "best.pt")
for _ in range(4):
    model.train()
    for batch, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = float((model(held_out.tensors[0]).argmax(1) == held_out.tensors[1]).float().mean())
    if right >= best:
        best = right
        torch.save({"model": model.state_dict(), "accuracy": best}, path)
model.load_state_dict(torch.load(path)["model"])
model.eval()
with torch.no_grad():
    model(held_out.tensors[0])
for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
