"""What is said of a kept run in one line, beside its record: so that a list of runs need not read and judge them all."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from ..errors import RecordError
from .bounds import Name
from .files import read_regular
from .safe_json import decoded

FILE = "verdict.json"
MOST_BYTES = 10_000


class KeptVerdict(msgspec.Struct, frozen=True):
    """The answer in a few words.

    Attributes:
        status: of the verdict that weighs most.
        said: the names of the questions that have it.
        labkit: the version that judged.
    """

    status: Name
    said: Name
    labkit: Name


_decoder = msgspec.json.Decoder(KeptVerdict)


def remember(folder: Path | None, verdict: KeptVerdict) -> None:
    """Keep a verdict in a record's folder; a folder that cannot be written to is left as it is."""
    if folder is None or not (folder / "record.json").is_file():
        return
    with contextlib.suppress(OSError):
        aside = folder / f"{FILE}.part"
        aside.write_bytes(msgspec.json.encode(verdict))
        aside.replace(folder / FILE)


def remembered(folder: Path, labkit: str) -> KeptVerdict | None:
    """What was kept of a record; None where nothing was, or another labkit judged it."""
    with contextlib.suppress(OSError, RecordError, msgspec.DecodeError):
        found = decoded(read_regular(folder / FILE, MOST_BYTES), _decoder)
        return found if found.labkit == labkit else None
    return None
