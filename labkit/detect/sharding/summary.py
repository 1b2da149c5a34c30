"""The measures of lab 06 by name, and its tables: stages side by side, what is left over, what would fit. Pure; no torch."""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ...record.table import Table
from ...theory.strategies import STRATEGIES
from ...theory.zero import DEVICES, GB, MODELS, RESERVE_GB, STAGE_NAMES, fewest_ranks, state, what_if
from .measures import (
    CATEGORIES,
    INSTANT_SAID,
    INSTANTS,
    fast_steps_s,
    kept,
    kept_at_peak,
    leftovers,
    loss_gap,
    misses,
    operations,
    paper_bytes,
    paper_state,
    peak_bytes,
    sent_bytes,
    strategy_of,
    strategy_runs,
    timed_steps_s,
    wire,
)
from .ways import ways, ways_table


def units(run: Run, num_bytes: float) -> float:
    """Bytes of a rank in units of Ψ(W-1)/W elements, in which the paper's traffic is 2 or 3."""
    ranks, size = run.world_size, float(run.fact("element_bytes", 4))  # pyright: ignore
    return num_bytes / (psi(run) * size * (ranks - 1) / ranks) if ranks > 1 else 0.0


def psi(run: Run) -> float:
    """Number of parameters."""
    return float(run.fact("num_parameters", 0))  # pyright: ignore[reportArgumentType]


def room(run: Run) -> float:
    """Memory of a device, in bytes a parameter; 0 where the program declared none."""
    return float(run.fact("room_bytes", 0)) / psi(run)  # pyright: ignore[reportArgumentType]


def room_said(record: Record) -> str:
    """The memory of a device as words, with how it was chosen."""
    chosen = "as set" if record.config.get("room") else "made so that stage 2 just fits"
    return f"memory of a device ({chosen})"


def peak(run: Run) -> float | None:
    """The most that a rank kept at any instant of a step, in bytes a parameter; None where it was not looked at."""
    peaks, instants = peak_bytes(run), kept(run)
    if peaks is not None:
        return float(peaks.max()) / psi(run)
    return max((float(rows.sum(axis=1).max()) for rows in instants.values()), default=0.0) / psi(run) or None


AT_THE_PEAK = "the most\nat any instant"
UNTOLD = "of no known category"


def over_a_step(run: Run) -> dict[str, np.ndarray]:
    """By instant, in the order of a step: bytes a parameter [ranks, CATEGORIES and UNTOLD]; last, when each kept the most.

    The highest of its bars is `peak`.
    """
    instants = {INSTANT_SAID[instant]: kept(run)[instant] for instant in INSTANTS if instant in kept(run)}
    peaks, at_peak = peak_bytes(run), kept_at_peak(run)
    found = {said: np.pad(rows, ((0, 0), (0, 1))) / psi(run) for said, rows in instants.items()}
    if at_peak is not None:
        found[AT_THE_PEAK] = np.pad(at_peak, ((0, 0), (0, 1))) / psi(run)
    elif peaks is not None:
        found[AT_THE_PEAK] = np.pad(peaks[:, None], ((0, 0), (len(CATEGORIES), 0))) / psi(run)
    return found


def kept_after_backward(run: Run) -> float:
    """What the rank that keeps most keeps after the backward pass, in bytes a parameter."""
    return float(kept(run)["backward_end"].sum(axis=1).max()) / psi(run)


def zero_measures(record: Record) -> dict[str, Quantity]:
    """The measures of the lab: of the run under study; of a comparison, those of every strategy after its name."""
    runs = strategy_runs(record)
    if ways(record.run):  # of its steps the table tells
        return {"parameters": Quantity(int(psi(record.run)))}
    if Role.VARIANT in record.runs or len(runs) < 2:
        return _measures(record, record.run) if psi(record.run) else {}
    found = {}
    for name, run in runs.items():
        for measure, quantity in _measures(record, run).items():
            if measure in _COMPARED:
                found[f"{name.replace('-', '_')}_{measure}"] = quantity
    return found


_COMPARED = ("kept_after_backward", "peak", "dispatched", "on_the_wire", "step_time", "step_time_fast", "loss_gap")


