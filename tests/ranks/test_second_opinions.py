"""What labkit counts of collectives and keeps account of in memory, beside torch's own CommDebugMode and MemTracker.

CommDebugMode counts operations and knows no bytes; it leaves messages between two ranks out. MemTracker follows storages
through the dispatcher, activations and inputs too, and sorts them by when they were made; it sees a storage that C++ made,
such as a bucket of DDP's, only once an operation has touched it.
"""

import pytest

from labkit.labs.zero_stages.strategies import TORCH
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks

KINDS = {
    "allreduce_": "all_reduce",
    "all_reduce": "all_reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "alltoall_base_": "all_to_all",
    "gather_": "gather",
    "scatter_": "scatter",
}
"""By torch's name of an operation, without its namespace."""

INSTANTS = ("before", "forward", "backward", "step", "zero_grad")


def both(operation):
    """({kind: times} by labkit, by torch) of the collectives of a call, which is made once for each."""
    from torch.distributed.tensor.debug import CommDebugMode

    from labkit.watch.traffic import CollectiveCounter, by_kind

    with CollectiveCounter() as counter:
        operation()
    with CommDebugMode() as debug:
        operation()
    own = {kind: len(seen) for kind, seen in by_kind(counter.seen).items()}
    theirs: dict[str, int] = {}
    for packet, times in debug.get_comm_counts().items():
        kind = KINDS[str(packet).partition(".")[2]]
        theirs[kind] = theirs.get(kind, 0) + times
    return own, theirs


def trained(context, name):
    """A small GPT after two steps in one strategy, and a function that makes a step and calls `look` between its parts."""
    import torch

    from labkit.labs.zero_stages.strategies import Place, prepare
    from labkit.workloads.gpt import GPTShape, build_gpt, token_loss

    shape = GPTShape(layers=2, hidden=24, heads=2, seq=8)
    model = build_gpt(shape, seed=0, attention="sdpa", recompute=False)
    training = prepare(name, model, Place(context.world_size, 2, 1e-3, context.device))
    tokens = torch.zeros(1, 8, dtype=torch.int64)

    def step(look=lambda instant: None):
        look("before")
        logits = training.model(tokens)
        look("forward")
        loss = token_loss(logits, tokens)
        del logits
        training.backward(loss)
        del loss
        look("backward")
        training.step()
        look("step")
        training.zero_grad()
        look("zero_grad")

    step()
    step()  # DDP has laid its buckets out, the optimizer has its state
    return training, tokens, step


