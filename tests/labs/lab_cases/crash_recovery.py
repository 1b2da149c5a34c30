"""What the tests know of lab 08, crash-recovery."""

from lab_case import F, LabCase, Mutation, OnALink, also, clear, row


def says(text):
    broken, rest = text.split("crash-recovery / fixed", 1)
    assert "crash-recovery / broken on 3 ranks" in broken
    assert "lost-work: found" in broken and "lost_steps = 11" in broken and "resumed_at = 0" in broken
    fixed = rest.split("crash-recovery /")[0]
    assert "lost_steps = 3" in fixed and "resumed_at = 8" in fixed and "departs_at = never" in fixed
    assert "weights_equal_uninterrupted = True" in fixed and "found" not in fixed
    optimizer = rest.split("crash-recovery /")[1]
    assert "departs_at = step 9" in optimizer and "resume-departs: found" in optimizer
    assert "single-path: found" in text.split("/ one-path")[1]
    assert "local-disk: found" in text.split("/ local-disk")[1]


CASE = LabCase(
    slug="crash-recovery",
    small={"ranks": 3, "num_samples": 301, "interval": 4, "kill_step": 11, "seed": 5, "guess": 8},
    says=says,
    mutation=Mutation(
        file="labs/crash_recovery/keepers.py",
        before="self.training.go_on_from(restored.step, restored.shared, restored.own)",
        after="self.training.go_on_from(restored.step, restored.shared, None)",
        again='fixed = lab.run("fixed", **settings)',
    ),
    how={"num_samples": 301, "global_batch": 50, "epochs": 3, "kill_step": 11},
    rows={
        "broken": row(lost_work=F, **clear("resume-departs")),
        "model-and-epoch": row(resume_departs=F),
        "light": row(how={"kill_step": 13}, resume_departs=F),
        "one-path": row(single_path=F, resume_departs=also("all ranks load what the last of them saved")),
        "local-disk": row(local_disk=F, lost_work=also("the checkpoint went with the node")),
        "async-save": row("right: saved while training goes on", **clear("lost-work", "resume-departs", "single-path")),
        "fixed": row("right", **clear("lost-work", "resume-departs", "single-path", "local-disk")),
    },
    on_a_link=OnALink(
        how={"num_samples": 301, "global_batch": 50, "epochs": 3},
        simulated=("goodput", "restart_s", "time_between", "time_lost", "time_restarting", "time_saving"),
    ),
)
