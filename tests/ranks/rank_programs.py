"""What the ranks of these tests run. Importable, so that each travels by name."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from labkit.ranks.context import worker_options

FOREVER_S = 100.0


def line_of(marker: str, file: str = __file__) -> str:
    """file:line of the line that carries `# marker`, as errors name it from the working folder."""
    for number, line in enumerate(Path(file).read_text().splitlines(), start=1):
        if line.endswith(f"# {marker}"):
            return f"{Path(file).name}:{number}"
    raise LookupError(marker)


# ---- Clean finishes


def sum_of_ranks(context):
    total = torch.tensor([context.rank + 1.0])
    dist.all_reduce(total)
    return context.rank, total.item()


def empty(context):
    return None


def facts(context):
    return {
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "pid": os.getpid(),
        "threads": torch.get_num_threads(),
        "config": context.task,
        "seed": context.seed,
        "folder": context.folder,
        "world_size": context.world_size,
        "initialized": dist.is_initialized(),
        "stdin": sys.stdin.read() if sys.stdin else None,
    }


def megabytes(context):
    return bytes([context.rank]) * (context.task * 2**20)


def talkative(context):
    print("hello from rank", context.rank)
    os.system("echo shell from rank $RANK")
    print("to stderr", file=sys.stderr)


def flood(context):
    line = "x" * 200
    for _ in range(50_000):
        print(line)
    dist.barrier()


def changes_signal_handlers(context):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return sum_of_ranks(context)


def closes_its_streams(context):
    print("last words")
    sys.stdout.close()
    sys.stderr.close()
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    if context.task == "fails":
        raise ValueError("without a stream")
    return sum_of_ranks(context)


def model() -> DistributedDataParallel:
    torch.manual_seed(0)
    return DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))


def backward(net: nn.Module) -> None:
    net(torch.randn(8, 64)).sum().backward()


def keeps_its_ddp_object(context):
    global _kept
    _kept = model()
    backward(_kept)


def trains(context):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        backward(net)
        optimizer.step()
    return sum(parameter.double().sum().item() for parameter in net.parameters())


def leaves_children(context):
    if os.fork() == 0:
        time.sleep(FOREVER_S)
        os._exit(0)
    return os.getpid()


# ---- Ends that leave the others waiting. `config` says how rank 1 ends and in what the others wait.


def rank_one_leaves(context):
    how, wait = context.task
    net = model() if wait == "backward" else None
    if context.rank != 1:
        return _wait(wait, net)
    match how:
        case "return":
            return None
        case "exit":
            sys.exit()
        case "exit 0":
            sys.exit(0)
        case "exit 3":
            sys.exit(3)
        case "exit text":
            sys.exit("text of the exit")
        case "_exit 7":
            os._exit(7)
        case "_exit 0":
            os._exit(0)
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "SIGSEGV":
            ctypes.string_at(0)
        case "exception":
            raise KeyError("raised by rank 1")  # raises here
        case "exception with DDP":
            raises_with_its_ddp_object(net or model())
        case "unprintable":
            raise Unprintable


def has_a_full_disk(context):
    """From here on no file can grow, which reads like a disk that is full."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    context.probe.event("one too many")


def leaves_at_once(context):
    os._exit(0)


def _wait(what, net):
    match what:
        case "all_reduce":
            dist.all_reduce(torch.ones(1))  # waits in all_reduce
        case "barrier":
            dist.barrier()
        case "backward":
            backward(net)
        case "sleep":
            time.sleep(FOREVER_S)
        case "deaf sleep":  # ignores the agent's SIGTERM
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(FOREVER_S)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class HoldsModel(Exception):
    def __init__(self, net):
        super().__init__("holds its model")
        self.net = net


def raises_with_its_ddp_object(net):
    try:
        backward_in_vain(net)
    except ValueError as error:
        raise HoldsModel(net) from error


def backward_in_vain(net):
    loss = net(torch.randn(8, 64)).sum()
    raise ValueError(f"before backward {loss.shape}")


def all_raise(context):
    raise ValueError(f"raised by rank {context.rank}\nand a second line")


def returns_what_cannot_travel(context):
    return threading.Lock()


# ---- Hangs


def one_sleeps(context):
    if context.rank == 1:
        time.sleep(FOREVER_S)  # sleeps
    dist.all_reduce(torch.ones(1))  # the others wait for it


def stuck_in_c(context):
    if context.rank == 1:
        re.match(r"(a+)+$", "a" * 60 + "b")  # backtracks for ages
    dist.barrier()  # the others wait in a barrier


def deaf(context):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(FOREVER_S)


# ---- Steps


def steps(context):
    """`config` steps with an all-reduce in each. Returns (attempt, the last sum)."""
    context.expect_steps(context.task)
    total = torch.zeros(1)
    for _ in range(context.task):
        step = context.probe.begin_step()
        total = torch.tensor([float(step)])
        dist.all_reduce(total)
        context.probe.scalar("total", total.item())
        context.probe.end_step()
    return context.attempt, total.item()


def slow_steps(context):
    for _ in range(10_000):
        context.probe.begin_step()
        dist.all_reduce(torch.ones(1))
        time.sleep(0.01)
        context.probe.end_step()


def rows() -> list:
    return [torch.tensor([float(i)]) for i in range(100_000)]


def loads_data(context):
    """Steps that read from DataLoader workers: rank 0's a plain loader, the others' as labkit has them.

    The workers never look whether their rank lives, which they do every 5 s of their own accord: something else ends them.
    """
    torch.utils.data._utils.worker.MP_STATUS_CHECK_INTERVAL = 3600.0
    options = {"num_workers": 1} if context.rank == 0 else worker_options(1)
    loader = DataLoader(rows(), batch_size=2, **options)
    for batch in loader:
        context.probe.begin_step()
        time.sleep(0.01)
        context.probe.scalar("first", batch[0].item())
        context.probe.end_step()


def takes_memory(context):
    """Fills memory, 32 MiB at a time, up to `config` bytes; slow enough for the launcher to see it come."""
    taken = []
    while len(taken) * 2**25 < context.task:
        context.probe.begin_step()
        taken.append(torch.ones(2**23))
        time.sleep(0.02)
        context.probe.end_step()
    return len(taken) * 2**25
