"""What the tests know of lab 06, zero-stages."""

from lab_case import F, LabCase, Mutation, OnALink, clear, may, row

STRATEGY = "a strategy to be compared, right or wrong by the memory and the link that it is used with"
DEARER = may("a strategy that sends more than one that fits is found where the link makes it wait")


def says(text):
    broken, rest = text.split("zero-stages / fixed")
    assert (
        "zero-stages / broken on 3 ranks" in broken and "collectives = 9" in broken
    )  # 3 modules: gathered twice, reduced once
    fixed, trap = rest.split("zero-stages / optimizer-first")
    assert "collectives = 6" in fixed and "own_account_missed_by = 0" in fixed and "loss_follows_single = True" in fixed
    assert "optimizer-before-sharding: clear" in fixed and "optimizer-before-sharding: found" in trap
    assert "per-rank-norm: found" in trap and "unequal-init: found" in trap and "wrong-stage" not in text


CASE = LabCase(
    slug="zero-stages",
    small={
        **{"ranks": 3, "layers": 2, "hidden": 24, "steps": 5, "link": "1gbit", "only": "ddp,fsdp2-reshard"},
        **{"seed": 5, "guess": 2},
    },
    says=says,
    mutation=Mutation(
        file="labs/zero_stages/strategies.py",
        before="fully_shard(block, reshard_after_forward=True)\n    fully_shard(model, reshard_after_forward=True)",
        after="fully_shard(block, reshard_after_forward=False)\n    fully_shard(model, reshard_after_forward=False)",
        again='broken = lab.run("broken", **settings, link=link)',
    ),
    how={"ranks": 4, "hosts": 2, "link": "20mbit", "layers": 2, "hidden": 24, "steps": 8},
    rows={
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
        "accumulate": row("it counts the bytes of a step in several strategies, and accuses none"),
        "mixed-precision": row("it counts the bytes of a step under several policies, and accuses none"),
        "fixed": row("right", **clear("wrong-stage", "optimizer-before-sharding", "unequal-init")),
    },
    own_script=("optimizer-before-sharding", "per-rank-norm", "unequal-init"),
    on_a_link=OnALink(how={"layers": 1, "hidden": 24, "steps": 6}, simulated=("step_time",)),
)
