"""Records without a label, made by real ranks: one answer is right, and none of them is among the runs that are kept."""

import pytest

import labkit
from labkit.classroom.mystery import drawn_case
from labkit.record.store import kept_runs

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(300)]


def seed_of(lab, fault):
    return next(seed for seed in range(300) if drawn_case(lab, seed)[0].fault == fault)


def answers_right(lab, fault):
    found = lab.mystery(seed_of(lab, fault))
    right = [answer for answer in found.choices if lab.diagnose(found, answer)]
    assert right == [fault or "nothing"]
    return found


@pytest.mark.parametrize(("slug", "fault"), [("duplicate-data", "coverage"), ("overlap", "misplaced-no-sync")])
def test_the_right_answer_and_no_other_is_right(slug, fault):
    lab = labkit.lab(slug)
    before = [str(one) for one in kept_runs()]
    found = answers_right(lab, fault)
    assert [str(one) for one in kept_runs()] == before
    variant = drawn_case(lab, found.seed)[0].variant
    assert variant not in repr(found) and variant not in repr(found.figure(found.figures[0]))
    assert found.measures and found.run.world_size


EACH = [(spec.slug, fault) for spec in labkit.labs_table() for fault in sorted({case.fault for case in spec.mysteries})]


@pytest.mark.soak
@pytest.mark.parametrize(("slug", "fault"), EACH)
def test_every_fault_of_every_lab_can_be_diagnosed(slug, fault):
    answers_right(labkit.lab(slug), fault)
