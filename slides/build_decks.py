"""Build the decks: a folder that presents without a network, and a PDF of each deck.

    python slides/build_decks.py                      all decks, into build/slides
    python slides/build_decks.py 02_mfu 05_overlap    some
    python slides/build_decks.py --fresh              every run made again

Decks of the folder that are not asked for stay as they are.

Figures, tables and numbers are drawn from records: what is not kept from an earlier build is run now, minutes for all labs.
Ends with an error, and the slide's name, if anything on a slide is cut off, a picture is missing, a link leads nowhere, or
a request would leave the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SIZE = {"width": 1280, "height": 720}
LEAST_PX = 14.5  # of letters on a slide, the line of provenance among them
NOT_DECKS = {"README", "INSTRUCTOR"}


class DeckError(Exception):
    """Something that a presenter would stumble over; says which deck, and what."""


def deck_names() -> list[str]:
    """All decks, in the order of a workshop: the opening, then the labs."""
    names = [path.stem for path in HERE.glob("*.md") if path.stem not in NOT_DECKS]
    return sorted(names, key=lambda name: (name != "opening", name))


def build(names: Sequence[str], out: Path, *, records: Path, quick: bool = False, fresh: bool = False) -> list[Path]:
    """Build decks as HTML; others that an earlier build left in the folder stay there.

    Args:
        names: of decks, or all of them if empty.
        out: the folder.
        records: the folder in which records wait for the next build.
        quick: small runs, as tests make them.
        fresh: make runs again that are kept.

    Returns:
        the HTML files.

    Raises:
        DeckError: an unknown deck, or what Sphinx has to say of one.
    """
    names = list(dict.fromkeys(names)) or deck_names()
    unknown = [name for name in names if name not in deck_names()]
    if unknown:
        raise DeckError(f"no deck {unknown[0]!r}; there are: {', '.join(deck_names())}")
    build_from(HERE, names, out, records=records, quick=quick, fresh=fresh)
    write_index(out)
    return [out / f"{name}.html" for name in names]


def build_from(
    source: Path, names: Sequence[str], out: Path, *, records: Path, quick: bool = False, fresh: bool = False
) -> None:
    """Let Sphinx make the decks `names` of a folder; its settings are this folder's."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    _refuse_other_things(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    problems = io.StringIO()
    # Made beside its place, so that a build that fails leaves the one before as it was.
    with _alone_with(records), tempfile.TemporaryDirectory(prefix=".labkit-decks-", dir=out.parent) as aside:
        made, doctrees = Path(aside) / "decks", Path(aside) / "doctrees"
        wanted = {"include_patterns": [f"{name}.md" for name in names], "root_doc": names[0]}
        wanted |= {
            "decks_quick": quick,
            "decks_fresh": fresh,
            "decks_records": str(records.resolve()),
            "decks_out": str(made),
        }
        try:
            with patch_docutils(HERE), docutils_namespace():  # so that a process can build more than once
                app = Sphinx(source, HERE, made, doctrees, "revealjs", wanted, status=None, warning=problems, freshenv=True)
                app.build()
        except SphinxError as error:
            raise DeckError(f"{error}\n{problems.getvalue()}".strip()) from None
        said = re.sub(r"\x1b\[[0-9;]*m", "", problems.getvalue()).strip()
        if said:
            raise DeckError(said)
        for leftover in ("_sources", ".buildinfo", "objects.inv", "searchindex.js", "search.html", "genindex.html"):
            path = made / leftover
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if out.exists():
            _keep_other_decks(out, made)
            shutil.rmtree(out)
        made.rename(out)


