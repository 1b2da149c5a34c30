"""What verdicts say: every key has a text, every text a use, and every number in a text is given."""

from __future__ import annotations

import ast
import gettext
import string
from pathlib import Path

import pytest

import labkit.detect
from labkit.detect import catalogue as texts
from labkit.detect.catalogue import Reason, catalogue, said, written
from labkit.detect.verdict import STATUSES, Verdict

DETECT = Path(labkit.detect.__file__).parent
MODULES = [path for path in DETECT.rglob("*.py") if path.name not in ("reasons.py", "catalogue.py")]

PARTS = {"where", "waste", "notes"}
"""What is given to an answer beside the numbers in its texts."""


def places(reason: Reason) -> set[str]:
    """The numbers that stand in a reason's texts."""
    found = [string.Formatter().parse(text) for text in (reason.cause, reason.fix, reason.script)]
    return {name.partition(".")[0].partition("[")[0] for parts in found for _, name, _, _ in parts if name}


def answers(tree: ast.AST) -> list[tuple[str, set[str] | None]]:
    """(reason key, names of the numbers given; None where they are not all written out) of each text used in a module."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        first, *more = call.args
        if isinstance(call.func, ast.Name) and call.func.id == "said":
            key = first
        elif more and isinstance(first, ast.Constant) and first.value in STATUSES:
            key = more[0]
        else:
            continue
        given = {word.arg for word in call.keywords}
        names = None if None in given else {str(name) for name in given} - PARTS
        either = [key.body, key.orelse] if isinstance(key, ast.IfExp) else [key]
        found += [(str(one.value), names) for one in either if isinstance(one, ast.Constant)]
    return found


def wrong_answers(tree: ast.AST) -> list[str]:
    wrong = []
    for key, given in answers(tree):
        if key not in catalogue():
            wrong.append(f"{key}: no such reason")
        elif given is not None and given != places(catalogue()[key]):
            wrong.append(f"{key}: given {sorted(given)}, its texts hold {sorted(places(catalogue()[key]))}")
    return wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(DETECT).as_posix())
def test_each_answer_has_a_reason_and_gives_the_numbers_in_its_texts(path):
    assert not wrong_answers(ast.parse(path.read_text()))


def test_a_wrong_answer_is_seen():
    assert wrong_answers(ast.parse('_answer("found", "no-such-key", evidence)'))
    assert wrong_answers(ast.parse('_answer("found", "checkpoint-lost-with-its-node", evidence, where=where)'))
    assert wrong_answers(ast.parse('_answer("clear", "no-step-skipped" if one else "no-such-key", evidence)'))
    assert wrong_answers(ast.parse('said("how-stale", mean=1.5)'))
    assert not wrong_answers(ast.parse('said("how-stale", mean=1.5, most=3)'))
    assert not wrong_answers(ast.parse('_answer("found", "checkpoint-lost-with-its-node", evidence, ranks=[1])'))


def test_each_text_is_used():
    source = "\n".join(path.read_text() for path in MODULES)
    built = ("in-all-", "from-", "first-in-")  # made of what an epoch's part is called
    assert not [key for key in catalogue() if f'"{key}"' not in source and not key.startswith(built)]


def test_a_key_stands_in_one_catalogue(monkeypatch):
    monkeypatch.setitem(labkit.detect.crash.reasons.REASONS, "own-names", Reason("another"))
    with pytest.raises(ValueError, match="own-names"):
        texts.catalogue.__wrapped__()


def test_numbers_are_written_as_the_text_asks():
    assert written("{steps:plural step/steps}", {"steps": 1}) == "1 step"
    assert written("{steps:plural step/steps}", {"steps": 1024}) == "1,024 steps"
    assert (
        written("{share:.0%} {time:duration} {x:short}", {"share": 0.5, "time": 90.0, "x": 0.04142}) == "50% 1.5 min 0.0414"
    )
    assert written("{ranks:all rank/ranks}", {"ranks": [2]}) == "rank 2"
    assert written("{ranks:all rank/ranks}", {"ranks": [0, 1, 3]}) == "ranks 0, 1 and 3"
    assert (
        written("{why}", {"why": said("part-cut-short", parts=["epoch 2"])})
        == "; epoch 2 was cut short and cannot be judged"
    )
    with pytest.raises(KeyError):
        written("{steps}", {})


def test_another_language_takes_the_place_of_the_texts_and_brings_its_own_forms(monkeypatch):
    class German(gettext.NullTranslations):
        def gettext(self, message):
            return {"after each restart every rank found what had been saved": "nach jedem Neustart war alles da"}.get(
                message, message
            )

    monkeypatch.setattr(texts, "_translation", German)
    verdict = Verdict(detector="local-disk", question="?", status="clear", reason="every-rank-found-its-checkpoint")
    assert verdict.cause == "nach jedem Neustart war alles da"


def test_what_is_advised_suits_who_wrote_the_record():
    of_lab = Verdict(detector="local-disk", question="?", status="inconclusive", reason="no-restart-after-a-save")
    of_script = Verdict(
        detector="local-disk", question="?", status="inconclusive", reason="no-restart-after-a-save", in_script=True
    )
    assert "Fault(" in of_lab.fix and "Fault(" not in of_script.fix != ""
