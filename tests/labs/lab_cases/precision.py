"""What the tests know of lab 01, precision."""

from lab_case import ONE_BATCH, F, LabCase, Mutation, also, clear, row


def says(text):
    broken, rest = text.split("precision / fixed")
    assert "gradient-underflow: found" in broken and "updates = 87" in broken
    fixed = rest.split("precision / half-weights")[0]
    assert "gradient-underflow: clear" in fixed and "skipped-steps: clear" in fixed and "skipped_steps = 0" in fixed
    whole = text.split("precision / autocast-whole-loop")[1].split("precision / clip")[0]
    assert "stale-casts: found" in whole and "loss_stands_still = True" in whole
    assert "first_nonfinite_step = 0 (weights)" in text and "precision-speed" not in text


CASE = LabCase(
    slug="precision",
    small={"epochs": 3, "repeats": 6, "seed": 5, "guess": 50, "mystery_seed": 2},
    says=says,
    mutation=Mutation(
        file="labs/precision/loops.py",
        before="        scaler.scale(loss).backward()\n        scaler.unscale_(optimizer)\n        clip(model, config)\n"
        "        scaler.step(optimizer)\n        scaler.update()\n",
        after="        loss.backward()\n        clip(model, config)\n        optimizer.step()\n",
        again='fixed = lab.run("fixed", **settings)',
    ),
    how={"repeats": 0},
    rows={
        "broken": row(gradient_underflow=F),
        "fp32": row("what all others are compared with", **clear("stale-casts", "non-finite")),
        "tf32": row("right, and needs a GPU", needs="gpu"),
        "bf16-autocast": row("right: the range of fp32", **clear("gradient-underflow", "stale-casts", "non-finite")),
        "half-weights": row(lost_updates=F),
        "bf16-weights": row(lost_updates=F),
        "bf16-kahan": row(
            "right: what a step rounds away is kept",
            **clear("lost-updates", "gradient-underflow", "stale-casts", "non-finite"),
        ),
        "bf16-stochastic": row(
            "right: rounding by chance is right in the mean",
            **clear("lost-updates", "gradient-underflow", "stale-casts", "non-finite"),
        ),
        "autocast-whole-loop": row(stale_casts=F, worker_duplicates=ONE_BATCH),
        "clip-before-unscale": row(
            clip_before_unscale=F,
            lost_updates=also("what is left of a gradient is 1/scale of it: too little to move a weight"),
        ),
        "fixed": row(
            "right",
            **clear("gradient-underflow", "stale-casts", "lost-updates", "skipped-steps", "non-finite", "worker-duplicates"),
        ),
    },
    any_program=("non-finite",),
    own_script=("non-finite", "skipped-steps"),
)
