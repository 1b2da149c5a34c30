"""Does each rank have a core, or a GPU, of its own?

Ranks that share one take turns: each collective then waits for the scheduler, not for the link, and times show the order
of events, not the speed of a cluster. What was read, and what became of the weights, is unaffected.
"""

from __future__ import annotations

from collections import Counter

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering

NAME = "cores"
QUESTION = "Does each rank have a core of its own?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the run under study, host by host."""
    run = record.run
    if run.world_size < 2:
        return _answer("not_applicable", "one-rank-shares-with-none")
    on_gpu = run.ranks[0].head.device.startswith("cuda")
    told = [log.head.facts.get("num_gpus" if on_gpu else "cores") for log in run.ranks]
    known = [count for count in told if isinstance(count, int) and count > 0]
    if len(known) < len(told):
        return _answer("not_applicable", "gpus-not-recorded" if on_gpu else "cores-not-recorded")
    # hosts that were made on this machine are network stacks, and share its cores
    machines = [log.head.host if record.network is None else "this machine" for log in run.ranks]
    hosts, units = Counter(machines), dict(zip(machines, known, strict=True))
    threads = {machine: log.head.threads for machine, log in zip(machines, run.ranks, strict=True)}
    fullest = max(hosts, key=lambda host: hosts[host] / units[host])
    return _of_host(hosts[fullest], units[fullest], threads[fullest], on_gpu=on_gpu)


def _of_host(ranks: int, units: int, threads: int, *, on_gpu: bool) -> Verdict:
    """Judge the host on which most ranks come to a core or GPU."""
    evidence = {
        "ranks_on_a_host": Quantity(ranks, "ranks"),
        "gpus_there" if on_gpu else "cores_there": Quantity(units, "GPUs" if on_gpu else "cores"),
    }
    if ranks > units:
        return _answer("found", "ranks-share-gpus" if on_gpu else "ranks-share-cores", evidence, ranks=ranks, units=units)
    wanted = ranks * threads
    if not on_gpu and wanted > units:
        evidence |= {"threads_of_a_rank": Quantity(threads, "threads")}
        most = units // ranks
        return _answer(
            "inconclusive", "more-threads-than-cores", evidence, ranks=ranks, threads=wanted, units=units, most=most
        )
    return _answer("clear", "a-gpu-for-each-rank" if on_gpu else "a-core-for-each-rank", evidence, ranks=ranks, units=units)