def strategies(context):
    """By strategy: (collectives by labkit and by torch, memory by instant as of `memory`)."""
    found = {}
    for name in ("alone", *TORCH):
        training, tokens, step = trained(context, name)
        found[name] = both(step), memory(training, tokens, step) if name != "hsdp" else {}
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Of four ranks, what each found."""
    return launch(strategies, None, ranks=4, folder=tmp_path_factory.mktemp("run")).values


def test_each_strategys_collectives_are_as_many_as_torch_counts(seen):
    for found in seen:
        assert found["alone"][0] == ({}, {})
        for name in TORCH:
            (own, theirs), _ = found[name]
            assert own == theirs and own, name


def operations(context):
    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional
    from torch.distributed.fsdp import fully_shard

    one, whole = torch.ones(4), torch.ones(8)
    parts = [torch.ones(4), torch.ones(4)] if context.rank == 0 else None
    sharded = torch.nn.Linear(8, 8)
    fully_shard(sharded)
    sharded(torch.ones(2, 8)).sum().backward()

    def message():
        (dist.send if context.rank == 0 else dist.recv)(one, 1 - context.rank)

    called = {
        "broadcast": lambda: dist.broadcast(one, 0),
        "reduce": lambda: dist.reduce(one, 0),
        "all_gather_list": lambda: dist.all_gather(list(whole.chunk(2)), one),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(one, whole),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty(4), one),
        "gather": lambda: dist.gather(one, parts),
        "scatter": lambda: dist.scatter(one, parts),
        "functional": lambda: functional.wait_tensor(functional.all_reduce(one, "sum", dist.group.WORLD)),
        "clip": lambda: torch.nn.utils.clip_grad_norm_(sharded.parameters(), 1.0).full_tensor(),
        "whole_weights": lambda: [parameter.full_tensor() for parameter in sharded.parameters()],
        "barrier": dist.barrier,
        "message": message,
    }
    return {name: both(operation) for name, operation in called.items()}


def test_of_single_operations_only_messages_between_two_ranks_are_counted_by_labkit_alone(folder):
    for rank, found in enumerate(launch(operations, None, ranks=2, folder=folder).values):
        assert found.pop("message") == ({"send": 1} if rank == 0 else {}, {})
        assert found.pop("barrier") == ({}, {})
        for name, (own, theirs) in found.items():
            assert own == theirs and own, name


def passes_under_ddp(context):
    """(all-reduces that the watch counted, {kind: times} by torch), one a step."""
    import torch
    from torch.distributed.tensor.debug import CommDebugMode
    from torch.nn.parallel import DistributedDataParallel

    from labkit.watch.ddp import watch_ddp

    layers = [torch.nn.Linear(64, 64) for _ in range(6)]
    module = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02)
    watch = watch_ddp(module, context.probe)
    found = []
    for number in range(6):
        module.require_backward_grad_sync = number % 3 == 2 or number < 2  # as no_sync sets it
        context.probe.begin_step()
        with CommDebugMode() as debug:
            module(torch.ones(2, 64)).sum().backward()
        theirs = {KINDS[str(packet).partition(".")[2]]: times for packet, times in debug.get_comm_counts().items()}
        found.append((context.probe.counted("all_reduce"), theirs))
        context.probe.end_step()
    watch.close()
    return found


def test_the_watch_of_ddp_counts_the_all_reduces_that_torch_counts(folder):
    for found in launch(passes_under_ddp, None, ranks=2, folder=folder).values:
        own, theirs = zip(*found, strict=True)
        assert own == tuple(step.get("all_reduce", 0) for step in theirs)
        assert own[1] > 1 and own[3:] == (0, 0, own[1])
        # before its second pass DDP sends the new layout of its buckets: their parameters, and how many each has
        assert [step.get("broadcast", 0) for step in theirs] == [0, 2, 0, 0, 0, 0]


# ---- Memory


def memory(training, tokens, step):
    """By instant: (labkit's account, torch's), bytes by category. Not of HSDP: its shards are those of FSDP2 in a group."""
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.fsdp import FSDPModule

    from labkit.watch.memory import bytes_alive

    if isinstance(training.model, FSDPModule):
        tracker = FSDPMemTracker(training.model, training.optimizer)
        tracker.track_inputs((tokens,))
    else:
        tracker = MemTracker()
        # ZeroRedundancyOptimizer keeps its share in one of its own
        tracker.track_external(training.model, getattr(training.optimizer, "optim", training.optimizer), tokens)
    found = {}

    def look(instant):
        (snapshot,) = tracker.get_tracker_snapshot().values()
        theirs = {str(getattr(kind, "value", kind)): size for kind, size in snapshot.items()}
        found[instant] = bytes_alive(training.account()), theirs

    with tracker:
        step(look)
    return found


@pytest.fixture(scope="module")
def kept(seen):
    """Of four ranks, by strategy and instant, what each keeps."""
    return [{name: of_memory for name, (_, of_memory) in found.items()} for found in seen]


def sums(own, theirs, names):
    return {category: (own[category], sum(theirs.get(name, 0) for name in named)) for category, named in names.items()}


def agree(compared):
    return all(own == theirs for own, theirs in compared.values())


def test_one_processs_parameters_gradients_and_state_are_those_that_torch_tracks(kept):
    names = {"parameters": ["Parameter"], "gradients": ["Gradient"], "optimizer_state": ["Optstate"], "buffers": ["Buffer"]}
    for found in kept:
        for instant in INSTANTS:
            own, theirs = found["alone"][instant]
            assert agree(sums(own, theirs, names)), instant
            assert sum(own.values()) + theirs["Activation"] + theirs["Other"] == theirs["Total"]
        assert found["alone"]["backward"][0]["gradients"] > 0


@pytest.mark.parametrize("name", ["fsdp2-no-reshard", "fsdp2-reshard"])
def test_under_fsdp2_the_shards_and_the_gathered_copies_are_those_that_torch_tracks(kept, name):
    names = {
        "parameters": ["Sharded Param"],
        "gradients": ["Sharded Grad"],
        "optimizer_state": ["OptState"],
        "unsharded": ["Unsharded Param", "Unsharded Grad"],
        "buffers": ["Buffer"],
    }
    for found in kept:
        for instant in INSTANTS:
            assert agree(sums(*found[name][instant], names)), instant
        assert (found[name]["forward"][0]["unsharded"] > 0) == (name == "fsdp2-no-reshard")


@pytest.mark.parametrize("name", ["ddp", "ddp-default", "zero1"])
def test_under_ddp_torch_calls_buckets_temporary_and_sees_them_from_the_backward_pass_on(kept, name):
    """Where gradients are views of buckets both are one storage, which labkit counts as gradients while there are any."""
    for found in kept:
        for instant in INSTANTS:
            own, theirs = found[name][instant]
            names = {"parameters": ["Parameter"], "optimizer_state": ["Optstate"]}
            assert agree(sums(own, theirs, names)), instant
            reduced = own["gradients"] + own["buffers"]
            early = instant in ("before", "forward")
            assert (0 if early else reduced) == theirs["Gradient"] + theirs["Temp"], instant
            assert reduced > 0
