"""What every detector may say of every variant of every lab: the table that test_verdict_matrix.py holds records to.

A cell is a set of statuses: F found, C clear, I inconclusive, N not applicable. What is not written follows the column:
in its own lab a detector may say anything but `found`, in another lab what COLUMNS says. So a row lists the variant's own
fault, what else is truly wrong with it (with the reason), and what must be clear. A detector of times may answer
`inconclusive` wherever it must be found or clear, for a machine that does other work hides both; it never answers the
opposite.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

import pytest

from labkit import labs
from labkit.detect.verdict import Verdict

BUT_FOUND = "CIN"
"""Anything but an accusation."""


@dataclass(frozen=True)
class Cell:
    """Which statuses are allowed, and why where it is not plain."""

    allowed: str
    why: str = ""


F, C = Cell("F"), Cell("C")


def also(why: str, allowed: str = "F") -> Cell:
    """Found beside the variant's own fault, for a reason."""
    return Cell(allowed, why)


def may(why: str) -> Cell:
    """Found or not, as conditions are, for a reason."""
    return Cell("FCIN", why)


@dataclass(frozen=True)
class Row:
    """One variant.

    Attributes:
        cells: by detector, where they differ from the column's.
        no_fault: why none of the detectors is to find something; empty where the variant has a fault of its own.
        how: settings in which it differs from its lab's.
        needs: what this machine must have, "gpu" or "deepspeed".
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    no_fault: str = ""
    how: dict[str, Any] = field(default_factory=dict)
    needs: str = ""


@dataclass(frozen=True)
class LabRows:
    """The variants of one lab, and the small settings in which their faults show."""

    how: dict[str, Any]
    rows: dict[str, Row]
    every: dict[str, Cell] = field(default_factory=dict)
    """Cells that hold for each of its variants that has none of its own."""


def row(no_fault: str = "", *, how: dict[str, Any] | None = None, needs: str = "", **cells: Cell) -> Row:
    """A row; a detector's name is written with underscores."""
    return Row({name.replace("_", "-"): cell for name, cell in cells.items()}, no_fault, how or {}, needs)


def clear(*detectors: str) -> dict[str, Cell]:
    return dict.fromkeys(detectors, C)


COLUMNS: dict[str, str] = {
    # what samples, losses and spans of any program tell
    "coverage": BUT_FOUND,
    "exposed-communication": BUT_FOUND,
    "late-rank": BUT_FOUND,
    "link-fit": BUT_FOUND,
    "non-finite": BUT_FOUND,
    "order": BUT_FOUND,
    "rank-duplicates": BUT_FOUND,
    "starved-input": BUT_FOUND,
    "straggler": BUT_FOUND,
    "validation-leak": BUT_FOUND,
    "worker-duplicates": BUT_FOUND,
    # what only a lab's own programs record
    "busy-not-useful": "N",
    "checkpoint-interval": "N",
    "clip-before-unscale": "N",
    "cores": "N",
    "cross-process-lock": "N",
    "flop-convention": "N",
    "gradient-underflow": "N",
    "local-disk": "N",
    "lost-updates": "N",
    "lost-work": "N",
    "misplaced-no-sync": "N",
    "missing-no-sync": "N",
    "needless-find-unused": "N",
    "needless-workers": "N",
    "optimizer-before-sharding": "N",
    "page-cache": "N",
    "per-parameter-reduction": "N",
    "per-rank-norm": "N",
    "precision-speed": "N",
    "repeatable": "N",
    "resume-departs": "N",
    "saturated-store": "N",
    "single-path": "N",
    "skipped-steps": "N",
    "stale-casts": "N",
    "stale-gradients": "N",
    "unequal-init": "N",
    "utilisation": "N",
    "wrong-stage": "N",
}
"""What a detector may say of the records of another lab than its own."""