def _measures(record: Record, run: Run) -> dict[str, Quantity]:
    """Of one run; what it lacks is left out."""
    found = {"parameters": Quantity(int(psi(run)))}
    paper, instants, peaks = paper_state(run), kept(run), peak_bytes(run)
    if paper is not None and "backward_end" in instants:
        found["kept_by_the_paper"] = Quantity(paper.total / psi(run), "bytes a parameter and rank", "quoted formula")
        found["kept_after_backward"] = Quantity(kept_after_backward(run), "bytes a parameter, largest rank")
        found["own_account_missed_by"] = Quantity(sum(misses(run).values()), "bytes")
    if peaks is not None:
        found["peak"] = Quantity(float(peaks.max()) / psi(run), "bytes a parameter, largest rank")
        found["room"] = Quantity(room(run), "bytes a parameter")
        found["fits"] = Quantity(bool(peaks.max() <= room(run) * psi(run)))
    found |= _traffic(run)
    found |= _times(record, run)
    gap = loss_gap(record, run)
    if gap is not None:
        found["loss_gap"] = Quantity(gap, "largest relative difference from one process")
        found["loss_follows_single"] = Quantity(gap < 2e-7)
    found |= _traps(run)
    return found


def _traffic(run: Run) -> dict[str, Quantity]:
    by_paper, counted = paper_bytes(run), wire(run)
    found = {}
    if by_paper is not None and operations(run) and run.world_size > 1:
        found["sent_by_the_paper"] = Quantity(units(run, by_paper), "Ψ(W-1)/W", "quoted formula")
        found["dispatched"] = Quantity(units(run, sent_bytes(run)), "Ψ(W-1)/W")
        found["collectives"] = Quantity(sum(op.count for op in operations(run)), "a step")
        if counted is not None:
            found["on_the_wire"] = Quantity(units(run, counted.rank_bytes), "Ψ(W-1)/W, headers included")
            found["over_the_link"] = Quantity(counted.link_bytes / 1e6, "MB a host and step, headers included")
    return found


def _times(record: Record, run: Run) -> dict[str, Quantity]:
    found, steps, fast = {}, timed_steps_s(run), fast_steps_s(record)
    if len(steps):
        found["step_time"] = Quantity(float(np.median(steps)) * 1e3, "ms", record.link_source)
    if strategy_of(run) in fast:
        found["step_time_fast"] = Quantity(float(np.median(fast[strategy_of(run)])) * 1e3, "ms without hosts and links")
    return found


def _traps(run: Run) -> dict[str, Quantity]:
    found = {}
    for log in run.ranks[:1]:
        for event in log.events:
            if event.name == "optimizer_knows":
                found["optimizer_knows"] = Quantity(
                    int(event.fields["known"]), f"of {event.fields['parameters']} parameters"
                )
            if event.name == "weights_moved":
                found["weights_moved"] = Quantity(float(event.fields["largest"]), "the most moved weight, over the run")
    norms = [log.steps[0].scalar("grad_norm") for log in run.ranks if log.steps and "grad_norm" in log.steps[0].scalars]
    if len(norms) > 1:
        found["grad_norm_lowest"] = Quantity(min(norms), "on one rank, first step")
        found["grad_norm_highest"] = Quantity(max(norms), "on one rank, first step")
    initial = {log.digests.get("initial_weights") for log in run.ranks} - {None}
    if initial:
        found["initial_weights"] = Quantity(len(initial), "different ones")
    return found


# ---- Tables


def zero_tables(record: Record) -> list[Table]:
    """The stages side by side, and what sets each apart from the paper; or the ways of one step, if those were counted."""
    counted = ways_table(record)
    if counted is not None:
        return [counted]
    return [stage_table(record), leftover_table(record)] if strategy_runs(record) else []


def stage_table(record: Record) -> Table:
    """One row a strategy: what it keeps and sends, by the paper and as it is, and what a step takes."""
    fast, rows, notes = fast_steps_s(record), [], []
    for name, run in strategy_runs(record).items():
        rows.append(_stage_row(record, name, run, fast.get(name)))
    network = record.network
    if network is None or network.way == "emulated":
        why = "the hosts are emulated" if network else "the ranks share one network stack"
        notes.append(f"On the wire: not counted here, for {why} (--hosts 2, where network namespaces are permitted).")
    left_out = next((str(run.fact("left_out")) for run in strategy_runs(record).values() if run.fact("left_out")), "")
    if left_out:
        notes.append(f"Left out: {left_out}.")
    rooms = {f"{room(run):.2f}" for run in strategy_runs(record).values() if room(run)}
    if rooms:
        notes.append(f"fits: whether the peak is within the {room_said(record)}, {' or '.join(sorted(rooms))}.")
    notes.append(
        "kept, peak: bytes a parameter, of the largest rank; sent: a rank's, in units of Ψ(W-1)/W elements; times: ms."
    )
    notes.append(record.provenance.label())
    slow = "step, slow link" if network is not None else "step"
    columns = (
        "strategy", "stage", "kept: paper", "measured", "peak", "fits", "sent: paper", "dispatched", "on the wire",
        slow, "fast link", "loss gap",
    )  # fmt: skip
    return Table("Stages of ZeRO, as they were run", columns, tuple(rows), tuple(notes))


