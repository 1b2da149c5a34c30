"""Run as ranks of a launcher that is already there: torchrun, or srun with torchrun under it.

Then labkit starts nothing: each process is one rank, the files of the others reach rank 0 through the group, and rank 0
alone returns a result.
"""

from __future__ import annotations

import faulthandler
import gc
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..record.store import rank_file
from .backend import choose, threads_per_rank, visible_gpus
from .entry import Job, make_context, run_program
from .faults import Fault
from .launch import Launched, dumps, origin_of

_launches = itertools.count()
_store: Any = None


@dataclass(frozen=True)
class Place:
    """This process's place among the ranks of an outer launcher."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int


def outer_place() -> Place | None:
    """This process's place if an outer launcher (torchrun) started it, else None.

    Raises:
        UsageError: the variables are there but contradict each other.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if any(name not in os.environ for name in names):
        return None
    try:
        rank, world_size, local_rank = (int(os.environ[name]) for name in names)
        local_world_size = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    except ValueError as error:
        raise UsageError(f"RANK, WORLD_SIZE and LOCAL_RANK must be whole numbers, as torchrun sets them; {error}") from error
    if not 0 <= rank < world_size:
        raise UsageError(f"RANK={rank} does not fit WORLD_SIZE={world_size}; start with torchrun, or unset both")
    return Place(rank, local_rank, world_size, local_world_size)


def run_joined(
    place: Place,
    program: Callable[..., Any],
    config: Any,
    *,
    folder: Path | None,
    seed: int,
    device: str | None,
    backend: str | None,
    deadline_s: float,
    faults: tuple[Fault, ...] = (),
) -> Launched | None:
    """Run `program` as this process's part of the outer launcher's ranks. *Called on* every rank.

    Args:
        folder: where rank 0 wants every rank's file; None on the others.

    Returns:
        On rank 0 what `launch` would give (`values` holds rank 0's alone); on the others None.

    Collectives: a barrier, the program's own, then two gathers.

    Raises:
        what the program raises: the outer launcher ends the other ranks. At the deadline the stacks of all threads go to
        standard error and the process ends.
    """
    import torch
    import torch.distributed as dist

    placement = choose(place.local_world_size, visible_gpus(), device, backend)
    threads = threads_per_rank(place.local_world_size)
    torch.set_num_threads(threads)
    where = torch.device(placement.device_of(place.local_rank))
    if where.type == "cuda":
        torch.cuda.set_device(where)
    _join(place, placement.backend)
    own = Path(tempfile.mkdtemp(prefix="labkit-rank-"))
    started = time.monotonic()
    faulthandler.dump_traceback_later(deadline_s, exit=True)
    try:
        job = Job(
            program=dumps(program, None),
            origin=origin_of(program),
            folder=own,
            world_size=place.world_size,
            placement=placement,
            threads=threads,
            seed=seed,
            deadline_s=deadline_s,
            faults=faults,
        )
        dist.barrier()
        path = rank_file(own, place.rank)
        context, probe = make_context(
            job, config, place.rank, place.local_rank, 0, where, placement.backend, path
        )
        value = run_program(program, context)
        probe.close()
        del context
        gc.collect()
        _gather(path, place, where, folder)
        if folder is not None and path.with_suffix(".npz").exists():
            shutil.copy(path.with_suffix(".npz"), folder / path.with_suffix(".npz").name)
        dist.barrier()
        dist.destroy_process_group()
    finally:
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(own, ignore_errors=True)
    if place.rank != 0:
        return None
    return Launched((value,), time.monotonic() - started, attempts=1, faults_fired=0)


def _join(place: Place, backend: str) -> None:
    """Join a group of this launch's own: keys under a prefix, so that a second run does not meet the first one's."""
    import torch.distributed as dist

    global _store
    if _store is None:
        _store, _, _ = next(iter(dist.rendezvous("env://")))
    store = dist.PrefixStore(f"labkit/{next(_launches)}", _store)
    dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.world_size)


def _gather(path: Path, place: Place, device: Any, folder: Path | None) -> None:
    """Bring every rank's file to rank 0's folder, as bytes."""
    import torch
    import torch.distributed as dist

    data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).to(device)
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(place.world_size)]
    dist.all_gather(sizes, torch.tensor([data.numel()], device=device))
    longest = int(max(size.item() for size in sizes))
    padded = torch.zeros(longest, dtype=torch.uint8, device=device)
    padded[: data.numel()] = data
    gathered = [torch.empty_like(padded) for _ in range(place.world_size)] if place.rank == 0 else None
    dist.gather(padded, gathered, dst=0)
    if gathered is not None and folder is not None:
        for rank, (blob, size) in enumerate(zip(gathered, sizes, strict=True)):
            rank_file(folder, rank).write_bytes(blob[: int(size.item())].cpu().numpy().tobytes())
