"""What a rank does from its first line to its last: join, run the program, leave in the right order.

The order at the end is where runs hang: a DistributedDataParallel or FSDP object that is alive when its process group
is destroyed deadlocks gloo sooner or later. So: release, collect, wait for each other, destroy.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import gc
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from multiprocessing import connection, process
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from ..record.probe import Probe
from ..record.store import rank_file
from .board import Board, RankState, own_identity
from .context import RankContext, die_with_parent, node_disk
from .faults import Fault, FaultInjector
from .job import Job, board_file, error_file, output_file, stack_file, value_file
from .links import local_rank_of
from .manners import THREADS_GRACE_S, wait_for_threads
from .stacks import where_raised

LEAVE_GRACE_S = 1.0
"""How long a rank that returned waits for the others before it leaves the group, which wakes those that wait for it."""

VICTIM_PAUSE_S = 0.15
"""A rank whose peer vanished waits this long before it exits, so that the agent meets the cause first."""

# what gloo says to those that waited when a peer's socket closed
_LOST_PEER = ("closed by peer", "reset by peer", "broken pipe", "remote process exited", "socket closed")

# the variables by which the agent tells a rank who it is; all others are the launching process's
_AGENTS_OWN = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
)


def enter(job: Job) -> None:
    """Live one rank's life. *Called on* every rank, by the elastic agent, in a process of its own."""
    gc.freeze()  # what the warm server loaded is shared: a collection here would copy its pages (0.5-0.75 s a launch)
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    refused = _take_seat(job, rank)  # first of all: it wants a process of one thread, and forgets the parent's death
    os.setpgid(0, 0)  # a process group of its own, so that its children can be ended with it, also after its death
    die_with_parent()  # which is the warm server: without it nobody here learns how a rank ends
    _die_with_launcher()
    try:
        board = Board(board_file(job.folder), job.world_size)
    except OSError:  # the launch ended, and took its folder along, before this process came up
        os._exit(1)
    board.row(rank).kill()  # children that the attempt before may have left
    pid, ticks = own_identity()
    board.put(rank, pid=pid, started_ticks=ticks, attempt=attempt, state=RankState.STARTING, step=0, returned_ns=0, errno=0)
    if board.stopped:
        os._exit(1)  # not 0: the agent would wait for this rank's return value
    probe: Probe | None = None
    try:
        _own_streams_and_signals(job.folder, rank)
        _take_environment(job.env)
        if refused is not None:
            raise refused
        if job.seats is not None:
            os.environ.update(job.seats.environment(rank, job.world_size))
        # processes that the program starts are started as in any program, not from the warm server
        multiprocessing.set_start_method(multiprocessing.get_all_start_methods()[0], force=True)
        import cloudpickle

        program, task = cloudpickle.loads(job.program)
        context, probe = _join(job, task, board, rank, attempt)
        board.put(rank, state=RankState.RUNNING)
        value = run_program(program, context)
        wait_for_threads(min(THREADS_GRACE_S, job.deadline_s / 4))
        value_file(job.folder, rank, attempt).write_bytes(cloudpickle.dumps(value))
        probe.close()
    except BaseException as error:
        try:
            _fail(job, board, rank, attempt, probe, error)
        except BaseException as another:  # raised by a signal handler, such as torch's for workers that died
            _fail(job, board, rank, attempt, probe, another)
    board.put(rank, state=RankState.RETURNED, returned_ns=time.monotonic_ns())
    del program, task, context, value
    leave_group(lambda: all(row.state >= RankState.RETURNED for row in board.rows()))
    board.put(rank, state=RankState.DONE)


def run_program(program: Callable[[RankContext], Any], context: RankContext) -> Any:
    """Run the program; `sys.exit()` and `sys.exit(0)` count as a return."""
    try:
        return program(context)
    except SystemExit as exit_:
        if exit_.code not in (None, 0):
            raise RuntimeError(f"the program called sys.exit({exit_.code!r})") from exit_
        return None


def run_for_its_value(context: RankContext) -> Any:
    """Run a program that is there for what it returns: leaving it by `sys.exit()` is no answer. *Called on* one rank.

    `context.task` is the program and what it finds as its own `context.task`.
    """
    program, task = context.task
    try:
        return program(replace(context, task=task))
    except SystemExit as exit_:
        raise RuntimeError(f"it called sys.exit({exit_.code!r}), and should return a value") from exit_


def _take_seat(job: Job, rank: int) -> LaunchError | None:
    """Move into this rank's host; what stood in the way is raised later, where it can be told."""
    try:
        if job.seats is not None:
            job.seats.enter(rank, job.world_size)
    except LaunchError as error:
        return error
    return None


def _die_with_launcher() -> None:
    """End this rank and its children as soon as the launching process is gone, however it went."""
    launcher = process.parent_process()
    if launcher is None:
        return

    def watch() -> None:
        connection.wait([launcher.sentinel])
        os.killpg(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="labkit-launcher-watch").start()


def _own_streams_and_signals(folder: Path, rank: int) -> None:
    """Send output to the rank's file; leave Ctrl-C to the launcher; dump stacks on SIGUSR1."""
    output = os.open(output_file(folder, rank), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    # a notebook's interrupt and a terminal's Ctrl-C are the launcher's to act upon
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as the warm server's children have it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stacks = open(stack_file(folder, rank), "w")  # noqa: SIM115 - faulthandler needs it open for the rank's whole life
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)


def _take_environment(env: dict[str, str]) -> None:
    """Have the environment that the launching process has now."""
    own = {k: v for k, v in os.environ.items() if k in _AGENTS_OWN or k.startswith("TORCHELASTIC_")}
    os.environ.clear()
    os.environ.update(env | own)


