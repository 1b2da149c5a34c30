"""What is wrong with a deck is an error of the build that names the place, what was given and what there is."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import build_decks
import pytest
from decks.fitting import LEAST_PX, SLIDE_PX, fit
from decks.records import Records, key_of
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from slides_of_a_deck import slides_of

import labkit.facade
from labkit.errors import UnknownName
from labkit.record import store
from labkit.view.picture import Picture

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.filterwarnings("ignore:.*(sphinx_revealjs|myst_parser).*:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

RECORDS = """```{lab-records} duplicate-data
broken: {ranks: 2, num_samples: 64, epochs: 1}
```
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


@pytest.fixture
def deck(tmp_path, kept):
    """Builds a deck of the text given; returns its HTML file."""

    def made(text: str, records: str = RECORDS) -> Path:
        source = tmp_path / "source"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        (source / "one.md").write_text(f"{records}\n# One\n\n## Slide\n\n{text}\n")
        build_decks.build_from(source, ["one"], tmp_path / "out", records=kept)
        (tmp_path / "out" / "index.html").write_text("")
        return tmp_path / "out" / "one.html"

    return made


def refusal(deck, text: str, records: str = RECORDS) -> str:
    with pytest.raises(build_decks.DeckError) as caught:
        deck(text, records)
    assert "one.md:" in str(caught.value), "the place is named"
    return str(caught.value)


WRONG = {
    "no such figure": ("```{lab-figure} who-read-wat\n```", ["who-read-wat", "who-read-what", "coverage"]),
    "no such choice": ("```{lab-figure} loss\n:choices: {colour: red}\n```", ["colour"]),
    "no such record": ("```{lab-figure} loss\n:records: brokn\n```", ["brokn", "broken"]),
    "a figure without a name": ("```{lab-figure}\n```", ["lab-figure wants a name"]),
    "no such measure": ("{measure}`broken.coverag`", ["coverag", "coverage"]),
    "a number without a record": ("{measure}`coverage`", ["record.measure", "coverage"]),
    "a ratio of words": ("{measure}`broken.key / broken.coverage`", ["measure"]),
    "no such measure in a table": ("```{lab-measures}\n:measures: coverag\n```", ["coverag", "coverage"]),
    "no such detector": ("```{lab-verdict} duplicates\n```", ["duplicates", "rank-duplicates"]),
    "no such evidence": ("```{lab-verdict} rank-duplicates\n:evidence: size\n```", ["size"]),
    "no such table": ("```{lab-table} Anything\n```", ["Anything"]),
    "no such variant": ("```{lab-diff} broken fixd\n```", ["fixd", "fixed"]),
    "no such method": ("```{lab-diff} broken fixed\n:of: sav\n```", ["no method 'sav'"]),
    "a diff of one": ("```{lab-diff} broken\n```", ["two variants"]),
    "notes without minutes": ("```{notes}\nSay it.\n```", ["notes wants a name"]),
    "notes of an hour": ("```{notes} 60\nSay it.\n```", ["at most 30", "60"]),
    "an answer and no reply": ("```{notes} 1\n:::{expects} Seven\n:::\n```", ["Seven", "what to say"]),
    "a broken formula": (r"$a_b_c$", ["a_b_c", "DoubleSubscripts"]),
    "a picture that is not there": ("![a picture](nothing.png)", ["nothing.png"]),
    "a block that is unknown": ("```{lab-figre} loss\n```", ["lab-figre"]),
}


WRONG_RECORDS = {
    "none": ("", ["lab-records"]),
    "lab": ("```{lab-records} duplicate-dta\nbroken: {}\n```\n", ["duplicate-dta", "duplicate-data"]),
    "setting": ("```{lab-records} duplicate-data\nbroken: {rank: 2}\n```\n", ["rank"]),
    "list": ("```{lab-records} duplicate-data\n- broken\n```\n", ["mapping"]),
    "YAML": ("```{lab-records} duplicate-data\nbroken: {\n```\n", ["YAML"]),
    "recording": ("```{lab-records} duplicate-data\nthere: {recording: h900}\n```\n", ["h900"]),
}


