"""What the tests know of lab 00, start-here."""

from lab_case import LabCase, Mutation, OnALink, may, row


def says(text):
    assert "start-here / survey on 3 ranks" in text
    assert text.count(": yes") == 4 and ": no" not in text


CASE = LabCase(
    slug="start-here",
    small={"ranks": 3, "budget_s": 1.0, "storage_mib": 8, "keep": "no", "seed": 5, "guess": 3, "mystery_seed": 2},
    says=says,
    mutation=Mutation(
        file="labs/start_here/compute.py",
        before='"bf16": torch.bfloat16, ',
        after="",
        again="record = lab.run(ranks=ranks, **settings)",
    ),
    how={"budget_s": 0.5, "storage_mib": 2, "copy_mib": 16, "launches": 2, "max_message_mib": 4, "keep": "no"},
    rows={
        "survey": row(
            "a survey: it measures, and nothing in it is broken",
            link_fit=may("loopback follows no single line where ranks share cores"),
            cores=may("this machine may have fewer cores than the ranks"),
            page_cache=may("a file as small as this one is read from memory"),
        )
    },
    any_program=("link-fit",),
    on_a_link=OnALink(
        how={"budget_s": 0.5, "launches": 2, "max_message_mib": 1, "parts": "link", "keep": "no"},
        simulated=("link_bandwidth", "link_latency", "link_residual_max"),
    ),
    guess_settled_by_figure=True,
)
