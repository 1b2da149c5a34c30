"""What a rank program is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..record.probe import Probe
from ..record.schema import Network
from .data_store import DataStoreAddress
from .hosts import bytes_on

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
        task: what the launch hands to every rank.
        seed: the run's seed; what is derived from it, the program decides.
        folder: the run's folder, the same for all ranks of a host.
        probe: this rank's probe.
        network: the hosts of one machine and the links between them, if the run was given such.
        data_store: where the server is that all ranks read from, if the plan has one.
        expect_steps: tell the progress bar how many steps this rank will make in all; with `together=True` how many all
            ranks will make, where each takes of them as many as it can.
        reached: say that the program came to a point of this name, where a planned fault may wait for it.
    """

    rank: int
    local_rank: int
    world_size: int
    host: str
    attempt: int
    device: torch.device
    backend: str
    task: Any
    seed: int
    folder: Path
    probe: Probe
    expect_steps: Callable[..., None]
    network: Network | None = None
    data_store: DataStoreAddress | None = None
    reached: Callable[[str], None] = field(default=lambda _point: None)

    def wire_bytes(self) -> tuple[int, int] | None:
        """(received, sent) bytes of this host's interface so far, of all its ranks, headers included.

        Of the interface that gloo was told to use, other than loopback; None where there is none, or where the link is
        emulated. On a machine that others share, their traffic counts too.
        """
        name = os.environ.get("GLOO_SOCKET_IFNAME", "")
        return None if name in ("", "lo", "lo0") else bytes_on(name)

    def loopback_bytes(self) -> tuple[int, int] | None:
        """(received, sent) bytes so far between ranks of this host, where it is a network stack of its own; else None."""
        return None if self.network is None or self.wire_bytes() is None else bytes_on("lo")

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
    import signal
    import sys

    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() == 1:  # the parent went before the call
            os._exit(1)
