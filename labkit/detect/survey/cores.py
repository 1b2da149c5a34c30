"""Does each rank have a core, or a GPU, of its own?

Ranks that share one take turns: each collective then waits for the scheduler, not for the link, and times show the order
of events, not the speed of a cluster. What was read, and what became of the weights, is unaffected.
"""

from __future__ import annotations

from collections import Counter

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
from ..verdict import Verdict, answering

NAME = "cores"
QUESTION = "Does each rank have a core of its own?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the run under study, host by host."""
    run = record.run
    if run.world_size < 2:
        return _answer("not_applicable", cause="one rank shares with none", fix="run on 2 ranks or more")
    on_gpu = run.ranks[0].head.device.startswith("cuda")
    fact, what = ("num_gpus", "GPU") if on_gpu else ("cores", "core")
    known = [log.head.facts.get(fact) for log in run.ranks]
    if not all(isinstance(count, int) and count > 0 for count in known):
        return _answer(
            "not_applicable",
            cause=f"the program did not record how many {what}s there are",
            fix=f"declare it with probe.declare({fact}=...)",
        )
    # hosts that were made on this machine are network stacks, and share its cores
    machines = [log.head.host if record.network is None else "this machine" for log in run.ranks]
    hosts = Counter(machines)
    units = {machine: int(log.head.facts[fact]) for machine, log in zip(machines, run.ranks, strict=True)}
    threads = {machine: log.head.threads for machine, log in zip(machines, run.ranks, strict=True)}
    fullest = max(hosts, key=lambda host: hosts[host] / units[host])
    ranks, available, wanted = hosts[fullest], units[fullest], hosts[fullest] * threads[fullest]
    evidence = {"ranks_on_a_host": Quantity(ranks, "ranks"), f"{what.lower()}s_there": Quantity(available, f"{what}s")}
    if ranks > available:
        return _answer(
            "found",
            evidence,
            cause=f"{ranks} ranks share {plural(available, what)}: times show the order of events, "
            "not the speed of a cluster",
            fix=f"for speeds, run at most {plural(available, 'rank')} here; counts and weights hold anyway",
        )
    if not on_gpu and wanted > available:
        return _answer(
            "inconclusive",
            evidence | {"threads_of_a_rank": Quantity(threads[fullest], "threads")},
            cause=f"{ranks} ranks have {wanted} threads on {available} cores: they may hinder each other",
            fix=f"give each rank at most {available // ranks} threads (OMP_NUM_THREADS, torch.set_num_threads)",
        )
    return _answer("clear", evidence, cause=f"{plural(ranks, 'rank')} on {plural(available, what)}")
