"""A run that is stopped within an epoch, and goes on in new objects from all that it had: nothing is read twice."""

import os
import random
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2


class From(DistributedSampler):
    """A sampler that can begin within an epoch."""

    begin = 0

    def __iter__(self):
        return iter(list(super().__iter__())[self.begin :])


def save(path, parts, **counters):
    rng = [None] * dist.get_world_size()
    dist.all_gather_object(rng, torch.get_rng_state())
    state = {name: part.state_dict() for name, part in parts.items()}
    if dist.get_rank() == 0:
        others = {"python": random.getstate(), "numpy": np.random.get_state()[1].tolist(), "torch": rng}
        torch.save({**state, **counters, "rng": others}, path + ".part")
        os.replace(path + ".part", path)
    dist.barrier()


def run(path, stop=None):
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    ema = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.95))
    parts = {"model": model.module, "optimizer": optimizer, "schedule": schedule, "ema": ema}
    epoch = done = 0
    if os.path.exists(path):
        state = torch.load(path, weights_only=False)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        epoch, done = state["epoch"], state["batches"]
        torch.set_rng_state(state["rng"]["torch"][dist.get_rank()])
        random.setstate(state["rng"]["python"])
    sampler = From(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    while epoch < 3:
        sampler.set_epoch(epoch)
        sampler.begin = 8 * done
        for batch, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimizer.step()
            schedule.step()
            ema.update_parameters(model.module)
            done += 1
            if done == 6:
                save(path, parts, epoch=epoch, batches=done)
            if (epoch, done) == stop:
                return
        epoch, done = epoch + 1, 0


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
inputs = torch.randn(160, 8, generator=torch.Generator().manual_seed(0))
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
where = os.path.join(tempfile.gettempdir(), f"healthy-{os.environ['MASTER_PORT']}-all.pt")
run(where, stop=(1, 8))
run(where)
dist.barrier()
if dist.get_rank() == 0:
    os.remove(where)
dist.barrier()
dist.destroy_process_group()
