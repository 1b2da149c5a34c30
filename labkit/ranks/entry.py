"""What a rank does from its first line to its last: join, run the program, leave in the right order.

The order at the end is where runs hang: a DistributedDataParallel or FSDP object that is alive when its process group
is destroyed deadlocks gloo sooner or later. So: release, collect, wait for each other, destroy.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import connection, process
from pathlib import Path
from typing import Any

from ..record.probe import Probe
from ..record.store import rank_file
from .backend import Placement
from .board import Board, RankState, own_identity
from .context import RankContext
from .faults import Fault, FaultInjector
from .stacks import where_raised

LEAVE_GRACE_S = 1.0
"""How long a rank that returned waits for the others before it leaves the group, which wakes those that wait for it."""

VICTIM_PAUSE_S = 0.15
"""A rank whose peer vanished waits this long before it exits, so that the agent meets the cause first."""

_LOST_PEER = ("closed by peer", "reset by peer", "broken pipe", "remote process exited", "socket closed")


@dataclass(frozen=True)
class Job:
    """All that a rank needs to know, as plain data.

    Attributes:
        program: cloudpickle of (function, config).
        origin: the file in which the program was written, to name it in errors.
        folder: where ranks write.
        world_size: number of ranks of this launch.
        placement: backend and device.
        threads: intra-op threads of each rank.
        seed: handed to the program.
        deadline_s: after which the launcher ends the run; collectives wait longer, so that stacks are taken first.
        faults: planned faults.
        group: whether to join a process group (False for one-process references).
        env: environment variables to set before torch is used.
    """

    program: bytes
    origin: str
    folder: Path
    world_size: int
    placement: Placement
    threads: int
    seed: int
    deadline_s: float
    faults: tuple[Fault, ...] = ()
    group: bool = True
    env: dict[str, str] = field(default_factory=dict)


def error_file(folder: Path, rank: int, attempt: int) -> Path:
    """Where a rank leaves what it raised."""
    return folder / f"rank-{rank:05d}.attempt{attempt}.error.json"


def stack_file(folder: Path, rank: int) -> Path:
    """Where a rank's stacks are dumped on SIGUSR1."""
    return folder / f"rank-{rank:05d}.stack"


def output_file(folder: Path, rank: int) -> Path:
    """Where a rank's standard output and error go."""
    return folder / f"rank-{rank:05d}.out"


def enter(job: Job) -> Any:
    """Live one rank's life. *Called on* every rank, by the elastic agent, in a process of its own."""
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    _die_with_launcher()
    board = Board(job.folder / "board", job.world_size)
    pid, ticks = own_identity()
    board.put(rank, pid=pid, started_ticks=ticks, attempt=attempt, state=RankState.STARTING, step=0, returned_ns=0)
    if board.stopped:
        os._exit(0)
    _own_streams_and_signals(job.folder, rank)
    os.environ.update(job.env)
    probe: Probe | None = None
    try:
        import cloudpickle

        program, config = cloudpickle.loads(job.program)
        context, probe = _join(job, config, board, rank, attempt)
        board.put(rank, state=RankState.RUNNING)
        value = run_program(program, context)
        probe.close()
    except BaseException as error:
        if probe is not None:
            probe.close(finished=False)
        _fail(job, board, rank, attempt, error)
    board.put(rank, state=RankState.RETURNED, returned_ns=time.monotonic_ns())
    del context
    _leave(job, board, rank)
    board.put(rank, state=RankState.DONE)
    return value


def run_program(program: Callable[[RankContext], Any], context: RankContext) -> Any:
    """Run the program; `sys.exit()` and `sys.exit(0)` count as a return."""
    try:
        return program(context)
    except SystemExit as exit_:
        if exit_.code not in (None, 0):
            raise RuntimeError(f"the program called sys.exit({exit_.code!r})") from exit_
        return None


def _die_with_launcher() -> None:
    """End this rank as soon as the launching process is gone, however it went."""
    launcher = process.parent_process()
    if launcher is None:
        return

    def watch() -> None:
        connection.wait([launcher.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="labkit-launcher-watch").start()


def _own_streams_and_signals(folder: Path, rank: int) -> None:
    """Send output to the rank's file; leave Ctrl-C to the launcher; dump stacks on SIGUSR1."""
    output = os.open(output_file(folder, rank), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)
    # a notebook's interrupt and a terminal's Ctrl-C reach the whole process group
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stacks = open(stack_file(folder, rank), "w")  # noqa: SIM115 - faulthandler needs it open for the rank's whole life
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)


