"""A built deck, read back from its HTML."""

import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

VOID = {"img", "br", "meta", "link", "input", "hr"}


@dataclass
class Slide:
    """One slide: its title, the minutes of its notes, and what it says, notes apart."""

    title: str = ""
    minutes: float | None = None
    text: str = ""
    notes: str = ""
    html: str = ""

    @property
    def images(self) -> list[str]:
        return re.findall(r"<img [^>]*>", self.html)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.slides: list[Slide] = []
        self.path: list[str] = []
        self.in_notes = 0

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "section" and "id" in given:
            self.slides.append(Slide(minutes=float(given["data-minutes"]) if "data-minutes" in given else None))
        if tag == "aside":
            self.in_notes += 1
        if self.slides:
            self.slides[-1].html += self.get_starttag_text() or ""
        if tag not in VOID:
            self.path.append(tag)

    def handle_endtag(self, tag):
        if self.slides:
            self.slides[-1].html += f"</{tag}>"
        if tag == "aside":
            self.in_notes -= 1
        if tag in self.path:
            while self.path.pop() != tag:
                pass

    def handle_data(self, data):
        if not self.slides or "section" not in self.path:
            return
        slide = self.slides[-1]
        slide.html += data
        if self.in_notes:
            slide.notes += data
        else:
            slide.text += data
            if self.path[-1] in ("h1", "h2") or {"h1", "h2"} & set(self.path):
                slide.title += data


def slides_of(page: Path) -> list[Slide]:
    reader = _Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    for slide in reader.slides:
        slide.title = " ".join(unescape(slide.title).split())
        slide.text, slide.notes = " ".join(slide.text.split()), " ".join(slide.notes.split())
    return reader.slides
