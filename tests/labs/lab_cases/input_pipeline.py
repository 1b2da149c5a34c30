"""What the tests know of lab 07, input-pipeline."""

from lab_case import ONE_BATCH, READS, Cell, F, LabCase, Mutation, OnALink, also, clear, may, row


def says(text):
    assert "input-pipeline / broken on 3 ranks" in text
    broken, rest = text.split("input-pipeline / workers")
    assert "prepared_first_epoch = 195" in broken and "prepared_later = 195" in broken
    cached = rest.split("input-pipeline / cached")[1].split("input-pipeline / locked")[0]
    assert "prepared_later = 0" in cached
    assert text.count("one_at_a_time_across_ranks = True") == text.count("one_at_a_time_across_ranks = False") == 1
    assert text.rstrip().endswith("store_bytes_later = 0")


CASE = LabCase(
    slug="input-pipeline",
    small={
        **{"ranks": 3, "num_samples": 193, "batch": 8, "prep_ms": 8.0, "compute_ms": 4.0},
        **{"seed": 5, "guess": 50},
    },
    says=says,
    mutation=Mutation(
        file="workloads/scans.py",
        before="kept = {i: self._kept(i) for i in indices}",
        after="kept = {i: None for i in indices}",
        again='cached = lab.run("cached", **settings)',
    ),
    how={"num_samples": 128, "batch": 8, "scan": 1},
    rows={
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
    any_program=("starved-input",),
    own_script=("starved-input",),
    on_a_link=OnALink(
        how={"num_samples": 66, "batch": 8, "prep_ms": 4.0, "compute_ms": 1.0, "scan": 1},
        simulated=("data_share", "data_time", "dummy_batch_ratio", "first_batch_of_epoch", "samples_per_s"),
    ),
)
