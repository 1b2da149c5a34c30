"""What the doctor says, in a terminal, as a page, as JSON and as SARIF: whole, in order, and safe whatever is shown."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from labkit.detect import ask, names
from labkit.detect.explained import subjects
from labkit.detect.verdict import Verdict, Verdicts
from labkit.doctor import outer
from labkit.doctor.checklist import ORDER, checklist, counted
from labkit.doctor.diagnosis import Diagnosis, kept, ordered
from labkit.doctor.excerpts import excerpt, place
from labkit.doctor.launch import Ended, RankEnd
from labkit.doctor.rank import note_end
from labkit.doctor.sarif import FINGERPRINT, sarif
from labkit.ranks.join import Place
from labkit.record.quantity import Quantity
from labkit.view.diagnosis import print_diagnosis
from labkit.view.diagnosis_page import diagnosis_card, page

from .test_cards import text_of

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e.py"
SOURCE = "import torch\n\nfor batch in loader:\n    loss = '</pre><script>alert(2)</script>\x1b[2J'\n    step()\n"


def found(detector: str, reason: str, *, waste: float | None = None, where: str | None = "train.py:3", **numbers) -> Verdict:
    return Verdict(
        detector=detector,
        question="Is it <b>so</b>?",
        status="found",
        reason=reason,
        numbers=numbers,
        evidence={"steps": Quantity(4, "steps")},
        where=where,
        waste=waste,
    )


SOME = [
    found("checkpoint-files", "scheduler-not-saved"),
    found("rank-duplicates", "ranks-identical", waste=0.5, ranks=2),
    found("replicas-differ", "ddp-bypassed", waste=0.75, ranks=4),
    found("old-gradients", "gradients-never-cleared", where="train.py:4", updates=9),
    Verdict(detector="order", question="New?", status="inconclusive", reason="later-pass-in-one-order"),
    Verdict(detector="coverage", question="All?", status="clear", reason="every-sample-read"),
    Verdict(detector="skipped-steps", question="Skips?", status="not_applicable", reason="scaler-not-asked"),
    Verdict(detector="repeatable", question="Again?", status="not_applicable", reason="run-was-made-once"),
]  # fmt: skip


def diagnosis(root: Path, verdicts=SOME, command=("train.py", "--lr", "1")) -> Diagnosis:
    made = Diagnosis(command, Ended([RankEnd(0, "finished", 0), RankEnd(1, "finished", 0)], 4.2), None, root=root)
    made.__dict__["verdicts"] = Verdicts(ordered(verdicts))  # in the place of those that a record gives
    return made


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / HOSTILE.replace("/", "_")).write_text(SOURCE)
    return tmp_path


def printed(of: Diagnosis, width: int, everything: bool = False, **how) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False, **how)
    print_diagnosis(console, of, everything=everything)
    return out.getvalue()


def test_the_most_expensive_comes_first_and_what_costs_at_a_crash_last(root):
    names = [verdict.detector for verdict in diagnosis(root).found]
    assert names == ["old-gradients", "replicas-differ", "rank-duplicates", "checkpoint-files"]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("everything", [False, True])
def test_a_terminal_shows_each_part_and_breaks_no_word(root, width, everything):
    said = printed(diagnosis(root), width, everything)
    for part in (
        "1. found",
        "wastes 75 % of device time",
        "train.py:3",
        "for batch in loader:",
        "Fix",
        "Check-list",
        "Data",
    ):
        assert part in " ".join(said.split()) or part in said
    for answer in ("found", "undecided", "clear", "not seen"):
        assert answer in said
    assert "scaler was asked for" in " ".join(said.split())  # why it was not seen
    assert not set(said) & set("╭╮╰╯│─┃━")  # nothing that is read aloud and says nothing
    lines = said.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= width for line in lines if "loss =" not in line)


def test_nothing_commands_the_terminal_and_a_pipe_gets_no_colour(root):
    hostile = diagnosis(root, [found("old-gradients", "gradients-never-cleared", where="train.py:4", updates=9)], (HOSTILE,))
    assert "\x1b" not in printed(hostile, 80) and "\u202e" not in printed(hostile, 80)
    coloured = printed(hostile, 80, force_terminal=True, color_system="truecolor")
    assert not re.sub(r"\x1b\[[0-9;]*m", "", coloured).count("\x1b")


def test_a_page_is_one_file_that_loads_nothing_and_escapes_all(root):
    hostile = diagnosis(root, [*SOME, found("order", "not-shuffled", where=f"{HOSTILE}:3")], (HOSTILE, "--name=<img src=x>"))
    for html in (page(hostile), diagnosis_card(hostile)):
        assert "<script" not in html and "<img" not in html and "\x1b" not in html and "\u202e" not in html
        assert not re.search(r"<[^>]*(?:src|href)\s*=|url\(|https?:|@import", html)
    assert "default-src 'none'" in page(hostile)


def test_a_page_and_a_card_hold_each_part_in_order(root):
    for html in (diagnosis_card(diagnosis(root)), page(diagnosis(root)).partition("<main>")[2].partition("</main>")[0]):
        text = text_of(html)
        parts = ["train.py", "4 found", "1 undecided", "Found", "for batch in loader:", "Fix.", "What goes wrong",
                 "Undecided", "Check-list", "every sample is read", "no gradient scaler was asked", "a second run with",
                 "Nothing was sent anywhere"]  # fmt: skip
        places = [text.find(part) for part in parts]
        assert -1 not in places and places == sorted(places), dict(zip(parts, places, strict=True))


def test_what_is_no_training_and_what_finds_nothing_have_a_page_too(root):
    nothing = diagnosis(root, [])
    assert "no training to examine" in text_of(diagnosis_card(nothing)) and "no training to examine" in printed(nothing, 80)
    clear = text_of(diagnosis_card(diagnosis(root, [SOME[5]])).partition("</style>")[2].removesuffix("</div>"))
    assert "1 clear" in clear and "Found" not in clear and "Undecided" not in clear


def test_every_question_stands_once_in_the_check_list_under_its_subject(broken):
    verdicts = [ask(name, broken) for name in names()]
    listed = checklist(verdicts)
    assert sorted(item.verdict.detector for items in listed.values() for item in items) == names()
    assert list(listed) == [subject for subject in subjects() if subject in listed]
    assert sum(counted(verdicts).values()) == len(names()) and tuple(counted(verdicts)) == ORDER
    assert all(item.why for items in listed.values() for item in items)


def test_places_and_their_lines_are_read_and_nothing_else(root):
    assert place("a b:c.py:12") == ("a b:c.py", 12)
    assert [place(word) for word in (None, "", "train.py", "train.py:", ":3", "train.py:x", "train.py:0", "x:²")] == [
        None
    ] * 8
    lines = excerpt("train.py:3", root, 1)
    assert lines is not None and lines.text == "for batch in loader:" and [number for number, _ in lines.lines] == [2, 3, 4]
    assert "\x1b" not in lines.lines[-1][1]
    for where in ("train.py:6", "nowhere.py:1", "notebook cell:3", ".:1", "\0:1"):
        assert excerpt(where, root) is None


def test_the_report_is_json_and_keeps_its_old_fields(root):
    report = json.loads(json.dumps(diagnosis(root).report()))
    assert {"command", "trained", "stood_still", "seconds", "ranks", "reading"} <= report.keys()
    assert report["counts"] == {"found": 4, "inconclusive": 1, "clear": 1, "not_applicable": 2}
    first = report["findings"][0]
    assert first["explain"] == "old-gradients/gradients-never-cleared" and first["where"] == "train.py:4"
    assert [item["detector"] for item in report["checklist"] if item["subject"] == "Data"] == [
        "rank-duplicates",
        "order",
        "coverage",
    ]


# SARIF: the fields that the schema of version 2.1.0 requires, and what code hosts ask beside them


def log_of(made: Diagnosis) -> dict:
    log = json.loads(json.dumps(sarif(made, "1.2")))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json") and len(log["runs"]) == 1
    return log["runs"][0]


def wrong_in(run: dict) -> list[str]:
    """What is missing or of a wrong kind."""
    wrong = []
    driver = run["tool"]["driver"]
    if not driver["name"] or run["columnKind"] != "utf16CodeUnits" or run["invocations"] != [{"executionSuccessful": True}]:
        wrong.append("run")
    for rule in driver["rules"]:
        texts = [rule["shortDescription"]["text"], rule["fullDescription"]["text"], rule["help"]["text"]]
        if not rule["id"] or not all(texts) or "{" in "".join(texts):
            wrong.append(f"rule {rule['id']}")
    for result in run["results"]:
        at = driver["rules"][result["ruleIndex"]]
        if at["id"] != result["ruleId"] or result["level"] not in ("none", "note", "warning", "error"):
            wrong.append(f"result {result['ruleId']}")
        if not result["message"]["text"] or not 0 <= result.get("rank", 0) <= 100 or "kind" in result:
            wrong.append(f"message {result['ruleId']}")
        for location in result["locations"]:
            physical = location["physicalLocation"]
            uri = physical["artifactLocation"]["uri"]
            relative = "uriBaseId" in physical["artifactLocation"]
            if re.search(r"[^\w.~!$&'()*+,;=:@/%-]", uri) or (relative and uri.startswith(("/", ".."))):
                wrong.append(uri)
            if "region" in physical and not physical["region"]["startLine"] >= 1:
                wrong.append(f"region {uri}")
        if not re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"][FINGERPRINT]):
            wrong.append("fingerprint")
    return wrong


def test_sarif_has_what_its_schema_requires(root):
    run = log_of(diagnosis(root))
    assert not wrong_in(run)
    assert [result["level"] for result in run["results"]] == ["error"] * 4 + ["note"]
    assert run["results"][1]["rank"] == 75
    run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = "a b"
    run["results"][1]["level"] = "bad"
    assert len(wrong_in(run)) == 2  # the check can fail


def test_sarif_names_places_from_the_root_of_the_repository(root):
    (root / ".git").mkdir()
    (root / "my code").mkdir()
    (root / "my code" / "train.py").write_text(SOURCE)
    verdicts = [found("coverage", "iterator-used-up", empty=1, epochs=2, first=1), SOME[4]]
    results = log_of(diagnosis(root / "my code", verdicts))["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert places[0]["artifactLocation"] == {"uri": "my%20code/train.py", "uriBaseId": "%SRCROOT%"}
    assert places[0]["region"] == {"startLine": 3, "snippet": {"text": "for batch in loader:"}}
    assert places[1] == {"artifactLocation": places[0]["artifactLocation"]}  # the script, where no line is known
    outside = log_of(diagnosis(root / "my code", [found("order", "not-shuffled", where="../train.py:3")]))["results"][0]
    assert outside["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"


def test_what_is_in_no_file_has_no_location(root):
    run = log_of(diagnosis(root, [found("order", "not-shuffled", where="notebook cell:3")], ("this block",)))
    assert run["results"][0]["locations"] == [] and not wrong_in(run)
    (root / "package").mkdir()
    (root / "package" / "train.py").write_text(SOURCE)
    module = log_of(diagnosis(root, [SOME[4]], ("package.train",)))["results"][0]
    assert module["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "package/train.py"


def test_a_fingerprint_outlives_lines_put_in_above_and_tells_findings_apart(root):
    def fingerprints() -> list[str]:
        verdicts = [found("order", "not-shuffled", where=f"train.py:{line}") for line in (3, 4)]
        run = log_of(diagnosis(root, [*verdicts, found("coverage", "iterator-used-up", empty=1, epochs=2, first=1)]))
        return sorted(result["partialFingerprints"][FINGERPRINT] for result in run["results"])

    before = fingerprints()
    assert len(set(before)) == 3
    again = found("order", "not-shuffled", where="train.py:5")
    (root / "train.py").write_text("# a new line\n# another\n" + SOURCE)
    moved = log_of(diagnosis(root, [again]))["results"][0]
    assert moved["partialFingerprints"][FINGERPRINT] in before


def test_ranks_of_a_machine_that_shares_no_folder_are_not_seen_and_nothing_is_judged(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank-{rank:05d}.jsonl").write_text("{}")
        note_end(tmp_path, rank, "finished", 0)
    two_machines = Place(0, 0, 4, 2)
    unseen = outer.elsewhere(tmp_path, two_machines)
    assert unseen == (2, 3)
    ended = outer.ended(tmp_path, 4, 0.0, outer.Told(), unseen)  # at once: nobody waits for them
    assert [one.rank for one in ended.ranks] == [0, 1] and ended.unseen == unseen
    assert kept(tmp_path, "train.py", ended, None) is None
    out = io.StringIO()
    print_diagnosis(Console(file=out, width=200), Diagnosis(("train.py",), ended, None))
    assert "2 ranks ran on other machines" in out.getvalue() and "--record" in out.getvalue()
    assert Diagnosis(("train.py",), ended, None).report()["unseen_ranks"] == [2, 3]
    (tmp_path / "rank-00002.jsonl").write_text("{}")
    (tmp_path / "rank-00003.jsonl").write_text("{}")
    assert outer.elsewhere(tmp_path, two_machines) == ()  # a folder that both machines share