def _stage_row(record: Record, name: str, run: Run, fast: np.ndarray | None) -> tuple[str, ...]:
    paper, instants = paper_state(run), kept(run)
    counted, steps, gap, by_paper = wire(run), timed_steps_s(run), loss_gap(record, run), paper_bytes(run)
    space, most = room(run), peak(run)
    return (
        name,
        STAGE_NAMES[STRATEGIES[name].stage],
        f"{paper.total / psi(run):.2f}" if paper else "–",
        f"{kept_after_backward(run):.2f}" if "backward_end" in instants else "–",
        f"{most:.2f}" if most is not None else "–",
        ("yes" if most <= space else "no") if most is not None and space else "–",
        f"{units(run, by_paper):.2f}" if by_paper is not None else "–",
        f"{units(run, sent_bytes(run)):.2f}",
        f"{units(run, counted.rank_bytes):.2f}" if counted else "–",
        f"{np.median(steps) * 1e3:.0f}" if len(steps) else "–",
        f"{np.median(fast) * 1e3:.0f}" if fast is not None else "–",
        f"{gap:.0e}" if gap is not None else "–",
    )


def leftover_table(record: Record) -> Table:
    """What sets the first rank's bytes after a backward pass apart from the paper's, named, in bytes: the sum is exact."""
    rows = []
    for name, run in strategy_runs(record).items():
        paper, after = paper_state(run), kept(run).get("backward_end")
        if paper is None or after is None:
            continue
        rows.append((name, f"{paper.total:,.0f}", "by the paper"))
        rows += [("", f"{left.num_bytes:+,.0f}", left.name) for left in leftovers(run)]
        missed = sum(misses(run).values())
        own = "as the implementation's own account says" if not missed else f"its own account misses {missed:,} on all ranks"
        rows.append(("", f"= {int(after[0].sum()):,}", f"alive, {own}"))
    notes = ("A minus: it keeps less than the paper's stage would.", record.provenance.label())
    return Table(
        "What rank 0 keeps after a backward pass, in bytes", ("strategy", "bytes", "what"), tuple(rows), notes, left=(0, 2)
    )


def instants_table(run: Run) -> Table:
    """Bytes a parameter by category at each instant of a step, of the largest rank."""
    rows = []
    for instant in INSTANTS:
        of_ranks = kept(run).get(instant)
        if of_ranks is not None:
            row = of_ranks[of_ranks.sum(axis=1).argmax()]
            words = tuple(f"{value / psi(run):.2f}" for value in (*row, row.sum()))
            rows.append((INSTANT_SAID[instant].replace("\n", " "), *words))
    columns = ("instant", *(name.replace("_", " ") for name in CATEGORIES), "sum")
    return Table(f"{strategy_of(run)}: bytes a parameter", columns, tuple(rows), ("of the rank that keeps the most",))


def what_if_table(memory_gb: float = 80.0, kept_as: str = "mixed Adam", reserve_gb: float = RESERVE_GB) -> Table:
    """The cheapest stage that fits, by model and number of devices; by formula, so simulated."""
    memory = {"memory_bytes": memory_gb * GB, "kept": kept_as, "reserve_bytes": reserve_gb * GB}
    found = what_if(**memory)
    rows = []
    for model, params in MODELS.items():
        cells = []
        for devices in DEVICES:
            choice = found[(model, devices)]
            least = state(params, devices, 3, kept_as).total / GB
            cells.append(
                f"{STAGE_NAMES[choice.stage]} {choice.state_bytes / GB:.0f} GB" if choice else f"– ({least:.0f} GB)"
            )
        fewest = fewest_ranks(params, memory["memory_bytes"], kept=kept_as, reserve_bytes=memory["reserve_bytes"])
        rows.append((model, *cells, f"{fewest:,}" if fewest else "–"))
    notes = (
        f"Simulated, by the formulas of arXiv:1910.02054; {kept_as}; {memory_gb:g} GB a device, {reserve_gb:g} GB "
        "of it set aside for activations, buffers and fragments.",
        "Numbers are of the state alone. In brackets: what even ZeRO-3 would take.",
    )
    columns = ("model", *(str(devices) for devices in DEVICES), "fewest devices")
    return Table("The cheapest stage that fits, by number of devices", columns, tuple(rows), notes)
