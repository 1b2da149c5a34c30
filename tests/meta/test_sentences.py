"""What lessons, decks and the README claim stands in a ledger with its proof, and the proof holds."""

import json

import pytest
from proofs.claims import claims, numbers
from proofs.kinds import Place, complaint
from proofs.ledger import ROOT, Topic, topics
from proofs.markdown import pieces

TOPICS = topics()

TEXT = """---
title: all of 3
---

# 07 · All of it

Two ranks read it. **Every one** of them
reads it once! It takes 4.5 s, i.e. Nobody waits (see [all](http://x/all/3.html)). A plain line.

```python
always = 3  # code claims nothing
```

```{notes} 2
The room guesses.

:::{expects} Never: 5 of 6
So it was not meant.
:::
It is twice as much.
```

| a | b |
|---|---|
| no claim | here |
| costs | 1 − 1/W |

- lab 02 and `rank-0001.json`
- {measure}`broken.loss / fixed.loss_2` of fp32 on an H100
- it cannot
  be so

    indented code, always

$$x < 2$$
"""
SAID = [
    "All of it",
    "**Every one** of them reads it once!",
    "It takes 4.5 s, i.e. Nobody waits (see all).",
    "It is twice as much.",
    "costs | 1 − 1/W",
    "it cannot be so",
    "$$x < 2$$",
]


def lesson(folder, *cells) -> Topic:
    """A topic of its own: a lesson of the given cells, each a source and what it printed."""
    found = [{"cell_type": "markdown", "id": "m0", "source": [TEXT]}]
    for number, (source, printed) in enumerate(cells, 1):
        outputs = [{"output_type": "stream", "text": [printed]}]
        found.append({"cell_type": "code", "id": f"c{number}", "source": [source], "outputs": outputs})
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "claims.toml").write_text("[A1]\nclaim = 'x'\n")
    path = folder / "07_x.ipynb"
    path.write_text(json.dumps({"cells": found}))
    return Topic("07_x", (path,), folder)


def listed(topic: Topic, texts: list[str], proof: str = "definition") -> list[str]:
    topic.ledger.parent.mkdir(parents=True, exist_ok=True)
    entries = [f"[[sentence]]\ntext = {json.dumps(text, ensure_ascii=False)}\nproof = ['{proof}']\n" for text in texts]
    topic.ledger.write_text("\n".join(entries))
    return topic.faults()


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_each_claim_is_listed_with_a_proof_that_holds(topic):
    faults = topic.faults()
    assert not faults, "\n".join(faults) + f"\npython scripts/sentences.py --missing {topic.name}"


def test_every_lesson_deck_and_text_has_a_ledger_and_every_ledger_its_text():
    ledgers = {path.stem for path in (ROOT / "tests" / "meta" / "proofs").glob("*.toml")}
    assert ledgers == {topic.name for topic in TOPICS}


def test_a_lesson_and_its_deck_are_one_topic_and_no_text_is_left_out():
    documents = {path.relative_to(ROOT).as_posix() for topic in TOPICS for path in topic.documents}
    assert {"notebooks/03_duplicate_data.ipynb", "slides/03_duplicate_data.md", "slides/opening.md"} <= documents
    assert "README.md" in documents
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)


def test_what_claims_a_number_or_has_no_exception_is_found_and_nothing_else():
    assert [piece for piece in pieces(TEXT) if claims(piece)] == SAID


@pytest.mark.parametrize(
    "text",
    [
        "It always holds.",
        "Only one.",
        "About half of it.",
        "They differ by a factor of six.",
        "A third of it.",
        "Ten times as fast.",
        "No rank, at 3 %.",
        "-1 is it",
    ],
)
def test_a_planted_claim_is_seen(text):
    assert claims(text)


def test_numbers_are_read_as_they_are_written():
    assert numbers("11,520 and 1.5, 2e-4 in lab 03 on an H100, fp16; {measure}`a.b_3`, 72 h") == [11520, 1.5, 2e-4, 72]


def test_a_claim_without_an_entry_and_an_entry_without_its_claim_are_faults(tmp_path):
    topic = lesson(tmp_path / "a")
    assert listed(topic, SAID) == []
    assert listed(topic, SAID[1:]) == ["nothing proves: All of it"]
    assert listed(topic, [*SAID, "It never was."]) == ["no longer said: It never was."]
    assert listed(topic, [*SAID, SAID[0]]) == ["listed twice: All of it"]
    assert len(listed(topic, SAID, proof="")) == len(SAID)


HOLDS = {
    "sum:approx(1 / 0.75, 1.333)": "It is 0.75.",
    "sum:2 ** 4 == 16 and round(63 / 64, 3) == 0.984": "It is 16.",
    "sum:2 * sin(pi / 2) == 2 > 1": "It is always less than 2.",
    "claim:A1": "It is always so.",
    "printed:c1": "It takes 4.2 s, or 1,000 ms.",
    "assert:c2": "It is always so.",
    "cell:c1": "It is always so.",
    "test:tests/test_x.py::test_it[3]": "It is always so.",
    "code:tests/test_x.py::Fine.test_it": "It is always so.",
    "text:tests/test_x.py::NAME = 3": "It is 3.",
    "source:https://x.org/paper — 38 % of them": "It is 38 %.",
}
FAILS = {
    "sum:2 + 2 == 5": "It is 2.",
    "sum:1 == 1": "It is 16.",
    "sum:16": "It is 16.",
    "sum:open(16) == 16": "It is 16.",
    "sum:().__class__ == 16": "It is 16.",
    "sum:1 / 0 == 16": "It is 16.",
    "claim:A2": "It is always so.",
    "printed:c1": "It takes 4.3 s.",
    "printed:c9": "It takes 4.2 s.",
    "assert:c1": "It is always so.",
    "cell:c3": "It is always so.",
    "test:tests/test_x.py::test_that": "It is always so.",
    "test:tests/test_y.py::test_it": "It is always so.",
    "code:tests/test_x.py::Other": "It is always so.",
    "text:tests/test_x.py::NAME = 4": "It is 3.",
    "source:https://x.org/other — 38 % of them": "It is 38 %.",
    "source:https://x.org/paper — 37 % of them": "It is 38 %.",
    "source:https://x.org/paper": "It is 38 %.",
    "believe:me": "It is always so.",
    "": "It is always so.",
}


@pytest.fixture
def place(tmp_path) -> Place:
    topic = lesson(tmp_path / "a", ("print(4)", "4.21 s, 1000 ms"), ("assert 1 < 2", ""))
    (topic.root / "tests").mkdir()
    (topic.root / "tests" / "test_x.py").write_text("NAME = 3\nclass Fine:\n    def test_it(self): ...\n")
    return Place(topic.root, topic.documents[0], "see https://x.org/paper")


@pytest.mark.parametrize(("proof", "text"), HOLDS.items())
def test_a_proof_that_holds_is_taken(place, proof, text):
    assert complaint(proof, text, place) == ""


@pytest.mark.parametrize(("proof", "text"), FAILS.items())
def test_a_proof_that_does_not_hold_is_refused(place, proof, text):
    assert complaint(proof, text, place)
