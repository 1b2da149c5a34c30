"""What the tests know of lab 02, mfu."""

from lab_case import F, LabCase, Mutation, also, clear, may, row

FUSED = also("torch's counter does not know fused attention on a CPU, whichever variant uses it")
RUNG = "a rung of the ladder: each is better than the one before it, and none is a fault by itself"


def says(text):
    assert f"broken counted {6 * 65536 + 12 * 64 * 128}" in text and f"fixed counted {6 * 65536}" in text
    assert "flop-convention: clear" in text.split("mfu / broken")[1].split("mfu / fixed")[0]


CASE = LabCase(
    slug="mfu",
    small={
        **{"layers": 1, "hidden": 64, "heads": 4, "seq": 128, "steps": 2, "seed": 5},
        **{"guess": 50, "mystery_seed": 1, "compiled": False},
    },
    says=says,
    mutation=Mutation(
        file="workloads/gpt.py",
        before='if self.attention == "sdpa":',
        after="if True:",
        again='broken = lab.run("broken", **settings)',
    ),
    how={"seq": 256, "steps": 4},
    rows={
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
    guess_settled_by_figure=True,
)