def loopback_interface() -> str:
    """Name of the loopback interface: gloo would otherwise look the host's name up."""
    return "lo0" if sys.platform == "darwin" else "lo"


def _join(job: Job, config: Any, board: Board, rank: int, attempt: int) -> tuple[RankContext, Probe]:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(job.threads)
    device = torch.device(job.placement.device_of(rank))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if job.group:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback_interface())
        # one file an attempt: a restart that meets the dead attempt's addresses hangs or fails
        store = dist.FileStore(str(job.folder / f"store.{attempt}"), job.world_size)
        dist.init_process_group(
            job.placement.backend,
            store=store,
            rank=rank,
            world_size=job.world_size,
            timeout=timedelta(seconds=job.deadline_s * 2 + 60),
        )
        dist.barrier()
    backend = job.placement.backend if job.group else "none"
    return make_context(
        job, config, rank, rank, attempt, device, backend, rank_file(job.folder, rank, attempt), board=board
    )


def make_context(
    job: Job,
    config: Any,
    rank: int,
    local_rank: int,
    attempt: int,
    device: Any,
    backend: str,
    path: Path,
    board: Board | None = None,
) -> tuple[RankContext, Probe]:
    """Build a rank's context and its probe. *Called on* every rank, right after the barrier that aligns clocks."""

    def announce(fault: Fault, fired: int) -> None:
        probe.event("fault", fault=fault.kind, at_step=fault.step, seconds=fault.seconds)
        if board is not None:
            board.put(rank, faults=fired)

    injector = FaultInjector(job.faults, rank, attempt, announce)

    def on_step(step: int) -> None:
        if board is not None:
            board.set_step(rank, step + 1)
        injector(step)

    probe = Probe(
        path,
        rank=rank,
        local_rank=local_rank,
        world_size=job.world_size,
        host=socket.gethostname(),
        attempt=attempt,
        device=str(device),
        backend=backend,
        threads=job.threads,
        on_step=on_step,
    )

    def expect_steps(total: int) -> None:
        if board is not None:
            board.put(rank, total_steps=total)

    context = RankContext(
        rank=rank,
        local_rank=local_rank,
        world_size=job.world_size,
        host=socket.gethostname(),
        attempt=attempt,
        device=device,
        backend=backend,
        config=config,
        seed=job.seed,
        folder=job.folder,
        probe=probe,
        expect_steps=expect_steps,
    )
    return context, probe


def _fail(job: Job, board: Board, rank: int, attempt: int, error: BaseException) -> None:
    """Leave the error behind and exit at once: no barrier, no destroy, nothing that could wait for a peer."""
    text = "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
    message = f"{type(error).__name__}: {error}".split("\n")[0]
    victim = isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _LOST_PEER)
    where, called = where_raised(error.__traceback__, job.origin)
    if victim:
        message = f"while it waited in {called or 'a collective'}"
    content = {"message": message, "where": where, "victim": victim, "text": text}
    aside = error_file(job.folder, rank, attempt).with_suffix(".part")
    aside.write_text(json.dumps(content))
    aside.replace(error_file(job.folder, rank, attempt))
    board.put(rank, state=RankState.FAILED)
    if victim:
        time.sleep(VICTIM_PAUSE_S)
    os._exit(1)


def _leave(job: Job, board: Board, rank: int) -> None:
    """Release, collect, wait for each other, destroy."""
    import torch.distributed as dist

    gc.collect()
    if not (job.group and dist.is_initialized()):
        return
    patience = time.monotonic() + LEAVE_GRACE_S
    while any(row.state < RankState.RETURNED for row in board.rows()) and time.monotonic() < patience:
        time.sleep(0.001)
    # a program that keeps its DDP object in a global could deadlock the destroy: leave it behind then
    destroy = threading.Thread(target=dist.destroy_process_group, daemon=True)
    destroy.start()
    destroy.join(LEAVE_GRACE_S * 2)