@pytest.fixture(scope="module")
def said_of(kept, tmp_path_factory):
    """What one build says of decks that are each wrong in one way: name -> the lines that name its file and place."""
    source, out = tmp_path_factory.mktemp("wrong"), tmp_path_factory.mktemp("out") / "decks"
    decks = {name: (RECORDS, text) for name, (text, _) in WRONG.items()}
    decks |= {name: (records, "```{lab-figure} loss\n```") for name, (records, _) in WRONG_RECORDS.items()}
    files = {name: f"wrong{number}" for number, name in enumerate(decks)}
    for name, (records, text) in decks.items():
        (source / f"{files[name]}.md").write_text(f"{records}\n# One\n\n## Slide\n\n{text}\n")
    with pytest.raises(build_decks.DeckError) as caught:
        build_decks.build_from(source, list(files.values()), out, records=kept)
    lines = str(caught.value).splitlines()
    return lambda name: "\n".join(line for line in lines if f"{files[name]}.md:" in line)


@pytest.mark.parametrize(("name", "named"), [(name, named) for name, (_, named) in WRONG.items()], ids=WRONG)
def test_what_is_wrong_is_named(said_of, name, named):
    said = said_of(name)
    assert said and all(word in said for word in named), said


def test_a_link_to_no_file_is_named(deck):
    assert "nothing.md" in refusal(deck, "[the next](nothing.md)")


@pytest.mark.parametrize(("name", "named"), [(n, named) for n, (_, named) in WRONG_RECORDS.items()], ids=WRONG_RECORDS)
def test_records_that_cannot_be_are_refused(said_of, name, named):
    said = said_of(name)
    assert said and all(word in said for word in named), said


def test_what_a_deck_shows_is_what_the_record_says(deck, kept):
    page = deck(
        "It is {measure}`broken.coverage`, or {measure}`broken.coverage / broken.coverage` of it.\n\n"
        "```{lab-measures}\n:measures: unique_share_of_global_batch\n```\n\n```{lab-verdict} rank-duplicates\n```\n\n"
        "```{lab-diff} broken fixed\n```\n\n$a^2$\n\n```{notes} 1.5\n:::{expects} Four\nNo.\n:::\n```\n"
    )
    slide = slides_of(page)[1]
    record = store.read_record(next((kept / "duplicate-data").rglob("record.json")))
    measures = labkit.lab("duplicate-data").measures(record)
    assert f"It is {measures['coverage']}, or 1 of it." in slide.text
    assert str(measures["unique_share_of_global_batch"]) in slide.text
    assert "✗ found" in slide.text and "+ sampler" in slide.text.replace("DistributedSampler", "sampler")
    assert "<math" in slide.html and "Four" in slide.notes and slide.minutes == 1.5
    assert record.provenance.label() in slide.text


def test_a_diff_of_classes_is_cut_to_methods_and_one_too_long_to_read_is_refused(deck):
    nothing = "```{lab-records} crash-recovery\n```\n"
    slide = slides_of(deck("```{lab-diff} broken fixed\n:of: after_step save\n```", nothing))[1]
    assert "- class Nothing" in slide.text and "def save" in slide.text and "def resume" not in slide.text
    assert "  # " not in slide.text, "comments beside a line take its room"
    assert "too small to read" in refusal(deck, "```{lab-diff} broken fixed\n```", nothing)


def test_a_table_has_its_notes_below_it_and_its_provenance_at_the_foot(deck):
    compare = (
        "```{lab-records} zero-stages\ncompare: {ranks: 2, hosts: 1, only: ddp, layers: 1, hidden: 16, steps: 4}\n```\n"
    )
    slide = slides_of(deck("```{lab-table} Stages of ZeRO\n:columns: stage, fits\n```", compare))[1]
    assert "kept, peak: bytes a parameter" in slide.text and slide.html.count('class="provenance"') == 1


def test_a_figure_prints_its_provenance_itself_and_the_foot_does_not_repeat_it(deck):
    with_figure = slides_of(deck("It is {measure}`broken.coverage`.\n\n```{lab-figure} loss\n```\n"))[1]
    assert "2 ranks" in with_figure.images[0] and "provenance" not in with_figure.html


def test_labels_of_a_figure_grow_to_what_the_last_row_reads(kept, deck):
    deck("Nothing.")
    record = store.read_record(next((kept / "duplicate-data").rglob("record.json")))
    picture = labkit.lab("duplicate-data").figure("loss", record)
    before = min(text.get_fontsize() for text in picture.figure.findobj(Text) if text.get_text())
    fit(picture, width_px=1000, height_px=500, px_per_inch=100)
    sizes = [text.get_fontsize() for text in picture.figure.findobj(Text) if text.get_text()]
    assert before < LEAST_PX / 100 * 72 <= min(sizes) + 1e-9
    assert tuple(picture.figure.get_size_inches()) == (10.0, 5.0)


