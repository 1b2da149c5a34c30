"""Write the README's tables of symptoms, one folded for each lab, from what the labs say of themselves. --check compares."""

import sys
from pathlib import Path

from labkit import labs
from labkit.labs.spec import LabSpec

README = Path(__file__).resolve().parents[1] / "README.md"
HEADING = "## What you see, and what it may be\n"
HEAD = "| What you see | What it may be | Lab |\n|---|---|---|\n"


def folded(spec: LabSpec) -> str:
    """The table of one lab, under a line that opens it."""
    rows = [
        f"| {symptom.seen} | {symptom.cause} | {', '.join(f'`{word}`' for word in (spec.slug, *symptom.variants))} |\n"
        for symptom in spec.symptoms
    ]
    summary = f"<details><summary>{spec.question} (lab {spec.number:02d})</summary>"
    return f"{summary}\n\n{HEAD}{''.join(rows)}\n</details>\n"


def with_table(readme: str) -> str:
    """The README with the tables of today, in the order of the labs' numbers."""
    before, _, rest = readme.partition(HEADING)
    after = rest[rest.index("\n## ") :]
    return before + HEADING + "\n" + "\n".join(folded(spec) for spec in labs.specs() if spec.symptoms) + after


if __name__ == "__main__":
    written = README.read_text()
    if "--check" in sys.argv:
        sys.exit(with_table(written) != written)
    README.write_text(with_table(written))
