"""Run as ranks of a launcher that is already there: torchrun, or srun with torchrun under it.

Then labkit starts nothing: each process is one rank, the files of the others reach rank 0 through the store by which
the ranks met, and rank 0 alone returns a result.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import os
import shutil
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RankLeftEarly, RankReport, UsageError
from ..record.store import new_folder, rank_file, read_rank
from .backend import choose, threads_per_rank, visible_gpus
from .entry import group_timeout, leave_group, loopback_interface, lost_its_peer, make_context, run_program
from .faults import Fault
from .job import Job
from .launch import Launched, origin_of
from .stacks import waits_in

_CHUNK_BYTES = 1 << 20  # a store takes 8 MiB in one value at most
_DUMP_PAUSE_S = 0.5
"""A rank at its deadline waits this long before it exits, so that the others still show where they stand."""

_launches = itertools.count()
_met: Any = None  # the store by which the ranks met; it can be made once in a process


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
        UsageError: the variables are incomplete or contradict each other.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    missing = [name for name in names if name not in os.environ]
    if "RANK" in missing:
        return None
    remedy = "start with torchrun, which sets RANK, WORLD_SIZE and LOCAL_RANK, or unset them"
    if missing:
        raise UsageError(f"RANK is set, but {' and '.join(missing)} not; {remedy}")
    try:
        rank, world_size, local_rank = (int(os.environ[name]) for name in names)
        local_world_size = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    except ValueError as error:
        raise UsageError(f"RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE are whole numbers: {error}") from error
    if not 0 <= rank < world_size:
        raise UsageError(f"RANK={rank} does not fit WORLD_SIZE={world_size}; {remedy}")
    if not 0 <= local_rank < local_world_size <= world_size:
        given = f"LOCAL_RANK={local_rank}, LOCAL_WORLD_SIZE={local_world_size} and WORLD_SIZE={world_size}"
        raise UsageError(f"{given} contradict each other; {remedy}")
    return Place(rank, local_rank, world_size, local_world_size)


def attempt() -> int:
    """How often the outer launcher has restarted the ranks."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def run_joined(
    place: Place,
    program: Callable[..., Any],
    task: Any,
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

    Collectives: a barrier, then the program's own. All else goes through the store.

    Raises:
        UsageError: the outer launcher's variables or a process group that exists already stand in the way.
        RankLeftEarly: another rank returned while this one waited for it in a collective.
        what the program raises: let it end the process, and the outer launcher ends the other ranks. At the deadline
        each rank writes to standard error where it waits, and its process ends.
    """
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        raise UsageError("this process is in a process group already; call destroy_process_group() before the lab runs")
    placement = choose(place.local_world_size, visible_gpus(), device, backend)
    threads = threads_per_rank(place.local_world_size)
    torch.set_num_threads(threads)
    where = torch.device(placement.device_of(place.local_rank))
    if where.type == "cuda":
        torch.cuda.set_device(where)
    store = _store_of_this_launch(place, deadline_s)
    timeout = group_timeout(deadline_s)
    dist.init_process_group(placement.backend, store=store, rank=place.rank, world_size=place.world_size, timeout=timeout)
    own = new_folder(None, f"rank-{place.rank:05d}")
    job = Job(
        program=b"",  # nothing travels: every process has it
        origin=origin_of(program),
        folder=own,
        world_size=place.world_size,
        placement=placement,
        threads=threads,
        seed=seed,
        deadline_s=deadline_s,
        faults=faults,
    )
    path = rank_file(own, place.rank, attempt())
    started = time.monotonic()
    try:
        with _deadline(place, job):
            dist.barrier()
            context, probe = make_context(job, task, place.rank, place.local_rank, attempt(), where, placement.backend, path)
            try:
                value = run_program(program, context)
            except BaseException as error:
                _fail(error, place, store)
                raise
            probe.close()
            del context
            store.set(f"returned/{place.rank}", b"1")
            leave_group(lambda: _has_returned(store, range(place.world_size)))
            if place.rank != 0:
                _send(store, place.rank, path)
                return None
            assert folder is not None
            fired = 0
            for rank in range(place.world_size):
                kept = rank_file(folder, rank, attempt())
                kept.write_bytes(path.read_bytes() if rank == 0 else _receive(store, rank))
                fired += sum(event.name == "fault" for event in read_rank(kept).events)
            if path.with_suffix(".npz").exists():
                shutil.copy(path.with_suffix(".npz"), folder)
            return Launched((value,), time.monotonic() - started, attempts=1 + attempt(), faults_fired=fired)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _store_of_this_launch(place: Place, deadline_s: float) -> Any:
    """The ranks' store, keys under a prefix of this launch's own: a second run does not meet the first one's."""
    import torch.distributed as dist

    interface = loopback_interface() if place.local_world_size == place.world_size else _interface_to_the_others()
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    global _met
    if _met is None:
        try:
            _met, _, _ = next(iter(dist.rendezvous("env://")))  # pyright: ignore[reportPrivateImportUsage]
        except ValueError as error:
            raise UsageError(f"{error}; start with torchrun, or unset RANK, WORLD_SIZE and LOCAL_RANK") from error
    # a restarted attempt must not read the addresses of the one before
    store = dist.PrefixStore(f"labkit/{attempt()}/{next(_launches)}", _met)  # pyright: ignore[reportPrivateImportUsage]
    store.set_timeout(group_timeout(deadline_s))
    return store


