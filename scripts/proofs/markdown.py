"""Markdown, cut into the pieces that say one thing: a sentence, a row of a table, a formula, a heading."""

import re
from collections.abc import Iterator

SPOKEN = ("notes", "expects")  # fences whose text people read or say; all other fences hold code and pictures
FENCE = re.compile(r"^\s*(`{3,}|:{3,})\s*(?:\{([\w-]+)\})?")
OPTION = re.compile(r"^:[a-z]+:\s")  # of a fence: formulas, and conditions ("that would be so if …"), which claim nothing
ATTRIBUTES = re.compile(r"^\{[.#][^}]*\}$")
RULE = re.compile(r"^\|?[\s:|-]+\|?$")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
SECTION = re.compile(r"^#+\s*(?:\d+ · )?")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<(https?://[^>]*)>")
TAG = re.compile(r"</?[a-z][^>]*>")
END = re.compile(r"[.!?][)\"”*_]*\s+(?=[\w\"“(*`$\[«{])")
NO_END = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|approx|no|No|Fig|fig)|\b[A-Z])\.\s+$")


def outside_fences(text: str) -> Iterator[str]:
    """The lines that are read or said: without code, pictures, comments and front matter."""
    text = re.sub(r"(?s)\A---\n.*?\n---\n|<!--.*?-->", "", text)
    open_fences: list[tuple[str, bool]] = []
    for line in text.splitlines():
        fence = FENCE.match(line)
        marker, kind = (fence[1], fence[2]) if fence else ("", "")
        inside = open_fences[-1] if open_fences else ("", True)
        if marker and inside[0] and marker[0] == inside[0][0] and not kind and len(marker) >= len(inside[0]):
            open_fences.pop()
            yield ""
        elif marker and inside[1]:
            open_fences.append((marker, kind in SPOKEN))
            yield ""
        elif inside[1]:
            yield line


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, rows of tables, headings: each with the words that stand in one flow."""
    block: list[str] = []
    for line in [*outside_fences(text), ""]:
        bare = line.strip()
        if OPTION.match(bare) and not block:
            continue
        alone = bare.startswith(("|", "#", "$$"))
        code = not block and line.startswith("    ")  # an indented block of code
        starts = alone or not bare or ITEM.match(line) or code
        if starts and block:
            yield " ".join(block)
            block = []
        if not bare or code or RULE.match(bare) or ATTRIBUTES.match(bare):
            continue
        if alone:
            yield SECTION.sub("", bare) if bare.startswith("#") else bare.strip("| ")
        else:
            block.append(ITEM.sub("", line).strip().removeprefix("> "))


def _sentences(block: str) -> Iterator[str]:
    begin = 0
    for end in END.finditer(block):
        if not NO_END.search(block[begin : end.end()]):
            yield block[begin : end.end()]
            begin = end.end()
    yield block[begin:]


def pieces(text: str) -> list[str]:
    """Every sentence, row, formula and heading of a Markdown text, in order, each in one line."""
    found = []
    for block in _blocks(text):
        plain = LINK.sub(lambda link: link[1] or link[2] or "", block)
        plain = TAG.sub("", plain)
        row = " | " in plain
        found += [" ".join(one.split()) for one in ([plain] if row else _sentences(plain))]
    return [one for one in found if one]
