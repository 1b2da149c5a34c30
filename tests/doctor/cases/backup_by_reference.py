"""The weights to put back after a validation are kept as state_dict() gives them: as references."""

import copy
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "shows": "t2-ema-01",
    "found": ["weights-put-back/state-kept-by-reference"],
    "ranks": 1,
}

sick = sys.argv[1] == "sick"


class Trainer:
    """Trains, averages and validates."""

    def __init__(self):
        inputs = torch.randn(192, 8)
        labels = (inputs.sum(1) > 0).long()
        self.held_out = inputs[128:], labels[128:]
        self.loader = DataLoader(TensorDataset(inputs[:128], labels[:128]), batch_size=16, shuffle=True)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.average = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
        )

    def epoch(self):
        for batch, labels in self.loader:
            self.optimizer.zero_grad()
            cross_entropy(self.model(batch), labels).backward()
            self.optimizer.step()
            self.average.update_parameters(self.model)

    def validate(self):
        kept = self.model.state_dict() if sick else copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.average.module.state_dict())
        self.model.eval()
        with torch.inference_mode():
            loss = cross_entropy(self.model(self.held_out[0]), self.held_out[1])
        self.model.train()
        self.model.load_state_dict(kept)  # <- here
        return loss


torch.manual_seed(0)
trainer = Trainer()
for _ in range(4):
    trainer.epoch()
    trainer.validate()
