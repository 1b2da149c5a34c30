"""Train in 16 bits with checkpoints: python resume.py"""

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, ACCUMULATE = 5, 16, 4


def make_data(size=480):
    points = torch.randn(size, 10, generator=torch.Generator().manual_seed(1))
    return TensorDataset(points, points.square().sum(1, keepdim=True) / 10)


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_data(), batch_size=BATCH, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.GELU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        for number, (points, targets) in enumerate(loader, 1):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = mse_loss(model(points), targets) / ACCUMULATE
            loss.backward()
            if number % ACCUMULATE == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        schedule.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "resume.pt")
        print(f"epoch {epoch}: loss {loss.item() * ACCUMULATE:.4f}")


if __name__ == "__main__":
    main()