@contextlib.contextmanager
def _alone_with(records: Path) -> Iterator[None]:
    """Keep other builds from these records meanwhile: two would take each other's runs for those of a build that died.

    The system lets go of the lock when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout

    records.mkdir(parents=True, exist_ok=True)
    lock = FileLock(records / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another build uses the records in {records}; this one goes on when that one has ended", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _keep_other_decks(earlier: Path, made: Path) -> None:
    """Take decks over from the build before, with their figures and PDFs, that were not asked for in this one."""
    (made / "_figures").mkdir(exist_ok=True)
    for name in deck_names():
        if (earlier / f"{name}.html").is_file() and not (made / f"{name}.html").exists():
            parts = [f"{name}.html", f"pdf/{name}.pdf"]
            parts += [str(path.relative_to(earlier)) for path in (earlier / "_figures").glob(f"{name}-*.png")]
            for part in parts:
                if (earlier / part).is_file():
                    (made / part).parent.mkdir(exist_ok=True)
                    shutil.copyfile(earlier / part, made / part)


def _refuse_other_things(out: Path) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "_static" / "deck.css").is_file())):
        raise DeckError(f"{out} holds other things than decks; give --out a new folder")


def write_index(out: Path) -> None:
    """Write the page that a presenter opens first: the decks and PDFs that the folder holds."""
    items = []
    for name in (name for name in deck_names() if (out / f"{name}.html").is_file()):
        number = re.sub(r"\D.*", "", name) or "–"
        pdf = f' · <a href="pdf/{name}.pdf">PDF</a>' if (out / "pdf" / f"{name}.pdf").is_file() else ""
        items.append(f'<li>{number} <a href="{name}.html">{html.escape(title_of(out / f"{name}.html"))}</a>{pdf}</li>')
    listed = "\n".join(items)
    page = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>labkit: the decks</title>
<style>
body {{ font: 20px/1.6 sans-serif; max-width: 46em; margin: 3em auto }}
ul {{ list-style: none; padding: 0 }}
a {{ color: #0072b2 }}
</style>
<h1>labkit: the decks</h1>
<ul>
{listed}
</ul>
<p>In a deck: arrow keys turn the pages, <b>S</b> opens the presenter's view (notes, clock, next slide), <b>F</b> fills the
screen, <b>O</b> shows all slides, <b>B</b> darkens the screen.</p>
</html>
"""
    (out / "index.html").write_text(page, encoding="utf-8")


def title_of(page: Path) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page.read_text(encoding="utf-8"), re.S)
    return html.unescape(re.sub(r"<.*?>", "", found.group(1))).strip() if found else page.stem


# ---- What a presenter would stumble over


@dataclass
class _Links(HTMLParser):
    """What a page refers to, and the places that it can be referred to by."""

    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src", "data-background-image") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.places.add(value)


def broken_links(out: Path) -> list[str]:
    """What pages of a built folder refer to and is not there. PDFs count as there: they are made last."""
    pages = {}
    for path in sorted(out.glob("*.html")):
        pages[path.name] = _Links()
        pages[path.name].feed(path.read_text(encoding="utf-8"))
    complaints = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (parts.path.startswith("pdf/") and parts.path.endswith(".pdf")):
                continue
            target = unquote(parts.path) or name
            if not (out / target).is_file():
                complaints.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and parts.fragment.lstrip("/") not in pages[target].places:
                complaints.append(f"{name}: {link} names a place that {target} does not have")
    return complaints


def chromium() -> str | None:
    """Where Chromium is: CHROMIUM, or on the path."""
    known = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next((found for name in known if (found := shutil.which(name))), None)


def _no_chromium(path: str | None) -> str:
    where = f" at {path}, which CHROMIUM names" if path else ""
    return (
        f"the PDFs and the look at every slide want Chromium, and there is none{where}: apt-get install chromium, or set "
        "CHROMIUM to its path; or --no-pdf"
    )