def test_what_an_axis_says_meets_nothing_beside_it(kept, deck):
    deck("Nothing.")
    record = store.read_record(next((kept / "duplicate-data").rglob("record.json")))
    picture = labkit.lab("duplicate-data").figure("who-read-what", record, record)
    said = picture.figure.axes[0].get_xlabel()
    fit(picture, width_px=1000, height_px=500)
    renderer = FigureCanvasAgg(picture.figure).get_renderer()
    left, right = (axis.xaxis.label.get_window_extent(renderer) for axis in picture.figure.axes)
    assert left.x1 < right.x0
    assert picture.figure.axes[0].get_xlabel().split() == [word for word in said.split() if word != "·"]


def test_each_line_of_a_label_that_is_too_long_breaks():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        axes.set_xlabel("updates so far: the first 40 of a great many that were made by all of the workers\nmean 3")
    fit(Picture(figure, ""), width_px=1000, height_px=500)
    first, second = (axes.xaxis.label.get_window_extent() for axes in (left, right))
    assert first.x1 < second.x0
    assert left.get_xlabel().count("\n") >= 2 and left.get_xlabel().endswith("\nmean 3")


def test_numbers_below_an_axis_keep_apart():
    figure = Figure(figsize=(10, 4))
    axes = figure.subplots(1, 3)
    axes[0].plot([0, 1_400_000], [0, 1])
    fit(Picture(figure, ""), width_px=1000, height_px=400)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in axes[0].get_xticklabels() if text.get_text()]
    assert len(boxes) > 1 and all(a.x1 < b.x0 for a, b in pairwise(boxes))


# ---- Records wait for the next build


@pytest.fixture
def counted(monkeypatch):
    """The runs that were made."""
    runs = []
    real = labkit.facade.Lab.run
    monkeypatch.setattr(labkit.facade.Lab, "run", lambda self, *a, **k: runs.append(k) or real(self, *a, **k))
    return runs


PLAN = {"broken": {"ranks": 2, "num_samples": 64, "epochs": 1, "quick": {"num_samples": 32}}}


def test_a_record_is_made_once_and_again_when_it_is_asked_for_otherwise(tmp_path, counted):
    for _ in range(2):
        Records("duplicate-data", PLAN, kept=tmp_path, quick=False, fresh=False)
    assert [run["num_samples"] for run in counted] == [64]
    Records("duplicate-data", PLAN, kept=tmp_path, quick=True, fresh=False)
    assert [run["num_samples"] for run in counted] == [64, 32]
    Records("duplicate-data", PLAN, kept=tmp_path, quick=False, fresh=True)
    assert [run["num_samples"] for run in counted] == [64, 32, 64]


def test_a_record_is_made_again_when_the_code_changed(monkeypatch):
    before = key_of({"variant": "broken"})
    assert key_of({"variant": "broken"}) == before
    monkeypatch.setattr("decks.records.package_digest", lambda: "other")
    assert key_of({"variant": "broken"}) != before


def test_a_build_that_was_interrupted_leaves_nothing_that_counts(tmp_path, counted):
    Records("duplicate-data", PLAN, kept=tmp_path, quick=True, fresh=False)
    next(tmp_path.rglob("record.json")).unlink()
    Records("duplicate-data", PLAN, kept=tmp_path, quick=True, fresh=False)
    assert len(counted) == 2


def test_a_kept_record_that_was_damaged_is_made_again(tmp_path, counted):
    plans = {"broken": {"ranks": 2, "num_samples": 64, "epochs": 1}}
    (record,) = Records("duplicate-data", plans, kept=tmp_path, quick=False, fresh=False).by_name.values()
    (record.folder / "record.json").write_text("{")
    (again,) = Records("duplicate-data", plans, kept=tmp_path, quick=False, fresh=False).by_name.values()
    assert len(counted) == 2 and store.read_record(again.folder).run.world_size == 2


def test_a_recording_that_is_shipped_is_taken_as_it_is(tmp_path, counted, monkeypatch):
    folder = tmp_path / "recordings" / "duplicate-data" / "on-a-gpu"
    labkit.lab("duplicate-data").run("broken", ranks=2, num_samples=32, epochs=1, record_dir=folder)
    monkeypatch.setattr("labkit.capture.data_folder", lambda: tmp_path)
    records = Records("duplicate-data", {"gpu": {"recording": "on-a-gpu"}}, kept=tmp_path, quick=False, fresh=False)
    assert records.record("gpu").folder == folder and len(counted) == 1
    with pytest.raises(UnknownName, match="on-a-gpu"):
        Records("duplicate-data", {"gpu": {"recording": "other"}}, kept=tmp_path, quick=False, fresh=False)


