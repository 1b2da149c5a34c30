"""What the tests know of lab 05, overlap."""

from lab_case import F, LabCase, Mutation, OnALink, also, clear, may, row


def says(text):
    of = {part.split(" on ")[0].strip(): part for part in text.split("overlap / ")[1:]}
    assert "on 3 ranks" in of["broken"] and "collectives_per_reduction = 1" in of["broken"]
    assert "reductions = 4" in of["accumulate"] and "missing-no-sync: found" in of["accumulate"]
    assert "reductions = 1" in of["no-sync"] and "misplaced-no-sync: clear" in of["no-sync"]
    assert "reductions = 4" in of["no-sync-backward-only"] and "misplaced-no-sync: found" in of["no-sync-backward-only"]
    assert "reductions = 0" in of["no-sync-around-all"] and "weights_equal_on_ranks = False" in of["no-sync-around-all"]
    assert "needless-find-unused: found" in of["find-unused"]


CASE = LabCase(
    slug="overlap",
    small={
        **{"ranks": 3, "hosts": 3, "link": "200mbit", "layers": 4, "width": 64, "batch": 192, "steps": 4},
        **{"bucket_mb": 0.0158, "seed": 5, "guess": 50},
    },
    says=says,
    mutation=Mutation(
        file="labs/overlap/programs.py",
        before="    *first, last = batches\n    with model.no_sync():\n        for batch in first:\n"
        "            loss_of(model, batch).backward()\n    loss_of(model, last).backward()\n",
        after="    for batch in batches:\n        loss_of(model, batch).backward()\n",
        again='relatives["no-sync"] = lab.run("no-sync", **quick)',
    ),
    how={"layers": 6, "width": 256, "batch": 512, "steps": 8},
    rows={
        "broken": row(exposed_communication=F),
        "serial": row(
            exposed_communication=F,
            per_parameter_reduction=also("it sends gradient by gradient, by hand"),
        ),
        "flat": row(exposed_communication=F),
        "ddp-default": row(
            "DDP as it comes: how much that hides depends on the model and the link",
            exposed_communication=may("two buckets for so small a model leave most of them to the end"),
        ),
        "per-parameter": row(per_parameter_reduction=F),
        "bucket-sweep": row("one bucket size after the other, right ones among them"),
        "accumulate": row(missing_no_sync=F),
        "no-sync": row("right: one reduction a step", exposed_communication=may("only the last micro-batch can hide it")),
        "no-sync-backward-only": row(misplaced_no_sync=F),
        "no-sync-around-all": row(misplaced_no_sync=F),
        "find-unused": row(
            needless_find_unused=F,
            exposed_communication=may("unused parameters are looked for before anything is sent"),
        ),
        "fp16-hook": row(
            "right: half the bytes, rounded",
            how={"bucket_mb": 0.25},
            exposed_communication=may("how much of half the bytes is hidden depends on the link"),
            **clear("per-parameter-reduction", "needless-find-unused", "late-rank"),
        ),
        "fixed": row(
            "right",
            # the lab's bucket of 1 MiB would hold 64 % of so small a model's gradients, and hide less than half
            how={"bucket_mb": 0.25},
            **clear("exposed-communication", "per-parameter-reduction", "needless-find-unused", "late-rank"),
        ),
    },
    every={"link-fit": may("a shaped link lets the first bytes of a burst pass at once, so it follows no single line")},
    any_program=("exposed-communication", "late-rank"),
    on_a_link=OnALink(
        how={"layers": 4, "width": 64, "batch": 64, "steps": 5},
        simulated=(
            "collectives_sum",
            "collectives_union",
            "communication_alone",
            "exposed",
            "exposed_share",
            "hidden",
            "hidden_by_sum_which_lies",
            "hidden_by_union",
            "hidden_give_or_take",
            "step_time",
        ),
    ),
)