@contextlib.contextmanager
def browser() -> Iterator:
    """A browser of the decks' own; it ends with the block.

    Raises:
        DeckError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = chromium()
    if path is None or shutil.which(path) is None:
        raise DeckError(_no_chromium(path))
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--allow-file-access-from-files"]
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=path, args=flags)
        try:
            yield running
        finally:
            running.close()


def look_at(running, deck: Path, pictures: Path | None = None) -> list[str]:
    """Walk through a deck as a presenter does, and say what is wrong with its slides.

    Args:
        running: a browser.
        deck: the HTML file.
        pictures: a folder for a PNG of each slide.
    """
    page = running.new_page(viewport=SIZE)
    look = (HERE / "look_at_slide.js").read_text(encoding="utf-8")
    outside, complaints = [], []
    page.on(
        "request",
        lambda request: outside.append(request.url) if urlsplit(request.url).scheme not in ("file", "data") else None,
    )
    page.on("pageerror", lambda error: complaints.append(f"{deck.stem}: script error: {error}"))
    page.goto(deck.resolve().as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    for number in range(1, 100):
        page.wait_for_function("[...Reveal.getCurrentSlide().querySelectorAll('img')].every(image => image.complete)")
        seen = page.evaluate(look, {**SIZE, "least": LEAST_PX})
        complaints += [f"{deck.stem}, slide {number} ({seen['title']}): {said}" for said in seen["said"]]
        if pictures is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=pictures / f"{deck.stem}-{number:02d}.png")
        if seen["last"]:
            break
        page.evaluate("Reveal.next()")
    page.close()
    return complaints + [f"{deck.stem}: asks the network for {url}" for url in outside]


def write_pdf(running, deck: Path, pdf: Path) -> None:
    """Print a deck, a slide a page."""
    pdf.parent.mkdir(parents=True, exist_ok=True)
    page = running.new_page(viewport=SIZE)
    page.goto(f"{deck.resolve().as_uri()}?view=print")
    page.wait_for_function("window.Reveal && Reveal.isReady() && document.querySelectorAll('.pdf-page').length > 0")
    page.wait_for_function("[...document.images].every(image => image.complete)")
    page.pdf(path=pdf, prefer_css_page_size=True, print_background=True)
    page.close()


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="build_decks.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("decks", nargs="*", metavar="DECK", help="names of decks; all if none is given")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: build/slides, of a quick build build/slides-quick")
    parser.add_argument(
        "--records", type=Path, default=ROOT / "build" / "slide-records", metavar="DIR", help="where records wait"
    )
    parser.add_argument("--fresh", action="store_true", help="make every run again")
    parser.add_argument("--quick", action="store_true", help="small runs, to try a deck: the numbers are of no use")
    parser.add_argument("--no-pdf", action="store_true", help="HTML alone, not looked at: needs no Chromium")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="a PNG of each slide as well")
    wanted = parser.parse_args(given)
    wanted.out = wanted.out or ROOT / "build" / ("slides-quick" if wanted.quick else "slides")
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """What `make slides` runs. *Called on* the parent."""
    wanted = _arguments(arguments)
    try:
        if not wanted.no_pdf and shutil.which(chromium() or "") is None:
            raise DeckError(_no_chromium(chromium()))  # before minutes of runs
        decks = build(wanted.decks, wanted.out, records=wanted.records, quick=wanted.quick, fresh=wanted.fresh)
        complaints = broken_links(wanted.out)
        if not wanted.no_pdf:
            with browser() as running:
                for deck in decks:
                    complaints += look_at(running, deck, wanted.pictures)
                    write_pdf(running, deck, wanted.out / "pdf" / f"{deck.stem}.pdf")
            write_index(wanted.out)
        if complaints:
            raise DeckError("\n".join(complaints))
    except DeckError as error:
        print(f"decks: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        print(f"decks: {error.strerror or error}{where}; give another folder with --out or --records", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("decks: interrupted; runs that were finished wait for the next build", file=sys.stderr)
        return 130
    said = "" if wanted.no_pdf else f"; PDFs in {wanted.out / 'pdf'}"
    count = f"{len(decks)} deck{'s' * (len(decks) != 1)}"
    print(f"{count} built: open {wanted.out / 'index.html'} in a browser{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
