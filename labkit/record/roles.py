"""What a run of a record is there for. A record holds its runs by role; each role has a label that a person reads."""

from __future__ import annotations

from enum import StrEnum

from ..words import plural


class Role(StrEnum):
    """A role, as records spell it. A record may hold others too: those of a script, or a lab's strategies by name."""

    label: str
    """What a person reads; `{ranks}` stands for how many ranks there are."""

    def __new__(cls, value: str, label: str) -> Role:
        role = str.__new__(cls, value)
        role._value_ = value
        role.label = label
        return role

    VARIANT = "variant", "{ranks}"

    # the same training in another way, to compare with
    SINGLE = "single", "one process, to compare with"
    REFERENCE = "reference", "the reference, to compare with"
    SYNC = "sync", "synchronous ranks, to compare with"
    UNINTERRUPTED = "uninterrupted", "the run without a crash, to compare with"
    TUNED = "tuned", "the tuned end, to compare with"
    DUMMY = "dummy", "one ready batch again and again, to compare with"
    ALONE = "alone", "one rank alone, to compare with"
    INLINE = "inline", "the loader without workers, to compare with"
    FAST = "fast", "every strategy on the fast link, to compare with"

    # the same again, and what came before
    REPEAT = "repeat", "a repeat of {ranks}"
    BEFORE = "before", "the launch that stops"

    # parts of the machine
    CEILING = "ceiling", "matrix products, for the ceiling"
    LINK = "link", "the link of {ranks}"
    LAUNCH = "launch", "a launch of {ranks}"
    COMPUTE = "compute", "products and copies"
    STORAGE = "storage", "storage"

    @classmethod
    def of(cls, role: str) -> Role | None:
        """The role that a record's word spells, numbered ("repeat-2") or not; None for a word of somebody else's."""
        word, _, number = role.rpartition("-")
        known = cls.__members__.values()
        return next((each for each in known if role == each or (number.isdecimal() and word == each)), None)

    def numbered(self, number: int) -> str:
        """One of several runs in this role, as records spell it."""
        return f"{self.value}-{number}"


def label_of(role: str, ranks: int) -> str:
    """What a run is there for, in words: "4 ranks", "the link of 2 ranks", "one process, to compare with".

    Args:
        role: as the record spells it.
        ranks: how many the run has.
    """
    known = Role.of(role)
    return f"{role}, to compare with" if known is None else known.label.format(ranks=plural(ranks, "rank"))
