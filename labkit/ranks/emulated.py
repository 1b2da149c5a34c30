"""Links that are not there: a process group that delays the completion of each collective.

It stands in for shaped network stacks where a machine permits none. Each rank sends its share of a collective over one
wire, one after the other, as its host's link would carry it:

    seconds = bytes on the wire / rate + latency · hops

with the bytes and hops of the ring algorithms (Thakur, Rabenseifner, Gropp 2005): 2(W-1)/W of the tensor and 2(W-1) hops
for an all-reduce, (W-1)/W of the whole and W-1 hops for an all-gather, a reduce-scatter and an all-to-all, the tensor for a
broadcast. The delay begins when the collective has really ended, for nothing can travel before all ranks are there, and runs
beside the program, as a transfer does. Groups within one host pay nothing. What comes out is `simulated`, and says so.
"""

# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false, reportCallIssue=false, reportAttributeAccessIssue=false
# torch's stubs name the parameters after each other's methods; it passes them by position

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions

from ..record.schema import Network
from .links import host_of

BACKEND = "labkit_emulated"


class Carried(dist.Work):
    """A collective under way. (torch's own wrapper of a future loses its errors.)"""

    def __init__(self, future: torch.futures.Future) -> None:
        super().__init__()
        self._future = future

    def wait(self, timeout: Any = None) -> bool:
        self._future.wait()
        return True

    def get_future(self) -> torch.futures.Future:
        return self._future

    def is_completed(self) -> bool:
        return self._future.done()


class Wire:
    """The link of one rank's host: what is sent over it goes one after the other, on a thread of its own."""

    def __init__(self, network: Network) -> None:
        self._bytes_per_s = network.rate_bits_per_s / 8 or float("inf")
        self._latency_s = network.latency_s
        self._queue: queue.SimpleQueue[tuple[Callable[[], Any], float, torch.futures.Future]] = queue.SimpleQueue()
        threading.Thread(target=self._carry, daemon=True, name="labkit-wire").start()

    def seconds(self, num_bytes: float, hops: int) -> float:
        """How long the link takes to carry this."""
        return num_bytes / self._bytes_per_s + self._latency_s * hops

    def send(self, wait: Callable[[], Any], seconds: float) -> Any:
        """A Work that is done `seconds` after `wait` returned what it gives, and after all that was sent before."""
        future: torch.futures.Future = torch.futures.Future()
        self._queue.put((wait, seconds, future))
        return Carried(future)

    def _carry(self) -> None:
        while True:
            wait, seconds, future = self._queue.get()
            try:
                result = wait()
            except Exception as error:  # the waiting rank is to hear it, as it would from gloo
                future.set_exception(error)
                continue
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                time.sleep(left)
            future.set_result(result)
            del wait, result, future  # or the last tensors stay alive until the next collective