TIMED = {
    "busy-not-useful", "checkpoint-interval", "cross-process-lock", "exposed-communication", "late-rank", "link-fit",
    "needless-workers", "page-cache", "precision-speed", "saturated-store", "starved-input", "straggler", "utilisation",
    "wrong-stage",
}  # fmt: skip
"""Detectors of times: what they must say idle they may leave open on a busy machine."""

READS = ("rank-duplicates", "worker-duplicates", "coverage", "order")

FUSED = also("torch's counter does not know fused attention on a CPU, whichever variant uses it")
ONE_BATCH = also("one batch was chosen on purpose, and the verdict says that this may be so")
RUNG = "a rung of the ladder: each is better than the one before it, and none is a fault by itself"
STRATEGY = "a strategy to be compared, right or wrong by the memory and the link that it is used with"
DEARER = may("a strategy that sends more than one that fits is found where the link makes it wait")

MATRIX: dict[str, LabRows] = {
    "start-here": LabRows(
        {"budget_s": 0.5, "storage_mib": 2, "copy_mib": 16, "launches": 2, "max_message_mib": 4, "keep": "no"},
        {
            "survey": row(
                "a survey: it measures, and nothing in it is broken",
                link_fit=may("loopback follows no single line where ranks share cores"),
                cores=may("this machine may have fewer cores than the ranks"),
                page_cache=may("a file as small as this one is read from memory"),
            )
        },
    ),
    "precision": LabRows(
        {"repeats": 0},
        {
            "broken": row(gradient_underflow=F),
            "fp32": row("what all others are compared with", **clear("stale-casts", "non-finite")),
            "tf32": row("right, and needs a GPU", needs="gpu"),
            "bf16-autocast": row("right: the range of fp32", **clear("gradient-underflow", "stale-casts", "non-finite")),
            "half-weights": row(lost_updates=F),
            "bf16-weights": row(lost_updates=F),
            "autocast-whole-loop": row(stale_casts=F, worker_duplicates=ONE_BATCH),
            "clip-before-unscale": row(
                clip_before_unscale=F,
                lost_updates=also("what is left of a gradient is 1/scale of it: too little to move a weight"),
            ),
            "fixed": row(
                "right",
                **clear("gradient-underflow", "stale-casts", "lost-updates", "skipped-steps", "non-finite", *READS[1:2]),
            ),
        },
    ),
    "mfu": LabRows(
        {"seq": 256, "steps": 4},
        {
            "broken": row(how={"seq": 512}, utilisation=F),
            "batched": row(RUNG, utilisation=may("attention is still written out")),
            "fused": row(RUNG, utilisation=may("one sequence at a time is little work for a kernel"), flop_convention=FUSED),
            "recomputed": row(
                RUNG,
                utilisation=may("each forward pass is computed twice"),
                flop_convention=FUSED,
            ),
            "starved": row(
                how={"seq": 128, "hidden": 64, "data_wait_ms": 500.0},
                utilisation=F,
                flop_convention=FUSED,
                starved_input=may("so it is: the input is what is slow"),
            ),
            "busy-not-useful": row(busy_not_useful=F, utilisation=F),
            "fixed": row("right", **clear("utilisation", "busy-not-useful"), flop_convention=FUSED),
        },
    ),
    "duplicate-data": LabRows(
        {"num_samples": 301, "batch": 16},
        {
            "broken": row(rank_duplicates=F),
            "overlapping": row(rank_duplicates=F),
            "no-set-epoch": row(order=F, **clear("rank-duplicates", "coverage")),
            "double-sharded": row(coverage=F, **clear("rank-duplicates")),
            "iterable-unsharded": row(
                rank_duplicates=F, worker_duplicates=F, starved_input=may("workers pass on data that are ready in memory")
            ),
            "leaky-split": row(
                validation_leak=F,
                rank_duplicates=also("what one rank holds out is not what another does, so their shares overlap"),
                coverage=also("what some ranks hold out and others were not dealt, nobody trains on"),
            ),
            "fixed": row("right", **clear(*READS)),
        },
    ),
    "stale-gradients": LabRows(
        {"steps": 24},
        {
            "broken": row(stale_gradients=F, repeatable=F),
            "async-no-momentum": row(repeatable=F),
            "async-theory-lr": row(repeatable=F),
            "async-straggler": row(repeatable=F),
            "async-bounded": row(
                how={"step_ms": 20.0}, repeatable=F, straggler=also("at the bound the fast ranks wait for the slow one")
            ),
            "async-in-turn": row("stale at a learning rate that bears it, and served in turn, so that it repeats"),
            "sync-straggler": row(how={"step_ms": 20.0}, straggler=F, **clear("stale-gradients", "repeatable")),
            "fixed": row("right", **clear("stale-gradients", "repeatable", "straggler")),
        },
    ),
    "overlap": LabRows(
        {"layers": 6, "width": 256, "batch": 512, "steps": 8},
        {
            "broken": row(exposed_communication=F),
            "serial": row(
                exposed_communication=F,
                per_parameter_reduction=also("it sends gradient by gradient, by hand"),
            ),
            "ddp-default": row(
                "DDP as it comes: how much that hides depends on the model and the link",
                exposed_communication=may("two buckets for so small a model leave most of them to the end"),
            ),
            "per-parameter": row(per_parameter_reduction=F),
            "bucket-sweep": row("one bucket size after the other, right ones among them"),
            "accumulate": row(missing_no_sync=F),
            "no-sync": row(
                "right: one reduction a step", exposed_communication=may("only the last micro-batch can hide it")
            ),
            "no-sync-backward-only": row(misplaced_no_sync=F),
            "no-sync-around-all": row(misplaced_no_sync=F),
            "find-unused": row(
                needless_find_unused=F,
                exposed_communication=may("unused parameters are looked for before anything is sent"),
            ),
            "fixed": row(
                "right",
                # the lab's bucket of 1 MiB would hold 64 % of so small a model's gradients, and hide less than half
                how={"bucket_mb": 0.25},
                **clear("exposed-communication", "per-parameter-reduction", "needless-find-unused", "late-rank"),
            ),
        },
        {"link-fit": may("a shaped link lets the first bytes of a burst pass at once, so it follows no single line")},
    ),
    "zero-stages": LabRows(
        {"ranks": 4, "hosts": 2, "link": "20mbit", "layers": 2, "hidden": 24, "steps": 8},
        {
            "broken": row(wrong_stage=F, **clear("optimizer-before-sharding", "unequal-init")),
            "compare": row("every strategy in one record: it compares and accuses none", how={"only": "ddp,fsdp2-reshard"}),
            "ddp": row(STRATEGY, **clear("unequal-init")),
            "ddp-default": row(STRATEGY, **clear("unequal-init")),
            "zero1": row(STRATEGY, **clear("unequal-init")),
            "fsdp2-no-reshard": row(STRATEGY, **clear("optimizer-before-sharding", "unequal-init")),
            "fsdp2-reshard": row(STRATEGY, wrong_stage=DEARER),
            "hsdp": row(STRATEGY, wrong_stage=may("its two copies hold more than the device of this lab has")),
            "deepspeed-1": row(STRATEGY, needs="deepspeed"),
            "deepspeed-2": row(STRATEGY, needs="deepspeed"),
            "deepspeed-3": row(STRATEGY, needs="deepspeed", wrong_stage=DEARER),
            "deepspeed-defaults": row(needs="deepspeed", wrong_stage=F),
            "optimizer-first": row(optimizer_before_sharding=F),
            "norm-of-shards": row(per_rank_norm=F),
            "seeds-differ": row(unequal_init=F),
            "fixed": row("right", **clear("wrong-stage", "optimizer-before-sharding", "unequal-init")),
        },
    ),
    "input-pipeline": LabRows(
        {"num_samples": 128, "batch": 8, "scan": 1},
        {
            "broken": row(starved_input=F, **clear(*READS)),
            "workers": row(
                "right where cores are free",
                starved_input=may("preparing is processor time, and ranks and workers share the cores"),
            ),
            "cached": row("right from the second epoch on", starved_input=may("in the first epoch it prepares, and waits")),
            "locked": row(cross_process_lock=F, starved_input=also("ranks wait for the lock, and so for data")),
            "thread-locked": row(
                "the lock costs nothing: each process has its own",
                starved_input=also("it prepares inline: half of each step, lock or not"),
                **clear("cross-process-lock"),
            ),
            "shared-store": row(
                how={"num_samples": 192, "scan": 4, "store_mbit": 40.0},
                saturated_store=F,
                starved_input=also("ranks wait for the store, and so for data"),
            ),
            "shared-store-cached": row(
                "right from the second epoch on", starved_input=may("in the first epoch it reads from the store, and waits")
            ),
            "workers-in-memory": row(
                how={"num_samples": 1797, "batch": 32},
                needless_workers=F,
                starved_input=also("workers pass on data slower than it takes to use them", "FCI"),
            ),
            "dummy": row(
                "the dummy-batch test: no input at all",
                coverage=also("one batch stands for all the data, on purpose"),
                worker_duplicates=ONE_BATCH,
                **clear("starved-input"),
            ),
            "fixed": row("right", **clear(*READS), starved_input=Cell("CI")),
        },
    ),
    "crash-recovery": LabRows(
        {"num_samples": 301, "global_batch": 50, "epochs": 3, "kill_step": 11},
        {
            "broken": row(lost_work=F, **clear("resume-departs")),
            "model-and-epoch": row(resume_departs=F),
            "light": row(how={"kill_step": 13}, resume_departs=F),
            "one-path": row(single_path=F, resume_departs=also("all ranks load what the last of them saved")),
            "local-disk": row(local_disk=F, lost_work=also("the checkpoint went with the node")),
            "async-save": row("right: saved while training goes on", **clear("lost-work", "resume-departs", "single-path")),
            "fixed": row("right", **clear("lost-work", "resume-departs", "single-path", "local-disk")),
        },
    ),
}


