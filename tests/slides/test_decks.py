"""Every deck that there is: it builds, keeps to the frame, and shows nothing that a presenter would stumble over."""

import re

import build_decks
import pytest
from lessons_without_a_lab import WITHOUT_A_LAB
from playwright.sync_api import expect
from slides_of_a_deck import slides_of

from labkit import labs

DECKS = build_decks.deck_names()
LABS = {f"{spec.number:02d}_{spec.slug.replace('-', '_')}": spec for spec in labs.specs()}
OF_LABS = [name for name in DECKS if name in LABS]
OF_LESSONS = [name for name in DECKS if name != "opening"]
RECAP = ["Symptom", "Check", "Cause", "Fix", "Price"]

pytestmark = [
    pytest.mark.ranks,
    # both ask Sphinx for what its version 11 will no longer have
    pytest.mark.filterwarnings("ignore:.*(sphinx_revealjs|myst_parser).*:PendingDeprecationWarning"),
    # playwright leaves its event loop's socket to the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def titles(slides) -> list[str]:
    return [slide.title for slide in slides]


def test_each_lesson_has_a_deck_and_each_deck_a_lesson():
    assert set(DECKS) == {"opening", *LABS, *WITHOUT_A_LAB}
    assert DECKS[0] == "opening"


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_has_eight_to_fifteen_slides_with_titles_of_their_own(built, name):
    found = titles(slides_of(built(name)))
    assert 8 <= len(found) <= 15
    assert all(found) and len(set(found)) == len(found), found


@pytest.mark.parametrize("name", DECKS)
def test_every_slide_has_notes_and_minutes_for_the_clock(built, name):
    slides = slides_of(built(name))
    assert [slide.title for slide in slides if not slide.minutes or len(slide.notes) < 40] == []
    assert 10 <= sum(slide.minutes for slide in slides) <= 40


@pytest.mark.parametrize("name", OF_LABS)
def test_the_title_slide_asks_the_question_of_the_lab(built, name):
    spec, first = LABS[name], slides_of(built(name))[0]
    assert spec.question in first.text
    assert f"Lab {spec.number:02d}" in first.text and f"{spec.minutes} minutes" in first.text


@pytest.mark.parametrize("name", DECKS)
def test_the_room_guesses_before_it_sees_and_wrong_answers_are_expected(built, name):
    slides = slides_of(built(name))
    guess = next(slide for slide in slides if slide.title == "Your guess")
    assert "<blockquote" in guess.html and "?" in guess.text
    assert guess.notes.count("Expect:") >= 2
    if name in OF_LESSONS:
        assert titles(slides).index("Your guess") in (2, 3)


@pytest.mark.parametrize("name", OF_LESSONS)
def test_a_deck_ends_with_the_fix_the_notebook_and_the_recap(built, name):
    slides = slides_of(built(name))
    assert "The fix" in titles(slides)
    assert titles(slides)[-2:] == ["Your turn", "Recap"]
    assert f"notebooks/{name}.ipynb" in slides[-2].text
    assert re.findall(r"<strong>(\w+)</strong>", slides[-1].html.partition("<aside")[0]) == RECAP


@pytest.mark.parametrize("name", DECKS)
def test_figures_are_drawn_from_records_and_say_so(built, name):
    page = built(name)
    images = [image for slide in slides_of(page) for image in slide.images]
    assert len(images) >= (1 if name == "opening" else 3)
    for image in images:
        assert re.search(r'src="_figures/[\w-]+\.png"', image), image
        assert re.search(r'alt="[^"]*(measured|recorded|simulated) \d{4}-\d\d-\d\d', image), image
    drawn = {re.search(r'src="([^"]+)"', image)[1] for image in images}
    assert {f"_figures/{path.name}" for path in (page.parent / "_figures").iterdir()} == drawn


@pytest.mark.parametrize("name", DECKS)
def test_numbers_in_text_carry_their_provenance(built, name):
    for slide in slides_of(built(name)):
        if 'class="measured"' in slide.html.partition("<aside")[0]:
            assert re.search(r"(measured|recorded|simulated) \d{4}-\d\d-\d\d", slide.text) or slide.images, slide.title


@pytest.mark.parametrize("name", DECKS)
def test_links_lead_somewhere(built, name):
    assert build_decks.broken_links(built(name).parent) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", DECKS)
def test_no_slide_is_cut_off_or_too_small_and_no_request_leaves_the_machine(built, browser, name):
    assert build_decks.look_at(browser, built(name)) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["02_mfu"])
def test_a_pdf_has_a_page_a_slide(built, browser, name, tmp_path):
    page = built(name)
    build_decks.write_pdf(browser, page, tmp_path / "deck.pdf")
    pdf = (tmp_path / "deck.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == len(slides_of(page))


@pytest.mark.browser
@pytest.mark.parametrize("name", ["02_mfu"])
def test_the_presenters_view_shows_notes_and_the_pace(built, browser, name):
    context = browser.new_context(viewport=build_decks.SIZE)
    page = context.new_page()
    page.goto(built(name).as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    with context.expect_page() as opened:
        page.keyboard.press("s")
    presenter = opened.value
    presenter.wait_for_function("document.querySelector('.speaker-controls-notes .value')?.innerText.includes('minute')")
    page.keyboard.press("ArrowRight")
    ask = "text => document.querySelector('.speaker-controls-notes .value').innerText.includes(text)"
    presenter.wait_for_function(ask, arg="is that good?")
    pacing = presenter.locator(".pacing")
    expect(pacing).to_be_visible()
    expect(pacing.locator(".hours-value")).to_have_text("00")
    expect(pacing.locator(".minutes-value"), "two minutes for this slide").to_have_text(re.compile("^:?0[12]$"))
    context.close()
