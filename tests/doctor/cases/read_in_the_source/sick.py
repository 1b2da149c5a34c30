"""A training whose weight decay is parsed only, and whose schedule is never stepped."""

import argparse

import torch
from torch.nn.functional import cross_entropy


def train_step(model, optimizer, schedule, batch):
    optimizer.zero_grad()
    loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    loss.backward()
    optimizer.step()
    return loss.item()
    schedule.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4)
    for _ in range(12):
        train_step(model, optimizer, schedule, torch.randn(16, 8))
