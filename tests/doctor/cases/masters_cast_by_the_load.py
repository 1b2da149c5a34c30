"""An optimizer keeps fp32 copies in its state; loading the state casts them to the weights' bf16."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-amp-02", "found": ["resume-is-whole/optimizer-state-cast"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)


class WithMasters(torch.optim.Optimizer):
    """Plain descent on copies in fp32."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if "master" not in state:
                    state["master"] = weight.detach().float().clone()
                state["master"] -= group["lr"] * weight.grad.to(state["master"].dtype)
                weight.copy_(state["master"])


def made():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).bfloat16()
    return model, WithMasters(model.parameters(), lr=0.05)


def train(model, optimizer):
    for _ in range(10):
        batch = torch.randn(16, 8).bfloat16()
        optimizer.zero_grad()
        cross_entropy(model(batch).float(), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


first, optimizer = made()
train(first, optimizer)
second, again = made()
second.load_state_dict(first.state_dict())
again.load_state_dict(optimizer.state_dict())  # <- here
if not sick:
    for old, new in zip(first.parameters(), second.parameters(), strict=True):
        again.state[new]["master"] = optimizer.state[old]["master"].clone()
train(second, again)
