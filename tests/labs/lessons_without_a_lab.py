"""Lessons that are about no lab, and what the tests know of them."""

from __future__ import annotations

from pathlib import Path

from lab_case import LessonCase, Mutation

DOCTOR = Path(__file__).resolve().parents[1] / "doctor"


def doctor_says(text: str) -> None:
    assert "classify.py on 3 ranks: 96 updates\n  found: checkpoint-files (ranks-save-to-one-path)" in text
    assert text.count("rank-duplicates (ranks-identical)") == 1
    assert "classify.py on 3 ranks: 33 updates\n  nothing found" in text
    assert "this block on 1 rank: 20 updates\n  found: old-gradients (gradients-never-cleared)" in text


WITHOUT_A_LAB = {
    "18_doctor": LessonCase(
        small={"ranks": 3, "guess": 1},
        says=doctor_says,
        mutation=Mutation(
            file="watch/outside/saves.py",
            before='patches.wrap(torch, "save", self.around(patches))',
            after="pass",
            # the doctor's ranks import the package that the doctor itself comes from
            again="from labkit.doctor import launch\n\nlaunch.__file__ = sys.path[0] + '/labkit/doctor/launch.py'\n"
            "seen = doctor.examine(doctor.example('classify'), ranks=ranks)",
        ),
        guess_settled_by_figure=True,
        # ranks are forked off a server that has torch, as in the doctor's own tests
        first=f"import sys\n\nsys.path.append({str(DOCTOR)!r})\nimport warm\n\nwarm.always()",
    ),
}