# ---- The command


def test_an_unknown_deck_is_refused_with_the_decks_there_are(tmp_path, capsys):
    assert build_decks.main(["02_mfo", "--out", str(tmp_path / "new"), "--no-pdf"]) == 1
    said = capsys.readouterr().err
    assert "02_mfo" in said and "02_mfu" in said


def test_a_folder_with_other_things_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years")
    assert build_decks.main(["02_mfu", "--out", str(tmp_path), "--no-pdf"]) == 1
    assert str(tmp_path) in capsys.readouterr().err and (tmp_path / "thesis.tex").read_text() == "years"


def test_without_a_browser_it_says_what_to_do_before_anything_runs(tmp_path, capsys, monkeypatch, counted):
    monkeypatch.setattr(build_decks, "chromium", lambda: None)
    assert build_decks.main(["02_mfu", "--out", str(tmp_path / "new")]) == 1
    assert "--no-pdf" in capsys.readouterr().err and counted == [] and not (tmp_path / "new").exists()


def test_a_browser_that_is_not_where_it_should_be_is_missed_before_anything_runs(tmp_path, capsys, monkeypatch, counted):
    monkeypatch.setenv("CHROMIUM", "/nowhere")
    assert build_decks.main(["02_mfu", "--out", str(tmp_path / "new")]) == 1
    assert "none at /nowhere, which CHROMIUM names" in capsys.readouterr().err and not counted


def test_a_place_that_cannot_be_written_and_an_interrupt_are_one_sentence(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    assert build_decks.main(["02_mfu", "--no-pdf", "--out", str(tmp_path / "file" / "below")]) == 1
    assert "give another folder with --out or --records" in capsys.readouterr().err

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(build_decks, "build", interrupted)
    assert build_decks.main(["02_mfu", "--no-pdf", "--out", str(tmp_path / "new")]) == 130
    assert capsys.readouterr().err.startswith("decks: interrupted; ")


def test_a_deck_that_is_named_twice_is_built_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(build_decks, "build_from", lambda source, names, out, **_: (asked.append(names), out.mkdir()))
    monkeypatch.setattr(build_decks, "write_index", lambda *_: None)
    assert len(build_decks.build(["02_mfu", "02_mfu"], tmp_path / "new", records=tmp_path)) == 1
    assert asked == [["02_mfu"]]


def test_the_command_builds_a_folder_to_carry(tmp_path, capsys):
    out = tmp_path / "carry"
    arguments = ["opening", "--out", str(out), "--records", str(tmp_path / "records"), "--quick", "--no-pdf"]
    assert build_decks.main(arguments) == 0
    assert "index.html" in capsys.readouterr().out
    index = (out / "index.html").read_text()
    assert "opening.html" in index and "pdf/" not in index
    assert "quick.css" in (out / "opening.html").read_text()
    assert {path.suffix for path in out.iterdir()} <= {".html", ""}
    assert build_decks.main(arguments) == 0, "a build takes the place of an earlier one"


def test_decks_that_are_not_asked_for_stay_with_their_figures_and_pdfs(tmp_path):
    out, records = tmp_path / "decks", tmp_path / "records"
    build_decks.build(["opening"], out, records=records, quick=True)
    other = out / "08_crash_recovery.html"
    other.write_text('<h1>Other</h1><img src="_figures/08_crash_recovery-x.png" alt="">')
    (out / "_figures" / "08_crash_recovery-x.png").write_bytes(b"png")
    (out / "pdf").mkdir()
    for name in ("08_crash_recovery", "opening"):
        (out / "pdf" / f"{name}.pdf").write_bytes(b"pdf")
    build_decks.build(["opening"], out, records=records, quick=True)
    index = (out / "index.html").read_text()
    assert "08_crash_recovery.html" in index and "08 <a" in index and "pdf/08_crash_recovery.pdf" in index
    assert "pdf/opening.pdf" not in index, "it is of the build before"
    assert build_decks.broken_links(out) == []


def test_a_quick_build_says_so_on_its_slides_and_has_a_folder_of_its_own():
    assert build_decks._arguments(["--quick"]).out != build_decks._arguments([]).out
    assert "quick build" in (build_decks.HERE / "_static" / "quick.css").read_text()


# ---- The look at every slide


@pytest.mark.browser
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n".join(f"- line {line}" for line in range(14)), "is cut off"),
        ("<p style='white-space:nowrap'>" + "a long line " * 20 + "</p>", "is cut off"),
        ("<p style='height:570px'></p>\n\n$$\\frac{a}{b}$$", "is cut off"),
        ("<img src='nothing.png' alt='' width='100' height='100'>", "nothing.png is missing"),
        ("<p style='font-size:9px'>small print</p>", "letters of 9px: small print"),
        ("<img src='http://127.0.0.1:9/x.png' alt=''>", "asks the network for http://127.0.0.1:9/x.png"),
        ("<script>throw new Error('oops')</script>", "script error: oops"),
        ("It is {measure}`broken.coverage`.\n\n" + "\n".join(f"- line {n}" for n in range(10)), "the line of provenance"),
    ],
    ids=["tall", "wide", "formula", "missing", "small", "network", "script", "provenance"],
)
def test_the_look_sees_what_is_wrong_with_a_slide(deck, browser, text, said):
    complaints = build_decks.look_at(browser, deck(text))
    assert any(said in complaint for complaint in complaints), complaints


