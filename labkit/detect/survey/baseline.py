"""From the repeats of a survey to the baseline that later labs compare with. Pure; no torch, no I/O."""

from __future__ import annotations

import numpy as np

from ...record.baseline import BASELINE_SCHEMA, Baseline
from ...record.load import heaviest
from ...record.roles import Role
from ...record.schema import Record
from ...theory.ceilings import MIN_SIZES, timing
from ...words import plural
from .repeats import launches, link_fit, link_repeats, operations

DTYPES = ("fp32", "tf32", "bf16", "fp16")
MIB = 2**20
ONE_RANK = "one rank sends nothing: measure with --ranks 2 or more"


def baseline_of(record: Record) -> Baseline | None:
    """What later labs compare with; None where the record is of the link alone."""
    compute = operations(record.runs.get(Role.COMPUTE))
    if "copy" not in compute or "matmul-fp32" not in compute:
        return None
    head = record.runs[Role.COMPUTE].ranks[0].head
    values: dict = {"spread": {}, "how": {}}
    for part in (_of_compute(record), _of_link(record), _of_storage(record), _of_launch(record)):
        values["spread"] |= part.pop("spread", {})
        values["how"] |= part.pop("how", {})
        values |= part
    return Baseline(
        schema=BASELINE_SCHEMA,
        device=record.provenance.device,
        device_kind=head.device.split(":")[0],
        system=record.provenance.system,
        torch=record.provenance.torch,
        cores=_int(record.runs[Role.COMPUTE].fact("cores", head.threads)),
        threads=head.threads,
        backend=record.provenance.backend,
        world_size=record.provenance.world_size,
        date=record.provenance.date,
        matmul_flops_per_s={d: compute[f"matmul-{d}"].flops_per_s for d in DTYPES if f"matmul-{d}" in compute},
        copy_bytes_per_s=compute["copy"].bytes_per_s,
        load=heaviest([run.load for role, run in record.runs.items() if Role.of(role) is not Role.LAUNCH]),
        **values,
    )


def _of_compute(record: Record) -> dict:
    run = record.runs[Role.COMPUTE]
    threads = run.ranks[0].head.threads
    on = "" if run.ranks[0].head.device.startswith("cuda") else f", {plural(threads, 'thread')}"
    spread, how = {}, {}
    for name, found in operations(run).items():
        key, best = name.replace("-", "_"), f"best of {found.timing.repeats}"
        if name.startswith("matmul"):
            how[key] = f"{found.size}³ product{on}, {best}"
        elif name == "copy":
            cache = _int(run.fact("cache_bytes", 0))
            times = f", {found.num_bytes / cache:.0f} × the last-level cache" if cache else ""
            how[key] = f"{found.num_bytes / MIB:.0f} MiB read + written{times}{on}, {best}"
        else:
            continue
        spread[key] = found.timing.spread
    return {"spread": spread, "how": how}


def _of_link(record: Record) -> dict:
    fit = link_fit(record)
    if fit is None:
        why = ONE_RANK if record.runs[Role.LINK].world_size < 2 else f"fewer than {MIN_SIZES} message sizes"
        return {"how": {"link_latency": why, "link_bandwidth": why}}
    spreads = [timing(seconds).spread for seconds in link_repeats(record.runs[Role.LINK]).values()]
    ranks = f"{plural(fit.world_size, 'rank')}, {record.provenance.backend}"
    sizes = f"{_size(fit.sizes[0])} to {_size(fit.sizes[-1])}"
    how = f"fit over {len(fit.sizes)} sizes, {sizes}, off by up to {fit.residual_max:.0%}; {ranks}"
    return {
        "link_alpha_s": fit.alpha_s,
        "link_bytes_per_s": fit.bytes_per_s,
        "link_residual_max": fit.residual_max,
        "spread": dict.fromkeys(("link_latency", "link_bandwidth"), float(np.median(spreads))),
        "how": {"link_latency": how, "link_bandwidth": how},
    }


def _of_storage(record: Record) -> dict:
    run = record.runs.get(Role.STORAGE)
    found = operations(run)
    if run is None or not {"read-sequential", "read-random"} <= set(found):
        return {}
    sequential, single = found["read-sequential"], found["read-random"]
    cache = str(run.fact("cache_bypass", "not said"))
    file = (
        f"{_int(run.fact('file_bytes', 0)) / MIB:.0f} MiB file on {run.fact('file_system', 'unknown')}; page cache: {cache}"
    )
    return {
        "storage_sequential_bytes_per_s": sequential.bytes_per_s,
        "storage_random_read_s": single.timing.median_s,
        "storage_cache": cache,
        "spread": {"storage_sequential": sequential.timing.spread, "storage_random": single.timing.spread},
        "how": {
            "storage_sequential": f"1 MiB reads in order, best of {sequential.timing.repeats}; {file}",
            "storage_random": f"4 KiB reads, one at a time, median of {single.timing.repeats}; {file}",
        },
    }


def _of_launch(record: Record) -> dict:
    seconds = launches(record)
    if not seconds:
        return {"how": {"launch": "the ranks had been started by another launcher"}}
    found, ranks = timing(seconds), record.provenance.world_size
    how = f"{plural(ranks, 'rank')} with nothing to do, server warm, median of {found.repeats}"
    spread = {"launch": found.spread} if found.repeats > 1 else {}
    return {"launch_s": found.median_s, "spread": spread, "how": {"launch": how}}


def _size(num_bytes: float) -> str:
    return f"{num_bytes / MIB:g} MiB" if num_bytes >= MIB else f"{num_bytes / 1024:g} KiB"


def _int(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
