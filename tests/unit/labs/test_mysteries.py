"""Which programs a record without a label may be of; what is shown of it, and how an answer is judged. No process."""

from typing import Any

import msgspec
import pytest

from labkit import detect, labs
from labkit.classroom import mystery
from labkit.classroom.mystery import Mystery, choices_of, drawn_case
from labkit.detect.verdict import Verdict, Verdicts
from labkit.errors import UnknownName, UsageError
from labkit.facade import Lab
from labkit.labs.spec import Case
from labkit.record.quantity import Quantity

from ..builders import record_of, run_of

SLUGS = labs.slugs()


@pytest.mark.parametrize("slug", SLUGS)
def test_each_lab_has_programs_to_diagnose_that_can_be_run(slug):
    spec = labs.spec(slug)
    choices = choices_of(Lab(spec))
    assert len(choices) >= 3 and all(asks.endswith("?") for asks in choices.values())
    for case in spec.mysteries:
        assert case.asks or not case.fault or case.fault in spec.detectors
        names = {name for name in case.settings if name not in ("ranks", "hosts", "link", "latency_ms")}
        for name in names:
            for value in case.settings[name]:
                spec.configure(spec.chosen(case.variant), {name: value})


@pytest.mark.parametrize("slug", SLUGS)
def test_a_seed_gives_one_program_and_seeds_give_all(slug):
    lab = Lab(labs.spec(slug))
    drawn = [drawn_case(lab, seed) for seed in range(120)]
    assert drawn == [drawn_case(lab, seed) for seed in range(120)]
    assert {(case.fault, case.variant) for case, _ in drawn} == {(c.fault, c.variant) for c in lab.spec.mysteries} or (
        {case.fault for case, _ in drawn} == {case.fault for case in lab.spec.mysteries}
    )


def seed_of(lab, fault):
    return next(seed for seed in range(200) if drawn_case(lab, seed)[0].fault == fault)


class Judged:
    """A lab whose detectors say what a test wants them to: these find, and those cannot tell."""

    def __init__(self, *found, unsure=(), spec="duplicate-data"):
        self.spec, self._status = labs.spec(spec), dict.fromkeys(found, "found") | dict.fromkeys(unsure, "inconclusive")

    def judge(self, record):
        def says(name):
            status: Any = self._status.get(name, "not_applicable")
            return Verdict(detector=name, question=detect.module_of(name).QUESTION, status=status)

        return Verdicts(map(says, self.spec.detectors))


@pytest.fixture
def broken():
    run = run_of([[[[1, 2], [3, 4]]] * 2], dataset_size=4, batch_size=2, loader_where="programs.py:29")
    return msgspec.structs.replace(record_of(run), variant="leaky-split")


@pytest.fixture
def leaky(broken, monkeypatch):
    """A mystery in which validation leaks, so that ranks read the same samples, too."""
    monkeypatch.setattr(Verdict, "cause", property(lambda verdict: f"the evidence on {verdict.detector}"))
    monkeypatch.setattr(Verdict, "fix", property(lambda verdict: "the repair"))
    lab: Any = Judged("validation-leak", "rank-duplicates")
    return Mystery(lab, seed_of(lab, "validation-leak"), mystery._without_label(broken), None)


def test_the_right_answer_is_right_by_the_detector_s_evidence(leaky):
    said = leaky.diagnose(" Validation leak ")
    assert said and "The evidence on validation-leak." in repr(said) and "To repair it: The repair." in repr(said)


def test_a_wrong_answer_hears_what_its_own_detector_says_and_not_the_name_of_the_right_one(leaky):
    for answer in ("coverage", "order", "rank-duplicates", "nothing"):
        said = leaky.diagnose(answer)
        assert not said and "validation" not in repr(said)
    assert "found, too" in repr(leaky.diagnose("rank-duplicates"))
    assert "One of the questions finds" in repr(leaky.diagnose("healthy"))


@pytest.fixture
def hidden_by_others(broken, monkeypatch):
    """A mystery of lab 07 whose detector cannot tell, with the measures that tell all the same."""
    lab: Any = Lab(labs.spec("input-pipeline"))
    quiet = Judged(spec="input-pipeline", unsure=("starved-input",))
    monkeypatch.setattr(lab, "judge", quiet.judge)
    monkeypatch.setattr(lab, "measures", lambda record: {"data_share": Quantity(0.8, "of step time")})
    return Mystery(lab, seed_of(lab, "starved-input"), mystery._without_label(broken), None)


def test_where_other_programs_keep_the_detector_from_an_answer_measures_that_stand_far_above_noise_tell(hidden_by_others):
    case, settings = drawn_case(hidden_by_others._lab, hidden_by_others.seed)
    assert hidden_by_others.shows(case) and settings["prep_ms"] >= 5 * settings["compute_ms"]
    said = hidden_by_others.diagnose("starved-input")
    assert said and said.because == "This record says: data share 80.0% of step time."
    wrong = hidden_by_others.diagnose("cross-process-lock")
    assert not wrong and "80.0%" in wrong.because and wrong.next


def test_a_fault_without_measures_of_its_own_is_not_told_where_its_detector_cannot(broken):
    lab: Any = Judged(unsure=("order",))
    hidden = Mystery(lab, 0, mystery._without_label(broken), None)
    assert not hidden.shows(Case(fault="order")) and hidden.shows(Case(fault="order", evidence=("order_repeats",)))
    assert not hidden.shows(Case(fault="coverage", evidence=("unique_samples",)))


def test_figures_that_name_what_ran_come_with_the_right_diagnosis(broken, monkeypatch):
    lab: Any = Lab(labs.spec("zero-stages"))
    monkeypatch.setattr(lab, "judge", Judged("per-rank-norm", spec="zero-stages").judge)
    hidden = Mystery(lab, seed_of(lab, "per-rank-norm"), mystery._without_label(broken), None)
    telling = set(lab.spec.figures_that_name)
    assert telling and not telling & {*hidden.figures}
    for _ in range(2):
        for name in telling:
            with pytest.raises(UsageError, match="once you have said what is wrong"):
                hidden.figure(name)
        assert not hidden.diagnose("unequal-init")
    assert hidden.diagnose("per-rank-norm") and telling < {*hidden.figures}
    with pytest.raises(UsageError, match="declared no strategy"):
        hidden.figure("traffic-by-collective")


def test_what_is_no_answer_is_named_with_those_there_are(leaky):
    with pytest.raises(UnknownName, match="validation-leak"):
        leaky.diagnose("gremlins")


def test_nothing_that_is_shown_tells_what_ran(broken, leaky):
    hidden = mystery._without_label(broken)
    assert "leaky" in repr(broken)
    assert hidden.variant == "mystery" and hidden.folder is None
    for text in (repr(leaky), leaky._repr_html_(), repr(vars(leaky)), repr(leaky.run)[:20_000]):
        assert "leaky" not in text
    assert not [name for log in hidden.run.ranks for name in log.head.facts if name.endswith("_where")]
