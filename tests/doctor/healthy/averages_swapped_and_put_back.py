"""Averaged weights are swapped in for each validation and out after it; two checkpoints are kept in turn."""

import os
import tempfile

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1


class ExponentialMovingAverage:
    """Averages that can take the place of the weights."""

    def __init__(self, parameters, decay):
        self.parameters, self.decay = list(parameters), decay
        self.shadow = [p.detach().clone() for p in self.parameters]
        self.kept = []

    @torch.no_grad()
    def update(self):
        for mean, p in zip(self.shadow, self.parameters, strict=True):
            mean.lerp_(p, 1 - self.decay)

    def __enter__(self):
        self.kept = [p.detach().clone() for p in self.parameters]
        for mean, p in zip(self.shadow, self.parameters, strict=True):
            p.data.copy_(mean)

    def __exit__(self, *_):
        for kept, p in zip(self.kept, self.parameters, strict=True):
            p.data.copy_(kept)

    def state_dict(self):
        return {"shadow": self.shadow, "decay": self.decay}


def main():
    torch.manual_seed(0)
    folder = tempfile.mkdtemp()
    inputs = torch.randn(192, 8)
    labels = (inputs.sum(1) > 0).long()
    loader = DataLoader(TensorDataset(inputs[:128], labels[:128]), batch_size=16, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ema = ExponentialMovingAverage(model.parameters(), 0.98)
    for epoch in range(5):
        for batch, wanted in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), wanted).backward()
            optimizer.step()
            ema.update()
        with ema, torch.no_grad():
            model.eval()
            cross_entropy(model(inputs[128:]), labels[128:])
            model.train()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "ema": ema.state_dict(), "epoch": epoch}
        torch.save(state, os.path.join(folder, f"slot{epoch % 2}.pt"))
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


main()
