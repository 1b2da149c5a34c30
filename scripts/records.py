"""Write docs/records.md and the table of docs/your-own-script.md, from the vocabulary and the package's own source."""

from pathlib import Path

from vocabulary_use.judged import BY_SCRIPTS_ALONE, Uses, package
from vocabulary_use.questions import HEAD, table

from labkit.record.vocabulary import EVENTS, TABLES, EventTerm, SpanTerm, Term

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT, OWN_SCRIPT = ROOT / "docs" / "records.md", ROOT / "docs" / "your-own-script.md"

INTRODUCTION = """# What can be recorded

This page is made by `scripts/records.py` from `labkit/record/vocabulary/`, which names each thing once, and from the source
of the package, which tells who writes it and who asks for it. A star stands for the rest of a name. Other names are your
own: they are kept, and no question asks for them.
"""

HEADINGS = {
    "fact": ("Facts", "`probe.declare(name=value)`, before the first step"),
    "count": ("Counts", "`probe.count(name, amount)`, in a step; they add up"),
    "scalar": ("Scalars", "`probe.scalar(name, value)`, in a step"),
    "series": ("Series", "`probe.series(name, values)`, in a step: several whole numbers, in order"),
    "span": ("Spans", "`with probe.span(name, lane):`, in a step. Most questions ask for a lane, whatever the name"),
    "event": ("Events", "`probe.event(name, field=value)`, at any time"),
    "samples": (
        "Samples",
        "`probe.batches(loader, epoch=epoch, name=name)`, `probe.samples(name, batch, ids)`, `probe.seen(…)`",
    ),
    "digest": ("Digests", "`probe.digest(name, tensors)`, at any time"),
    "array": ("Arrays", "`probe.array(name, values)`, kept of rank 0"),
}


def document(uses: Uses) -> str:
    """The whole page."""
    written, asked = uses.places(writes=True), uses.places(writes=False)
    parts = [INTRODUCTION]
    for sort, terms in TABLES.items():
        title, how = HEADINGS[sort]
        rows = ["| name | value | meaning | written by | asked for by |", "|---|---|---|---|---|"]
        for name, term in terms.items():
            key = (sort, name)
            writers = "your script" if key in BY_SCRIPTS_ALONE else _said(written.get(key, set()))
            rows.append(f"| `{name}` | {_value(term)} | {term.means} | {writers} | {_said(asked.get(key, set()))} |")
        parts.append(f"## {title}\n\n{how}.\n\n" + "\n".join(rows) + "\n")
    return "\n".join([*parts, _fields()])


def _fields() -> str:
    rows = ["| event | field | value | meaning |", "|---|---|---|---|"]
    for event, term in EVENTS.items():
        for shape in term.shapes:
            for name, field in shape.fields.items():
                needed = "" if name in shape.has else ", may be missing"
                rows.append(f"| `{event}` | `{name}` | {_value(field)}{needed} | {field.means} |")
            if shape.more:
                rows.append(f"| `{event}` | | {shape.more} | |")
    return "## Fields of events\n\n" + "\n".join(rows) + "\n"


def _value(term: Term | EventTerm) -> str:
    if isinstance(term, EventTerm):
        return "its fields"
    lanes = f", on the lane {' or '.join(term.lanes)}" if isinstance(term, SpanTerm) else ""
    return term.kind.words + (f" ({term.unit})" if term.unit else "") + lanes


def _said(files: set[str]) -> str:
    """Parts of the package, as their folders are called."""
    parts = {"/".join(file.removesuffix(".py").split("/")[:2]) for file in files}
    return ", ".join(f"`{part}`" for part in sorted(parts)) or "—"


def own_script(text: str) -> str:
    """The page of one's own script with the table as it is to be."""
    before, rest = text.split(HEAD)
    return before + table() + "\n\n" + rest.split("\n\n", 1)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(document(package()), encoding="utf-8")
    OWN_SCRIPT.write_text(own_script(OWN_SCRIPT.read_text(encoding="utf-8")), encoding="utf-8")
