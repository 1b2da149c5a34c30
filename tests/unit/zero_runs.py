"""Records about sharded state made of plain numbers."""

from labkit.record.schema import Event, RankLog, Record, Run, Step

from .builders import head, record_of

PSI = 1000


def run_with(
    strategy="fsdp2-reshard", *, role="variant", ranks=4, stage=3, peak=6000, room=9000, step_ms=(100, 102, 104, 106),
    operations=(("all_gather", 2 * PSI), ("reduce_scatter", PSI)), kept=None, own=None, backend="gloo", loss=(5.0, 4.0),
) -> Run:  # fmt: skip
    """A run of a strategy: what it kept, what it sent, how long its steps took."""
    logs = []
    for rank in range(ranks):
        events = [Event("peak", 2, 0, {"peak": peak})] if peak else []
        for kind, elements in operations:
            share = (ranks - 1) / ranks * (2 if kind == "all_reduce" else 1)
            fields = {"operation": kind, "group_size": ranks, "count": 1, "elements": elements, "num_bytes": 4 * elements}
            events.append(Event("collectives", 2, 0, {**fields, "sent_bytes": share * 4 * elements, "hosts": 1}))
        for instant, by_category in (kept or {}).items():
            events.append(Event("memory", 2, 0, {"instant": instant, **by_category}))
        if own:
            events.append(Event("own_account", 2, 0, own))
        steps, now = [], 0
        for number, ms in enumerate((1, 1, *step_ms)):
            scalars = {"loss_local": loss[min(number, len(loss) - 1)]}
            steps.append(Step(number, 0, now, now + int(ms * 1e6), scalars=scalars))
            now += int(ms * 1e6)
        facts = {
            "strategy": strategy, "stage": stage, "num_parameters": PSI, "element_bytes": 4, "room_bytes": room,
            "timed_from": 2, "replicas": 2,
        }  # fmt: skip
        logs.append(RankLog(_on(head(rank, ranks, **facts), backend), tuple(steps), tuple(events)))
    return Run(role, tuple(logs), 1.0)


def _on(found, backend):
    import msgspec

    return msgspec.structs.replace(found, backend=backend)


def cheaper_run(**others) -> Run:
    """The stage below, which gathers once."""
    settings = {
        "strategy": "fsdp2-no-reshard", "role": "fsdp2-no-reshard", "stage": 2, "peak": 8000,
        "operations": (("all_gather", PSI), ("reduce_scatter", PSI)), "step_ms": (75, 76, 77, 78),
        "kept": {"forward": {"parameters": 1}},
    }  # fmt: skip
    return run_with(**{**settings, **others})


def record(run: Run, **others: Run) -> Record:
    return record_of(run, **others)


def with_events(name, of_ranks, *, digests=None, scalars=None, **facts) -> Record:
    """A record whose ranks noted an event each, hashes, or scalars by step."""
    logs = []
    for rank, fields in enumerate(of_ranks):
        events = (Event(name, 0, 0, fields),) if fields else ()
        steps = tuple(Step(n, 0, n, n + 1, scalars={"grad_norm": v}) for n, v in enumerate((scalars or {}).get(rank, [])))
        logs.append(RankLog(head(rank, len(of_ranks), **facts), steps, events, digests=(digests or {}).get(rank, {})))
    return record_of(Run("variant", tuple(logs), 1.0))