class EmulatedGroup(dist.ProcessGroup):
    """A group that does its work by another (gloo), and lets it take as long as the link would."""

    def __init__(self, rank: int, size: int, inner: Any, wire: Wire, hosts: int) -> None:
        """`hosts`: on how many hosts the ranks of this group sit."""
        super().__init__(rank, size)
        self._inner, self._wire, self._hosts, self._size = inner, wire, hosts, size

    def getBackendName(self) -> str:
        return BACKEND

    # torch keeps a group's name in its backends, of which a group written in Python has none; device meshes ask for it

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def pg_name(self) -> str:
        return self._name

    def _later(self, work: Any, result: list[torch.Tensor], num_bytes: float, hops: int) -> Any:
        def wait() -> list[torch.Tensor]:
            work.wait()
            return result

        return self._wire.send(wait, self._wire.seconds(num_bytes, hops) if self._hosts > 1 else 0.0)

    def _share(self) -> float:
        return (self._size - 1) / self._size

    def _all_reduce(self, work: Any, tensors: Sequence[torch.Tensor]) -> Any:
        return self._later(work, list(tensors), 2 * self._share() * bytes_of(tensors), 2 * (self._size - 1))

    def _whole(self, work: Any, whole: Sequence[torch.Tensor], result: Sequence[torch.Tensor]) -> Any:
        """All-gather, reduce-scatter, all-to-all: of the `whole`, all but a rank's own part travels."""
        return self._later(work, list(result), self._share() * bytes_of(whole), self._size - 1)

    def _once(self, work: Any, tensors: Sequence[torch.Tensor]) -> Any:
        return self._later(work, list(tensors), bytes_of(tensors), 1)

    def allreduce(self, tensors, opts=None):
        return self._all_reduce(self._inner.allreduce(tensors, opts or dist.AllreduceOptions()), tensors)

    def allreduce_coalesced(self, tensors, opts=None):
        return self._all_reduce(self._inner.allreduce_coalesced(tensors, opts or dist.AllreduceCoalescedOptions()), tensors)

    def broadcast(self, tensors, opts=None):
        return self._once(self._inner.broadcast(tensors, opts or dist.BroadcastOptions()), tensors)

    def reduce(self, tensors, opts=None):
        return self._once(self._inner.reduce(tensors, opts or dist.ReduceOptions()), tensors)

    def allgather(self, output_lists, inputs, opts=None):
        work = self._inner.allgather(output_lists, inputs, opts or AllgatherOptions())
        flat = [tensor for outputs in output_lists for tensor in outputs]
        return self._whole(work, flat, flat)

    def _allgather_base(self, output, input, opts=None):
        work = self._inner._allgather_base(output, input, opts or AllgatherOptions())
        return self._whole(work, [output], [output])

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        work = self._inner.allgather_into_tensor_coalesced(outputs, inputs, opts or AllgatherOptions())
        return self._whole(work, outputs, outputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def reduce_scatter(self, outputs, input_lists, opts=None):
        work = self._inner.reduce_scatter(outputs, input_lists, opts or dist.ReduceScatterOptions())
        return self._whole(work, [tensor for inputs in input_lists for tensor in inputs], outputs)

    def _reduce_scatter_base(self, output, input, opts=None):
        work = self._inner._reduce_scatter_base(output, input, opts or dist.ReduceScatterOptions())
        return self._whole(work, [input], [output])

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        work = self._inner.reduce_scatter_tensor_coalesced(outputs, inputs, opts or dist.ReduceScatterOptions())
        return self._whole(work, inputs, outputs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def alltoall(self, outputs, inputs, opts=None):
        return self._whole(self._inner.alltoall(outputs, inputs, opts or dist.AllToAllOptions()), inputs, outputs)

    def alltoall_base(self, output, input, output_splits, input_splits, opts=None):
        work = self._inner.alltoall_base(output, input, output_splits, input_splits, opts or dist.AllToAllOptions())
        return self._whole(work, [input], [output])

    def gather(self, output_lists, inputs, opts=None):
        return self._once(self._inner.gather(output_lists, inputs, opts or dist.GatherOptions()), inputs)

    def scatter(self, outputs, input_lists, opts=None):
        return self._once(self._inner.scatter(outputs, input_lists, opts or dist.ScatterOptions()), outputs)

    def barrier(self, opts=None):
        return self._later(self._inner.barrier(opts or dist.BarrierOptions()), [], 0, 2)

    def send(self, tensors, dst, tag):
        # the transfer is the sender's to delay
        done: torch.futures.Future = torch.futures.Future()

        def finish(work: Any) -> None:
            try:
                work.wait()
                done.set_result(list(tensors))
            except Exception as error:
                done.set_exception(error)

        def start(_carried: torch.futures.Future) -> None:
            try:  # in order here; waited for on a thread of its own, for a peer that is late must not stop the wire
                work = self._inner.send(tensors, dst, tag)
                threading.Thread(target=finish, args=(work,), daemon=True).start()
            except Exception as error:
                done.set_exception(error)

        seconds = self._wire.seconds(bytes_of(tensors), 1) if self._hosts > 1 else 0.0
        self._wire.send(lambda: [], seconds).get_future().add_done_callback(start)
        return Carried(done)

    def recv(self, tensors, src, tag):
        return self._inner.recv(tensors, src, tag)

    def recv_anysource(self, tensors, tag):
        return self._inner.recv_anysource(tensors, tag)


def bytes_of(tensors: Sequence[torch.Tensor]) -> int:
    """Bytes that tensors hold."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _gloo(opts: Any, ranks: Sequence[int]) -> dist.ProcessGroup:
    """The group that does the work. A whole group and not a bare backend, so that its collectives go through torch's
    dispatcher, as those of any other group do: what counts traffic there sees them, and whose they are."""
    gloo = dist.ProcessGroup.BackendType.GLOO
    inner = dist.ProcessGroup(opts.store, opts.group_rank, opts.group_size)
    inner._set_default_backend(gloo)
    backend = dist.ProcessGroupGloo(opts.store, opts.group_rank, opts.group_size, opts.timeout)
    for device in ("cpu", "cuda"):
        inner._register_backend(torch.device(device), gloo, backend)
    dist.distributed_c10d._world.pg_group_ranks[inner] = {rank: place for place, rank in enumerate(ranks)}
    return inner


def register(network: Network, world_size: int) -> str:
    """Make a backend of this link known to torch, and return its name. *Called on* every rank, before it joins the group."""
    wire = Wire(network)

    def create(opts: Any, _backend_options: Any = None) -> EmulatedGroup:
        ranks = opts.global_ranks_in_group or range(world_size)
        inner = _gloo(opts, ranks)
        spread = len({host_of(rank, world_size, network.hosts) for rank in ranks})
        return EmulatedGroup(opts.group_rank, opts.group_size, inner, wire, spread)

    dist.Backend.register_backend(BACKEND, create, extended_api=True, devices=["cpu", "cuda"])
    return BACKEND
