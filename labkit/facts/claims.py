"""The claims of practitioners and what labkit finds of them, as data/claims.toml holds them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..errors import RecordError
from ..record.files import MIB, read_regular
from .shipped import data_folder

VERDICTS = ("holds", "conditional", "wrong")


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        id: letter of the article and number.
        claim: in our words.
        verdict: one of VERDICTS.
        condition: when it holds, or what is true instead.
        shows: the measure or calculation that decides.
        lab: slug of the lab that shows it, or "later: " and the slug of one to come.
    """

    id: str
    claim: str
    verdict: str
    condition: str
    shows: str
    lab: str


def claims(path: Path | None = None) -> tuple[Claim, ...]:
    """All claims, in the order of the file.

    Raises:
        RecordError: the file cannot be read, or an entry lacks a field or has an unknown verdict.
    """
    path = path or data_folder() / "claims.toml"
    try:
        entries = tomllib.loads(read_regular(path, MIB).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecordError(f"{path}: {error}") from error
    found = []
    for name, entry in entries.items():
        try:
            claim = Claim(id=name, **entry)
        except TypeError as error:
            raise RecordError(f"{path}, [{name}]: {error}; an entry has claim, verdict, condition, shows, lab") from error
        if claim.verdict not in VERDICTS:
            raise RecordError(f"{path}, [{name}]: verdict {claim.verdict!r}; there are: {', '.join(VERDICTS)}")
        if claim.verdict != "holds" and not claim.condition:
            raise RecordError(f"{path}, [{name}]: a verdict of {claim.verdict} needs its condition")
        found.append(claim)
    return tuple(found)