def loopback_interface() -> str:
    """Name of the loopback interface: gloo would otherwise look the host's name up."""
    return "lo0" if sys.platform == "darwin" else "lo"


def group_timeout(deadline_s: float) -> timedelta:
    """How long collectives wait: longer than the run's deadline, at which stacks are taken first."""
    return timedelta(seconds=deadline_s * 2 + 60)


def _join(job: Job, task: Any, board: Board, rank: int, attempt: int) -> tuple[RankContext, Probe]:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(job.threads)
    device = torch.device(job.placement.device_of(rank))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if job.group:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback_interface())
        # one file an attempt: a restart that meets the dead attempt's addresses hangs or fails
        path = str(job.folder / f"store.{attempt}")
        store = dist.FileStore(path, job.world_size)  # pyright: ignore[reportPrivateImportUsage]
        timeout = group_timeout(job.deadline_s)
        backend = job.placement.backend
        if job.seats is not None and job.seats.network.way == "emulated":
            from . import emulated

            backend = emulated.register(job.seats.network, job.world_size)
        dist.init_process_group(backend, store=store, rank=rank, world_size=job.world_size, timeout=timeout)
        dist.barrier()
    backend = job.placement.backend if job.group else "none"
    local = rank if job.seats is None else local_rank_of(rank, job.world_size, job.seats.network.hosts)
    return make_context(job, task, rank, local, attempt, device, backend, rank_file(job.folder, rank, attempt), board=board)


def make_context(
    job: Job,
    task: Any,
    rank: int,
    local_rank: int,
    attempt: int,
    device: Any,
    backend: str,
    path: Path,
    board: Board | None = None,
) -> tuple[RankContext, Probe]:
    """Build a rank's context and its probe. *Called on* every rank, right after the barrier that aligns clocks."""

    def announce(fault: Fault) -> None:
        probe.event("fault", fault=fault.kind, at_step=fault.step, at=fault.at, seconds=fault.seconds)
        if board is not None:
            board.put(rank, faults=board.row(rank).faults + 1)

    host = job.seats.host_name(rank, job.world_size) if job.seats else socket.gethostname()
    injector = FaultInjector(job.faults, rank, attempt, announce, node_disk(job.folder, rank))

    def on_step(step: int) -> None:
        if board is not None:
            board.set_step(rank, step + 1)
        injector(step)

    probe = Probe(
        path,
        rank=rank,
        local_rank=local_rank,
        world_size=job.world_size,
        host=host,
        attempt=attempt,
        device=str(device),
        backend=backend,
        threads=job.threads,
        on_step=on_step,
    )

    def expect_steps(total: int, together: bool = False) -> None:
        if board is not None:
            board.put(rank, total_steps=total, together=together)

    context = RankContext(
        rank=rank,
        local_rank=local_rank,
        world_size=job.world_size,
        host=host,
        attempt=attempt,
        device=device,
        backend=backend,
        task=task,
        seed=job.seed,
        folder=job.folder,
        probe=probe,
        expect_steps=expect_steps,
        network=job.seats.network if job.seats else None,
        data_store=job.data_store,
        reached=lambda point: injector.reached(point, probe.step),
    )
    return context, probe


def lost_its_peer(error: BaseException) -> bool:
    """Whether an error only says that another rank went away while this one waited for it."""
    return isinstance(error, RuntimeError) and any(sign in _text(error).lower() for sign in _LOST_PEER)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text cannot be made)"


def _fail(job: Job, board: Board, rank: int, attempt: int, probe: Probe | None, error: BaseException) -> None:
    """Leave the error behind and exit at once: no barrier, no destroy, nothing that could wait for a peer."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if probe is not None:
        with contextlib.suppress(OSError):  # the disk may be full, which may be what failed
            probe.close(finished=False)
    trace = "".join(traceback.format_exception(error))
    with contextlib.suppress(Exception):  # the program may have closed its streams
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        os.write(2, trace.encode(errors="backslashreplace"))
    where, called = where_raised(error.__traceback__, job.origin)
    message = f"{type(error).__name__}: {_text(error)}".splitlines()[0]
    victim = lost_its_peer(error)
    if victim:
        message = f"while it waited in {called or 'a collective'}"
    content: dict[str, Any] = {"message": message, "where": where, "victim": victim, "gone": [], "text": trace}
    board.put(rank, errno=_write_error(error_file(job.folder, rank, attempt), content))
    board.put(rank, state=RankState.FAILED)
    if victim:
        time.sleep(VICTIM_PAUSE_S)
        rows = board.rows()
        content["gone"] = [r for r, row in enumerate(rows) if row.is_lost and row.state != RankState.FAILED]
        _write_error(error_file(job.folder, rank, attempt), content)
    os._exit(1)


def _write_error(path: Path, content: dict[str, Any]) -> int:
    """Write an error file, whole or not at all; why not, as an errno, or 0."""
    aside = path.with_suffix(".part")
    try:
        aside.write_text(json.dumps(content))
        aside.replace(path)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def leave_group(all_returned: Callable[[], bool]) -> None:
    """Release, collect, wait for each other, destroy. *Called on* every rank, once its program is done.

    Args:
        all_returned: whether the program of every rank has returned. Leaving before that would fail those that still
            use the group; never leaving would keep those that wait for this rank waiting.
    """
    import torch.distributed as dist

    gc.collect()
    if not dist.is_initialized():
        return
    patience = time.monotonic() + LEAVE_GRACE_S
    while not all_returned() and time.monotonic() < patience:
        time.sleep(0.001)
    # a program that keeps its DDP object in a global could deadlock the destroy: leave it behind then
    destroy = threading.Thread(target=dist.destroy_process_group, daemon=True)
    destroy.start()
    destroy.join(LEAVE_GRACE_S * 2)
