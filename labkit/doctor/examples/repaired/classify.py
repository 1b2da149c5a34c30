"""Train a classifier on several processes: torchrun --nproc-per-node 2 classify.py"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    return parser.parse_args()


def make_data(size=512):
    """Points in 12 dimensions, in 4 classes: which of the first 4 numbers is the largest."""
    points = torch.randn(size, 12, generator=torch.Generator().manual_seed(1))
    return TensorDataset(points, points[:, :4].argmax(1))


def main():
    args = arguments()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = make_data()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler)
    network = torch.nn.Sequential(torch.nn.Linear(12, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for points, classes in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(points), classes)
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict()}, f"classify-{epoch}.pt")
            print(f"epoch {epoch}: loss {loss.item():.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
