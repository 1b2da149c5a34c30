"""A training that takes turns with others like it: each makes some steps while the others wait, and times its own.

    python doctor_loop.py NAME TURNS FOLDER SIZE

NAME is one of those in FOLDER/names, in whose order turns are taken. Each turn's processor time and wall time for a step go
to FOLDER/NAME.RANK, and its most resident memory to FOLDER/NAME.RANK.bytes. It is a plain script, run by itself or by what
watches it.
"""

import os
import resource
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SIZES = {"small": (256, 512, 64, 60), "large": (1024, 1280, 192, 12)}
"""(inputs, hidden units, samples of a batch, steps of a turn): some 3 ms and some 30 ms a step on one thread."""

WARM = 80
"""Steps before the first turn: more than the doctor looks at one by one."""


def wait_for(turn: int, name: str, folder: Path) -> None:
    """Wait until so many turns are over, all ranks together, and this one's is next."""
    names = (folder / "names").read_text().split()
    due = turn * len(names) + names.index(name)
    while int((folder / "turn").read_text() or -1) != due:
        time.sleep(0.002)
    if dist.is_initialized():
        dist.barrier()


def pass_on(folder: Path) -> None:
    if dist.is_initialized():
        dist.barrier()
    if int(os.environ.get("RANK", "0")) == 0:
        aside = folder / "turn.part"
        aside.write_text(str(int((folder / "turn").read_text()) + 1))
        aside.replace(folder / "turn")


def main(name: str, turns: int, folder: Path, size: str) -> None:
    inputs, hidden, batch, steps = SIZES[size]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(batch * 16, inputs), torch.randint(0, 10, (batch * 16,)))
    sampler = DistributedSampler(data) if ranks > 1 else None
    loader = DataLoader(data, batch_size=batch, sampler=sampler, shuffle=sampler is None)
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    model = DistributedDataParallel(model) if ranks > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, WARM + turns * steps + 1)
    times, turn, step, total = [], 0, 0, WARM + turns * steps
    wall, used = time.perf_counter(), time.process_time()
    epoch = 0
    while step < total:
        if sampler is not None:
            sampler.set_epoch(epoch)
        epoch += 1
        for samples, labels in loader:
            if step >= WARM and (step - WARM) % steps == 0:
                wait_for(turn, name, folder)
                wall, used = time.perf_counter(), time.process_time()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(samples), labels).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step > WARM and (step - WARM) % steps == 0:
                times.append((1e6 * (time.process_time() - used) / steps, 1e6 * (time.perf_counter() - wall) / steps))
                pass_on(folder)
                turn += 1
            if step == total:
                break
    lines = [f"{cpu:.3f} {elapsed:.3f}" for cpu, elapsed in times]
    rank = os.environ.get("RANK", "0")
    (folder / f"{name}.{rank}").write_text("\n".join(lines))
    (folder / f"{name}.{rank}.bytes").write_text(str(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    del model
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
