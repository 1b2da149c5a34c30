"""What a rank program is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..record.probe import Probe

if TYPE_CHECKING:
    import torch


@dataclass
class RankContext:
    """One rank's view of the run. The process group is joined before the program starts, and left after it.

    Attributes:
        rank, local_rank, world_size, host: as in torch.distributed; a host is one network stack.
        attempt: 0, and one more after each restart.
        device: where this rank's tensors go.
        backend: "gloo" or "nccl", or "none" for a program without a group.
        config: the lab's configuration.
        seed: the run's seed; what is derived from it, the program decides.
        folder: the run's folder, the same for all ranks of a host.
        probe: this rank's probe.
        expect_steps: tell the progress bar how many steps are to come.
        reached: say that the program came to a point of this name, where a planned fault may wait for it.
    """

    rank: int
    local_rank: int
    world_size: int
    host: str
    attempt: int
    device: torch.device
    backend: str
    config: Any
    seed: int
    folder: Path
    probe: Probe
    expect_steps: Callable[[int], None]
    reached: Callable[[str], None] = field(default=lambda _point: None)

    @property
    def local_disk(self) -> Path:
        """A folder that stands for the disk of this rank's node: the fault "lose-node" takes it along. Not made yet."""
        return node_disk(self.folder, self.rank)


def node_disk(folder: Path, rank: int) -> Path:
    """Where the disk of a rank's node is, on one machine that stands for several."""
    return folder / f"node-{rank:05d}"


def worker_options(num_workers: int) -> dict[str, Any]:
    """Arguments for a DataLoader inside a rank: its workers are forked (0.2 s; a forkserver takes 10)."""
    if num_workers == 0:
        return {"num_workers": 0}
    return {"num_workers": num_workers, "multiprocessing_context": "fork", "worker_init_fn": die_with_parent}


def die_with_parent(_worker_id: int = 0) -> None:
    """Ask the kernel to end this process when its parent dies (Linux; elsewhere torch's own check takes 5 s)."""
    import ctypes
    import os
    import signal
    import sys

    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() == 1:  # the parent went before the call
            os._exit(1)
