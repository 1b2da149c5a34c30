"""What a deck is written with, beside plain Markdown. Everything it shows of a run is read from a record.

lab-records SLUG      which records the deck is drawn from: YAML, a name each
lab-figure NAME       a figure of the lab, its provenance on it
lab-measures          measures of records side by side
lab-table TITLE       one of the lab's tables
lab-verdict DETECTOR  what a detector says of a record
lab-diff BEFORE AFTER the fix, as a difference of two sources
notes MINUTES         speaker notes, and how long the slide takes
expects               in notes: an answer to expect, and what to say to it
expected LESSON       in notes: the answers that the lesson expects too, out of data/guesses
{measure}`record.measure` in a line of text; {measure}`a.x / b.x` is a ratio
"""

from __future__ import annotations

from sphinx.application import Sphinx

from . import provenance
from .from_records import LabFigure, LabMeasures, LabRecords, LabTable, LabVerdict
from .notes import ExpectedIn, Expects, Notes
from .source import LabDiff


def setup(app: Sphinx) -> None:
    for name, directive in {
        "lab-records": LabRecords,
        "lab-figure": LabFigure,
        "lab-measures": LabMeasures,
        "lab-table": LabTable,
        "lab-verdict": LabVerdict,
        "lab-diff": LabDiff,
        "notes": Notes,
        "expects": Expects,
        "expected": ExpectedIn,
    }.items():
        app.add_directive(name, directive)
    provenance.setup(app)
