"""Accelerate: rank 0 reads for all and hands the batches out; mixed precision in bf16, whose numbers need no scaler."""

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset

RANKS = 2
NEEDS = "accelerate"


class Stream(IterableDataset):
    """Samples without a length."""

    def __iter__(self):
        generator = torch.Generator().manual_seed(5)
        for _ in range(96):
            row = torch.randn(8, generator=generator)
            yield row, int(row.sum() > 0)


how = DataLoaderConfiguration(dispatch_batches=True)
accelerator = Accelerator(mixed_precision="bf16", dataloader_config=how, cpu=True)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Stream(), batch_size=8))
for _ in range(2):
    for batch, labels in loader:
        optimizer.zero_grad()
        with accelerator.autocast():
            loss = cross_entropy(model(batch), labels)
        accelerator.backward(loss)
        optimizer.step()
accelerator.wait_for_everyone()
accelerator.end_training()
