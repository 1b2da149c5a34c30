"""The ledgers: a TOML file for each lesson and its deck, in which every claim stands with what proves it."""

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .claims import claims
from .kinds import Place, complaint
from .markdown import pieces

ROOT = Path(__file__).resolve().parents[2]
NO_LESSON = {"slides/README.md"}  # how a deck is written
PAGES = ("command-line", "many-machines", "your-own-script")  # of docs/: where the README sends its reader


@dataclass(frozen=True)
class Topic:
    """A lesson and its deck, which share a name and a ledger; or a text that stands alone."""

    name: str
    documents: tuple[Path, ...]
    root: Path = ROOT

    @property
    def ledger(self) -> Path:
        return self.root / "tests" / "meta" / "proofs" / f"{self.name}.toml"

    @cached_property
    def claims(self) -> list[str]:
        """What the documents claim, in order, each sentence once."""
        found = [piece for path in self.documents for piece in pieces(markdown_of(path)) if claims(piece)]
        return list(dict.fromkeys(found))

    @cached_property
    def place(self) -> Place:
        notebooks = [path for path in self.documents if path.suffix == ".ipynb"]
        text = "\n".join(path.read_text(encoding="utf-8") for path in self.documents)
        return Place(self.root, notebooks[0] if notebooks else None, text)

    def entries(self) -> list[dict]:
        """The ledger's entries: `text` and `proof`; none where there is no ledger yet."""
        if not self.ledger.exists():
            return []
        return tomllib.loads(self.ledger.read_text(encoding="utf-8")).get("sentence", [])

    def missing(self) -> list[str]:
        known = {entry["text"] for entry in self.entries()}
        return [text for text in self.claims if text not in known]

    def stale(self) -> list[str]:
        return [entry["text"] for entry in self.entries() if entry["text"] not in self.claims]

    def faults(self) -> list[str]:
        """All that is wrong with a ledger, a line each: claims without proof, proofs that do not hold, stale entries."""
        texts = [entry["text"] for entry in self.entries()]
        found = [f"nothing proves: {text}" for text in self.missing()]
        found += [f"no longer said: {text}" for text in self.stale()]
        found += [f"listed twice: {text}" for text in sorted({text for text in texts if texts.count(text) > 1})]
        for entry in self.entries():
            proofs = entry["proof"] or [""]
            wrong = [complaint(proof, entry["text"], self.place) for proof in proofs]
            found += [f"{problem}\n    of: {entry['text']}" for problem in wrong if problem]
        return found


def markdown_of(path: Path) -> str:
    """The Markdown of a text, or of a notebook's cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def topics(root: Path = ROOT) -> list[Topic]:
    """Every lesson with its deck and the answers that both expect, the other texts of slides/, the README and its pages."""
    shared = ("notebooks/*.ipynb", "slides/*.md", "data/guesses/*.md")
    paths = [*(path for pattern in shared for path in sorted(root.glob(pattern))), root / "README.md"]
    paths += [root / "docs" / f"{page}.md" for page in PAGES]
    paths = [path for path in paths if path.relative_to(root).as_posix() not in NO_LESSON]
    names = list(dict.fromkeys(path.stem for path in paths))
    return [Topic(name, tuple(path for path in paths if path.stem == name), root) for name in names]