EACH = [(slug, name) for slug, rows in MATRIX.items() for name in rows.rows]
"""(lab, variant) of each row."""

LETTER = {"found": "F", "clear": "C", "inconclusive": "I", "not_applicable": "N"}


def allowed(slug: str, variant: str, detector: str) -> str:
    """Statuses that the table allows."""
    rows = MATRIX[slug]
    cell = (rows.every | rows.rows[variant].cells).get(detector)
    if cell is None:
        return BUT_FOUND if detector in labs.spec(slug).detectors else COLUMNS[detector]
    open_still = "I" if detector in TIMED and cell.allowed in ("F", "C") else ""
    return cell.allowed + open_still


def own_faults(slug: str, variant: str) -> list[str]:
    """The lab's own detectors that must find something in a variant."""
    cells = MATRIX[slug].rows[variant].cells
    return [
        name for name in labs.spec(slug).detectors if name in cells and cells[name].allowed == "F" and not cells[name].why
    ]


def here(row: Row) -> Row:
    """The row, if this machine has what it needs; else the test is skipped."""
    missing = row.needs == "gpu" or (row.needs == "deepspeed" and importlib.util.find_spec("deepspeed") is None)
    if missing:
        pytest.skip(f"needs {row.needs}")
    return row


def offences(slug: str, variant: str, verdicts: list[Verdict]) -> list[str]:
    """What the verdicts say against the table."""
    return [
        f"{verdict.detector} is {verdict.status}, allowed is {may_say}: {verdict.cause}"
        for verdict in verdicts
        if LETTER[verdict.status] not in (may_say := allowed(slug, variant, verdict.detector))
    ]
