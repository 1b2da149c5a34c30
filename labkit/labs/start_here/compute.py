"""Products and copies on one device: its ceilings, and a few known kernels to hold against them."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from ...ranks.backend import usable_cores
from ...ranks.context import RankContext
from . import Config

SHARE = 0.4
"""Of the budget."""

LARGEST, SMALLEST = 8192, 256
"""Rows of the square products."""

REPEAT_S = 0.005
"""A repeat lasts at least this long, so that the clock's own noise does not count."""

REPEATS = (4, 30)
"""Of an operation: at least, and at most."""

PILOT_S, PILOTS = 0.03, 8

TURN_S = 0.02
"""A thread may wait this long for its turn on a busy core: a shorter product may be all waiting, so try a larger."""
CACHES = 8
"""A copy moves this many times the last-level cache."""

FALLBACK_CACHE_BYTES = 32 * 2**20
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Operation:
    """What is timed.

    Attributes:
        name: as it is recorded.
        work: does it once.
        flops, num_bytes: of one: floating-point operations, and the bytes that it cannot but move.
        size: rows of a square product.
        precision: of fp32 products: "high" permits tf32.
    """

    name: str
    work: Callable[[], Any]
    flops: int
    num_bytes: int
    size: int = 0
    precision: str = "highest"


def measure_compute(context: RankContext) -> None:
    """Time products per dtype, a large copy and three known kernels. *Called on* one rank, with all cores as its threads."""
    config: Config = context.task
    device, cuda = context.device, context.device.type == "cuda"
    cache, moved = last_level_cache_bytes(device), copy_bytes(config, device)
    dtypes = [name for name in DTYPES if cuda or name != "tf32"]
    each_s = config.budget_s * SHARE / (len(dtypes) + 4)
    context.probe.declare(cores=usable_cores(), cache_bytes=cache, working_set_bytes=moved)
    found = [_product(name, device, each_s) for name in dtypes]
    found += _kernels(device, moved)
    rows = {operation.name: max(1, math.ceil(REPEAT_S / _pilot_s(operation, device))) for operation in found}
    spent = dict.fromkeys(rows, 0.0)
    context.expect_steps(REPEATS[1] * len(found))
    for number in range(REPEATS[1]):  # rounds, so that a disturbance meets all alike
        for operation in found:
            if number < REPEATS[0] or spent[operation.name] < each_s:
                spent[operation.name] += _repeat(context, operation, rows[operation.name])


def _product(dtype: str, device: torch.device, longest_s: float) -> Operation:
    """The largest square product that takes less than `longest_s`, about: small ones do not reach the ceiling."""
    size = SMALLEST
    made = _square(dtype, size, device)
    once_s = _pilot_s(made, device)
    while size < LARGEST and (8 * once_s < longest_s or once_s < TURN_S):
        size *= 2
        made = _square(dtype, size, device)
        once_s = _pilot_s(made, device)
    return made


def _square(dtype: str, size: int, device: torch.device) -> Operation:
    a, b = (torch.rand(size, size, device=device).to(DTYPES[dtype]) for _ in range(2))
    c = torch.empty_like(a)
    precision = "high" if dtype == "tf32" else "highest"
    moved = 3 * size * size * a.element_size()
    return Operation(f"matmul-{dtype}", lambda: torch.mm(a, b, out=c), 2 * size**3, moved, size, precision)


def _kernels(device: torch.device, moved: int) -> list[Operation]:
    """A copy, and three kernels whose intensity is known: 0, 1/12, 1/2 and 8 operations a byte (fp32)."""
    elements = moved // 8
    source, target = torch.rand(elements, device=device), torch.empty(elements, device=device)
    third = elements // 3 * 2  # three arrays of this length are as many bytes as the copy moves
    one, two, three = source[:third], target[:third], torch.empty(third, device=device)
    columns = 1024
    weights = source[: elements // columns * columns].view(-1, columns)
    rows = weights.shape[0]
    vector, batch = torch.rand(columns, device=device), torch.rand(columns, 16, device=device)
    product, products = torch.empty(rows, device=device), torch.empty(rows, 16, device=device)
    return [
        Operation("copy", lambda: target.copy_(source), 0, 2 * 4 * elements),
        Operation("add", lambda: torch.add(one, two, out=three), third, 3 * 4 * third),
        Operation(
            "matvec",
            lambda: torch.mv(weights, vector, out=product),
            2 * rows * columns,
            4 * (rows * columns + rows + columns),
        ),
        Operation(
            "linear-16",
            lambda: torch.mm(weights, batch, out=products),
            32 * rows * columns,
            4 * (rows * columns + 16 * (rows + columns)),
        ),
    ]


def _pilot_s(operation: Operation, device: torch.device) -> float:
    """About how long it takes: the best of a few, since a thread that waits for a busy core tells nothing of the device."""
    with _precision(operation.precision):
        operation.work()  # the first use allocates and chooses
        tries = [_seconds(operation.work, 1, device)]
        while len(tries) < 2 or (sum(tries) < PILOT_S and len(tries) < PILOTS):
            tries.append(_seconds(operation.work, 1, device))
    return max(min(tries), 1e-7)


def _repeat(context: RankContext, operation: Operation, row: int) -> float:
    """Do it `row` times and record it; returns the seconds that this took."""
    probe = context.probe
    probe.begin_step()
    with probe.span(operation.name), _precision(operation.precision):
        seconds = _seconds(operation.work, row, context.device)
    probe.scalar("seconds", seconds / row)
    counts = {"flops": operation.flops, "bytes": operation.num_bytes, "size": operation.size, "operations": row}
    for name, amount in counts.items():
        probe.count(name, amount)
    probe.end_step()
    return seconds


def _seconds(work: Callable[[], Any], row: int, device: torch.device) -> float:
    """How long `row` times the work takes; on a GPU by its own events, so that the host's delays do not count."""
    if device.type != "cuda":
        start = time.perf_counter()
        for _ in range(row):
            work()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(row):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def copy_bytes(config: Config, device: torch.device) -> int:
    """Bytes that the copy reads and writes together: far beyond the last-level cache, an eighth of free memory at most."""
    wanted = config.copy_mib * 2**20 or max(128 * 2**20, CACHES * last_level_cache_bytes(device))
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    return max(2**20, min(wanted, free // 8)) // 4096 * 4096


def last_level_cache_bytes(device: torch.device) -> int:
    """Size of the cache that stands before memory, as the system says it; 32 MiB where it says nothing."""
    if device.type == "cuda":
        return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)) or FALLBACK_CACHE_BYTES
    if sys.platform == "darwin":
        import subprocess

        for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"):
            said = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False).stdout.strip()
            if said.isdigit() and int(said):
                return int(said)
        return FALLBACK_CACHE_BYTES
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return max((int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units), default=FALLBACK_CACHE_BYTES)
