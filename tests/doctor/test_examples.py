"""The scripts with faults that the doctor's lesson hands out: what is found in each, and nothing in its repair."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.detect import is_timed
from labkit.doctor import lessons
from labkit.errors import UnknownName, UsageError

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]

FOUND = {
    "classify": {"rank-duplicates/ranks-identical", "checkpoint-files/ranks-save-to-one-path"},
    "finetune": {
        "untrained-parameters/unfrozen-after-ddp",
        "replicas-differ/some-weights-drift-under-ddp",
        "learning-rate-schedule/schedule-ends-early",
        "missing-no-sync/micro-batches-reduce-all-bytes",
    },
    "resume": {
        "mixed-precision-setup/fp16-without-a-scaler",
        "checkpoint-files/scheduler-not-saved",
        "old-gradients/window-over-two-epochs",
    },
}
each = pytest.mark.parametrize("name", FOUND)


def test_every_example_is_listed_and_says_nothing_of_labkit():
    assert lessons.EXAMPLES.keys() == FOUND.keys()
    assert not [one.name for one in lessons.EXAMPLES.values() if "labkit" in one.source + one.repaired]


@each
def test_its_faults_are_found_and_its_loss_falls(examine, tmp_path, name):
    example = lessons.EXAMPLES[name]
    seen = examine(lessons.example(name, tmp_path / "work"), ranks=example.ranks)
    assert {key for key, verdict in seen.found.items() if not is_timed(verdict.detector)} == FOUND[name]
    losses = np.array([step.scalars["loss_local"] for step in seen.diagnosis.reading.run.ranks[0].steps])
    assert losses[: len(losses) // 4].mean() > 1.02 * losses[-len(losses) // 4 :].mean()
    assert seen.updates == example.updates


@each
def test_nothing_is_found_of_its_repair(examine, tmp_path, name):
    example = lessons.EXAMPLES[name]
    script = tmp_path / f"{name}.py"
    script.write_text(example.repaired)
    seen = examine(script, ranks=example.ranks)
    assert not seen.found and seen.updates >= example.updates // 2


def test_a_change_of_what_does_not_stand_there_is_refused(tmp_path):
    script = lessons.example("classify", tmp_path)
    with pytest.raises(UsageError, match="5 times"):
        lessons.repair(script, ("import torch\n", ""), ("epoch", "period"))
    assert script.read_text() == lessons.EXAMPLES["classify"].source
    diff = lessons.repair(script, ("shuffle=True", "shuffle=False"))
    assert "shuffle=False" in script.read_text() and "+    loader" in repr(diff)


def test_a_name_that_no_example_has_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="classify"):
        lessons.example("clasify", tmp_path)
    with pytest.raises(UnknownName, match="finetune"):
        lessons.check(tmp_path / "other.py")
    with pytest.raises(UsageError, match="makes it"):
        lessons.check(tmp_path / "finetune.py")


def test_the_check_says_what_is_still_wrong_and_is_content_with_a_repair(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = lessons.example("resume", tmp_path)
    result = lessons.check(script)
    assert not result.passed and len(result.findings) == len(FOUND["resume"])
    script.write_text(lessons.EXAMPLES["resume"].repaired)
    assert lessons.check(script).passed
    script.write_text(lessons.EXAMPLES["resume"].repaired.replace("range(EPOCHS)", "range(1)"))
    assert "it is to train on" in lessons.check(script).findings[0]
    script.write_text("raise ValueError('no')\n")
    assert "ends with an error: raised ValueError" in lessons.check(script).findings[0]
