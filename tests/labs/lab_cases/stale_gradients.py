"""What the tests know of lab 04, stale-gradients."""

from lab_case import F, LabCase, Mutation, OnALink, also, clear, row


def says(text):
    assert "stale-gradients / broken on 3 ranks" in text
    broken, rest = text.split("stale-gradients / fixed")
    assert "stale-gradients: found" in broken and "weights_repeat = False" in broken and "pushes = 90" in broken
    fixed, in_turn = rest.split("stale-gradients / async-theory-lr")[0].split("stale-gradients / async-in-turn")
    assert "stale-gradients: clear" in fixed and "repeatable: clear" in fixed
    assert "mean_staleness_as_derived = True" in in_turn and "weights_repeat = True" in in_turn


CASE = LabCase(
    slug="stale-gradients",
    small={"ranks": 3, "steps": 30, "batch": 16, "straggler": 3.0, "seed": 5, "guess": 2, "mystery_seed": 0},
    says=says,
    mutation=Mutation(
        file="labs/stale_gradients/server.py",
        before="stop = self._begun >= self._total",
        after="stop = self._begun > self._total",
        again='in_turn = lab.run("async-in-turn", **settings, compare="no")',
    ),
    how={"steps": 24},
    rows={
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
    any_program=("straggler",),
    own_script=("stale-gradients",),
    on_a_link=OnALink(how={"steps": 12, "step_ms": 1.0, "repeats": 0, "compare": "no"}, simulated=("samples_per_s",)),
)
