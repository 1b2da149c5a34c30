"""Records of surveys made of plain numbers: what each launch measured."""

from labkit.record.schema import Provenance, RankLog, Record, Run, Span, Step
from labkit.theory.ceilings import all_reduce_s

from .builders import head

SIZES = tuple(1024 * 4**k for k in range(8))
ALPHA_S, BYTES_PER_S = 200e-6, 1e9
RATES = {"fp32": 200e9, "bf16": 50e9, "fp16": 1e9}
COPY = 20e9


def a_step(number: int, name: str, seconds: float, lane: str = "compute", **counts: int) -> Step:
    start = number * 10**9
    span = Span(name, lane, start, start + int(seconds * 1e9))
    return Step(number, 0, start, span.end_ns, [span], {"seconds": seconds}, counts)


def run_of_steps(role: str, by_rank: list[list[tuple]], wall_s: float = 1.0, **facts) -> Run:
    """A run whose ranks timed (name, seconds, lane, counts)."""
    logs = []
    for rank, of_rank in enumerate(by_rank):
        steps = [a_step(n, name, seconds, lane, **counts) for n, (name, seconds, lane, counts) in enumerate(of_rank)]
        logs.append(RankLog(head(rank, len(by_rank), **facts), tuple(steps)))
    return Run(role, tuple(logs), wall_s)


def link_run(ranks: int = 2, *, sizes=SIZES, distort=None, jitter=(1.0, 1.05, 1.1), cores: int = 8, **facts) -> Run:
    """A link of known α and β; `distort` maps a size to a factor on its time."""
    rows = []
    for factor in jitter:
        for size in sizes if ranks > 1 else ():
            seconds = all_reduce_s(size, ranks, ALPHA_S, BYTES_PER_S) * (distort or {}).get(size, 1.0) * factor
            rows.append(("all_reduce", seconds, "comm", {"bytes": size}))
    return run_of_steps("link", [rows] * ranks, cores=cores, num_gpus=0, **facts)


def compute_run(rates=RATES, copy=COPY, jitter=(1.0, 1.1, 1.2)) -> Run:
    rows = []
    for factor in jitter:
        for dtype, rate in rates.items():
            counts = {"flops": 2 * 1024**3, "bytes": 3 * 4 * 1024**2, "size": 1024}
            rows.append((f"matmul-{dtype}", factor * counts["flops"] / rate, "compute", counts))
        rows.append(("copy", factor * 2**28 / copy, "compute", {"flops": 0, "bytes": 2**28, "size": 0}))
        rows.append(("matvec", factor * 2**28 / copy, "compute", {"flops": 2**27, "bytes": 2**28, "size": 0}))
    return run_of_steps("compute", [rows], cores=2, cache_bytes=2**25, working_set_bytes=2**28)


def storage_run(rate=1e9, read_s=60e-6, **facts) -> Run:
    given = {"file_bytes": 2**27, "file_system": "ext4", "in_memory": False, "cached_share": -1.0}
    given |= {"cache_bypass": "bypassed (O_DIRECT)", **facts}
    rows = [("read-sequential", factor * 2**24 / rate, "data", {"bytes": 2**24}) for factor in (1.0, 1.1, 1.2)]
    rows += [("read-random", factor * read_s, "data", {"bytes": 4096}) for factor in (0.9, 1.0, 1.1)]
    return run_of_steps("storage", [rows], **given)


def launch_runs(ranks: int = 2, seconds=(0.2, 0.18, 0.25), here: bool = True) -> dict[str, Run]:
    return {
        f"launch-{n}": run_of_steps(f"launch-{n}", [[]] * ranks, wall_s=wall_s, launched_here=here)
        for n, wall_s in enumerate(seconds, 1)
    }


def survey(ranks: int = 2, **runs: Run) -> Record:
    """A whole survey; a part given by its role takes the place of the usual one."""
    whole = {"link": link_run(ranks), **launch_runs(ranks), "compute": compute_run(), "storage": storage_run()}
    whole = {role: runs.pop(role, run) for role, run in whole.items()} | runs
    provenance = Provenance(
        source="measured", device="a processor", backend="gloo", world_size=ranks, torch="2.9", seed=0,
        date="2025-01-02T03:04:05+00:00", system="Linux x86_64",
    )  # fmt: skip
    return Record("start-here", "survey", {"parts": "all"}, provenance, whole)
