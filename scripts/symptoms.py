"""Write the README's table of symptoms from what each lab says of itself. --check compares."""

import sys
from pathlib import Path

from labkit import labs

README = Path(__file__).resolve().parents[1] / "README.md"
HEAD = "| What you see | What it may be | Lab |\n|---|---|---|\n"


def table() -> str:
    """The rows of all labs, in the order of their numbers."""
    rows = [
        f"| {symptom.seen} | {symptom.cause} | {', '.join(f'`{word}`' for word in (spec.slug, *symptom.variants))} |\n"
        for spec in labs.specs()
        for symptom in spec.symptoms
    ]
    return HEAD + "".join(rows)


def with_table(readme: str) -> str:
    """The README with the table of today."""
    before, _, rest = readme.partition(HEAD)
    return before + table() + rest[rest.index("\n\n") + 1 :]


if __name__ == "__main__":
    written = README.read_text()
    if "--check" in sys.argv:
        sys.exit(with_table(written) != written)
    README.write_text(with_table(written))
