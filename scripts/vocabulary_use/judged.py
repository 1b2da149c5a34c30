"""What the package's uses of names make of the vocabulary: which are not in it, who writes a name, who asks for it."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from labkit.record.vocabulary import EVENTS, TABLES, known
from labkit.theory.strategies import STRATEGIES

from .uses import Use, package_uses

PACKAGE = Path(__file__).resolve().parents[2] / "labkit"

OPEN: dict[tuple[str, str], tuple[str, ...]] = {
    ("detect/crash/measures.py", "field"): (),  # the hashes of a state's event, whatever a training calls its states
    ("detect/sharding/measures.py", "count"): tuple(STRATEGIES),
    ("labs/zero_stages/programs.py", "count"): tuple(STRATEGIES),
    ("labs/input_pipeline/programs.py", "count"): ("prepared", "prepare_us", "store_bytes"),
    ("labs/input_pipeline/programs.py", "span"): ("inside the lock",),
    ("watch/loader.py", "samples"): ("train", "validation"),
    ("labs/start_here/compute.py", "span"): ("matmul-*", "copy", "add", "matvec", "linear-16"),
}
"""(file, sort) -> names, where the source alone does not tell which they are. Records of all labs are held to them too."""

BY_SCRIPTS_ALONE = {("fact", "local_steps")}
"""Names that no part of the package writes."""

FIELDS = {field for term in EVENTS.values() for shape in term.shapes for field in shape.fields}


@dataclass(frozen=True)
class Uses:
    """The uses of a package, against the vocabulary."""

    all: list[Use]

    @property
    def strange(self) -> list[str]:
        """Uses of names that the vocabulary does not have, and of names that the source does not tell."""
        return [str(use) for use in self.all if not (_is_open(use) if not use.name else _is_known(use))]

    @property
    def closed(self) -> list[tuple[str, str]]:
        """Entries of OPEN where the source tells all names by now."""
        return sorted(OPEN.keys() - {(use.file, use.sort) for use in self.all if not use.name})

    @property
    def idle(self) -> list[tuple[str, str]]:
        """Names of the vocabulary that nobody writes."""
        every = {(sort, name) for sort, table in TABLES.items() for name in table}
        return sorted(every - self.places(writes=True).keys() - BY_SCRIPTS_ALONE)

    def places(self, *, writes: bool) -> dict[tuple[str, str], set[str]]:
        """By (sort, name): the files that write it, or that ask for it."""
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for use in self.all:
            if use.writes == writes:
                for name in [use.name] if use.name else OPEN.get((use.file, use.sort), ()):
                    for sort in use.sort.split(" or "):
                        found[sort, name].add(use.file)
        return found


def package() -> Uses:
    """Of labkit itself."""
    return Uses(package_uses(PACKAGE))


def _is_open(use: Use) -> bool:
    return (use.file, use.sort) in OPEN


def _is_known(use: Use) -> bool:
    if use.sort != "field":
        return any(known(sort, use.name) for sort in use.sort.split(" or "))  # pyright: ignore[reportArgumentType]
    event, _, field = use.name.rpartition(".")
    if not event:
        return field in FIELDS
    return event in EVENTS and any(field in shape.fields or shape.more for shape in EVENTS[event].shapes)
