"""What the tests know of lab 03, duplicate-data."""

from lab_case import READS, F, LabCase, Mutation, OnALink, also, clear, may, row


def says(text):
    assert "duplicate-data / broken on 3 ranks" in text
    broken, rest = text.split("duplicate-data / fixed")
    assert "rank-duplicates: found" in broken
    assert "samples_per_epoch = 903" in broken
    fixed = rest.split("duplicate-data / overlapping")[0]
    assert "rank-duplicates: clear" in fixed and "order: clear" in fixed
    assert "samples_per_epoch = 303" in fixed and "padding = 2" in fixed


CASE = LabCase(
    slug="duplicate-data",
    small={"ranks": 3, "num_samples": 301, "batch": 16, "seed": 5, "guess": 16, "mystery_seed": 2},
    says=says,
    mutation=Mutation(
        file="labs/duplicate_data/programs.py",
        before="    sampler.set_epoch(epoch)\n    return DataLoader(data, batch, sampler=sampler)",
        after="    return DataLoader(data, batch)",
        again='fixed = lab.run("fixed", **settings)',
    ),
    how={"num_samples": 301, "batch": 16},
    rows={
        "broken": row(rank_duplicates=F),
        "overlapping": row(rank_duplicates=F),
        "no-set-epoch": row(order=F, **clear("rank-duplicates", "coverage")),
        "double-sharded": row(coverage=F, **clear("rank-duplicates")),
        "iterable-unsharded": row(
            rank_duplicates=F, worker_duplicates=F, starved_input=may("workers pass on data that are ready in memory")
        ),
        "uneven-shards": row(coverage=F, **clear("rank-duplicates", "worker-duplicates")),
        "uneven-join": row("right: a rank that has ended waits for the others", **clear("rank-duplicates", "coverage")),
        "split-by-node": row("right: each sample once, for what reading all of it costs", **clear(*READS)),
        "leaky-split": row(
            validation_leak=F,
            rank_duplicates=also("what one rank holds out is not what another does, so their shares overlap"),
            coverage=also("what some ranks hold out and others were not dealt, nobody trains on"),
        ),
        "fixed": row("right", **clear(*READS)),
    },
    any_program=("coverage", "order", "rank-duplicates", "validation-leak", "worker-duplicates"),
    own_script=("coverage", "order", "rank-duplicates", "worker-duplicates"),
    on_a_link=OnALink(how={"num_samples": 301, "batch": 16}, simulated=("comm_share",)),
    guess_settled_by_figure=True,
)