@pytest.mark.browser
def test_a_deck_is_looked_at_and_printed_by_a_relative_path_too(deck, browser, tmp_path, monkeypatch):
    deck("A line.")
    monkeypatch.chdir(tmp_path)
    assert build_decks.look_at(browser, Path("out/one.html")) == []
    build_decks.write_pdf(browser, Path("out/one.html"), Path("one.pdf"))
    assert Path("one.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.browser
def test_the_look_has_nothing_to_say_of_a_sound_slide_and_takes_its_picture(deck, browser, tmp_path):
    assert build_decks.look_at(browser, deck("A line.\n\n```{lab-figure} loss\n:height: 400\n```\n"), tmp_path / "png") == []
    assert [path.name for path in sorted((tmp_path / "png").iterdir())] == ["one-01.png", "one-02.png"]


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text("<p id='here'><a href='#here'>1</a> <a href='#there'>2</a> <a href='b.html'>3</a></p>")
    said = build_decks.broken_links(tmp_path)
    assert len(said) == 2 and "#there" in said[0] and "b.html" in said[1]


def test_a_slide_has_one_size_where_it_is_made_styled_and_looked_at():
    style = (Path(build_decks.HERE) / "_static" / "deck.css").read_text()
    assert tuple(build_decks.SIZE.values()) == SLIDE_PX and f"height: {SLIDE_PX[1]}px" in style


EMULATED = """```{lab-records} overlap
one: {ranks: 2, hosts: 2, emulate_link: true, link: 1gbit, layers: 2, width: 16, batch: 16, steps: 3}
```
"""


def test_a_number_of_an_emulated_link_says_that_it_is_simulated_wherever_it_stands(deck):
    text = "A step: {measure}`one.step_time`, {measure}`one.step_time / one.compute_alone` times computing.\n\n"
    slide = slides_of(deck(text + "```{lab-measures}\n:measures: step_time, compute_alone\n```", EMULATED))[1].text
    assert len(re.findall(r"A step: [\d.]+ ms \(simulated\), [\d.]+ \(simulated\) times", slide)) == 1
    assert re.search(r"step time\s*[\d.]+ ms \(simulated\)\s*compute alone\s*[\d.]+ ms", slide)


def test_records_that_fail_are_told_once_and_not_by_all_that_would_show_them(deck):
    wrong = RECORDS.replace("ranks: 2", "ranks: many")
    text = "```{lab-figure} loss\n```\n\nOut come {measure}`broken.coverage`.\n\n```{lab-measures}\n```"
    said = refusal(deck, text, wrong)
    assert "many" in said and said.count("ERROR") == 1


HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_build_waits_for_another_one_that_uses_its_records(tmp_path, monkeypatch):
    """The other one is a process that holds their lock, until this one says that it waits."""
    records, told = tmp_path / "records", []
    records.mkdir()
    command = [sys.executable, "-c", HOLDER, str(records / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin and other.stdout and other.stdout.readline() == "held\n"

        def said(text, **_):
            told.append((text, other.poll() is None, (tmp_path / "out").exists()))
            if "another build" in text:
                other.stdin.write("\n")
                other.stdin.flush()

        monkeypatch.setattr(build_decks, "print", said, raising=False)
        arguments = ["opening", "--quick", "--no-pdf", "--out", str(tmp_path / "out"), "--records", str(records)]
        assert build_decks.main(arguments) == 0
    (waits, running, built), (done, *_) = told
    assert "another build uses the records" in waits and running and not built
    assert "1 deck built" in done and sorted(path.name for path in records.iterdir())[0] == ".lock"