def _interface_to_the_others() -> str | None:
    """The interface by which this host reaches the first rank's: gloo would take that of the host's name, often loopback.

    None where that address is this host's loopback too, or cannot be looked up: gloo chooses then.
    """
    import psutil

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((os.environ["MASTER_ADDR"], 9))  # sends nothing
            own = probe.getsockname()[0]
    except (KeyError, OSError):
        return None
    names = [name for name, found in psutil.net_if_addrs().items() if any(address.address == own for address in found)]
    return names[0] if names and not own.startswith("127.") else None


def _has_returned(store: Any, ranks: Any) -> bool:
    return store.check([f"returned/{rank}" for rank in ranks])


def _fail(error: BaseException, place: Place, store: Any) -> None:
    """Leave the group, which wakes those that wait for this rank; name the cause where it is one that returned."""
    returned = []
    if lost_its_peer(error):
        with contextlib.suppress(RuntimeError):  # the store's host may be gone too
            returned = [rank for rank in range(place.world_size) if _has_returned(store, [rank])]
    leave_group(lambda: True)
    if returned:
        reports = {rank: RankReport(rank, "returned", "before the others were done") for rank in returned}
        summary = f"rank {returned[0]} returned while rank {place.rank} still waited for it in a collective:"
        raise RankLeftEarly(summary, reports) from error


def _send(store: Any, rank: int, path: Path) -> None:
    packed = zlib.compress(path.read_bytes(), 1)
    chunks = [packed[start : start + _CHUNK_BYTES] for start in range(0, len(packed), _CHUNK_BYTES)]
    for number, chunk in enumerate(chunks):
        store.set(f"file/{rank}/{number}", chunk)
    store.set(f"file/{rank}", str(len(chunks)).encode())


def _receive(store: Any, rank: int) -> bytes:
    """A rank's file. Waits until it is there."""
    parts = [f"file/{rank}/{number}" for number in range(int(store.get(f"file/{rank}")))]
    packed = b"".join(store.get(part) for part in parts)
    for part in parts:
        store.delete_key(part)
    return zlib.decompress(packed)


@contextlib.contextmanager
def _deadline(place: Place, job: Job) -> Iterator[None]:
    """At the deadline, write to standard error where this rank waits, with the stacks of its threads, and end it."""
    over = threading.Event()

    def watch() -> None:
        if over.wait(job.deadline_s):
            return
        with tempfile.TemporaryFile("w+") as dump:
            faulthandler.dump_traceback(dump, all_threads=True)
            dump.seek(0)
            stacks = dump.read()
        function, where = waits_in(stacks, job.origin)
        stands = f"waits in {function} at {where}" if where else "has returned and waits for the other ranks"
        summary = f"labkit: rank {place.rank} had not finished after {job.deadline_s:g} s: it {stands}\n"
        os.write(2, (summary + stacks).encode(errors="backslashreplace"))
        shutil.rmtree(job.folder, ignore_errors=True)
        time.sleep(_DUMP_PAUSE_S)
        os._exit(1)

    # where a call holds the interpreter's lock, the thread cannot run; this needs no lock
    faulthandler.dump_traceback_later(job.deadline_s + 5, exit=True)
    threading.Thread(target=watch, daemon=True, name="labkit-deadline").start()
    try:
        yield
    finally:
        over.set()
        faulthandler.cancel_dump_traceback_later()
