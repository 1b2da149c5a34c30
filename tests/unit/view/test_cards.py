from html.parser import HTMLParser

import msgspec
import pytest

from labkit.detect.reads.measures import data_measures
from labkit.detect.reads.rank_duplicates import detect
from labkit.detect.verdict import Verdicts
from labkit.results import CheckResult, Comparison, Diff
from labkit.view import cards, lesson, palette

VOID = {"br", "img", "hr"}


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text_of(html: str) -> str:
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    return parser.text


def test_a_verdict_that_found_something_shows_cause_fix_place_and_waste(broken):
    text = text_of(detect(broken)._repr_html_())
    for part in ("✗ found", "Do the ranks read the same data?", "they do the work of one", "Fix:", "75.0% of device time"):
        assert part in text


def test_a_status_is_told_by_a_mark_and_a_word_and_not_by_colour_alone():
    for status in palette.STATUS_COLOUR:
        assert text_of(cards.chip(status)) == f"{palette.STATUS_MARK[status]} {status.replace('_', ' ')}"
    assert len(set(palette.STATUS_MARK.values())) == 4


def test_names_that_look_like_markup_stay_text(broken):
    html = cards.note_card("<script>alert(1)</script>", "found")
    assert "<script>" not in html and "<script>" in text_of(html)
    assert "<b>" not in Diff("<b>", "y", "a < b", "a > b")._repr_html_()


def test_a_difference_shows_as_many_equal_lines_around_as_it_is_asked_to():
    lines = [f"line {number}" for number in range(9)]
    before, after = "\n".join(lines), "\n".join([*lines[:4], "another", *lines[5:]])
    assert all(line in repr(Diff("x", "y", before, after)) for line in ("line 0", "line 8"))
    short = repr(Diff("x", "y", before, after, context=1))
    assert "+another" in short and "line 3" in short and "line 2" not in short and "line 6" not in short


def test_every_noun_draws_itself_as_html_and_as_text(broken, fixed):
    verdicts = Verdicts([detect(broken), detect(fixed)])
    nouns = [broken, verdicts, verdicts[0], CheckResult([]), CheckResult(["a < b"]), Diff("x", "y", "a\nb", "a\nc"),
             Comparison({"broken": data_measures(broken)}, ["measured"]), lesson.CostOf(0.75),
             lesson.Prediction("How many?", 1, "samples").reveal(2)]  # fmt: skip
    for noun in nouns:
        assert text_of(noun._repr_html_()).strip()
        assert repr(noun).strip() and "object at 0x" not in repr(noun)


def test_the_record_prints_its_provenance(broken):
    assert "measured 2025-01-02 · a processor · 4 ranks · gloo" in repr(broken)
    assert "measured 2025-01-02 · a processor · 4 ranks · gloo" in text_of(broken._repr_html_())


def test_the_cost_card_says_what_is_measured_and_what_was_entered():
    text = text_of(lesson.CostOf(0.75, num_gpus=64, hours=72, price_per_gpu_hour=2.5)._repr_html_())
    assert "64 GPUs for 72 h at 2.50 an hour wastes 8,640" in text and "simulated" in text


def test_the_cost_is_said_once_and_the_hours_of_all_hours():
    text = text_of(lesson.CostOf(1.0)._repr_html_())
    assert "wastes 11,520: 4,608 of 4,608 GPU-hours (100 %)." in text
    assert repr(lesson.CostOf(0.4333)) == (
        "64 GPUs for 72 h: 1,997 of 4,608 GPU-hours (43.3 %), 4,992 at 2.50 an hour (simulated)"
    )


def test_a_check_says_in_its_badge_what_it_found():
    solved, missing = (text_of(CheckResult(findings)._repr_html_()) for findings in ([], ["too high"]))
    assert solved.strip().startswith("✓ solved") and "clear" not in solved
    assert missing.strip().startswith("✗ not yet") and "found" not in missing


def test_a_record_says_how_many_steps_each_rank_made(broken):
    fewer = msgspec.structs.replace(broken.run.ranks[0], steps=broken.run.ranks[0].steps[:-1])
    uneven = msgspec.structs.replace(broken.run, ranks=(fewer, *broken.run.ranks[1:]))
    steps = len(broken.run.ranks[1].steps)
    assert f"4 ranks, {steps} steps, " in repr(broken)
    for said in (repr(other := msgspec.structs.replace(broken, runs={"variant": uneven})), text_of(other._repr_html_())):
        assert f"4 ranks, {steps - 1} to {steps} steps a rank, " in said


def test_the_headline_is_the_first_that_found_something(broken, fixed):
    verdicts = Verdicts([detect(fixed), detect(broken)])
    assert verdicts.headline.status == "found"
    assert verdicts["rank-duplicates"].status == "clear"
    with pytest.raises(KeyError, match="rank-duplicates"):
        verdicts["nothing"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ranks wait", "Ranks wait."),
        ("run it again?", "Run it again?"),
        ("num_workers=0 for data in memory", "num_workers=0 for data in memory."),
        ("fsdp2-reshard sends more", "fsdp2-reshard sends more."),
        ("12.3% of the ceiling", "12.3% of the ceiling."),
        ("", ""),
    ],
)
def test_a_cause_becomes_a_sentence_and_a_name_of_code_keeps_its_letters(text, said):
    assert cards.sentence(text) == said


def test_a_record_says_its_settings_in_words_and_leaves_out_those_that_are_empty(broken):
    config = {"sweep_mb": "", "parts_alone": True, "compile": False, "lr": 0.1}
    said = cards.record_card(msgspec.structs.replace(broken, config=config))
    assert "parts alone yes, compile no, lr 0.1<" in said and "sweep" not in said
