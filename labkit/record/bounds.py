"""How much a record may hold: types whose bounds are checked as a file is decoded, so that what is read can be shown.

They are far above what a program records. Without them an untrusted file of a few bytes could ask for more memory or time
than there is: a rank of a run of 10^18, a number of 10,000 digits, a name as long as a book.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from msgspec import Meta

MAX_RANKS = 100_000
"""A rank has five digits in the name of its file."""
MAX_RUN_BYTES = 8 * 2**30
"""Of the files of all ranks of one launch together."""
MAX_RECORD_JSON_BYTES = 64 * 2**20
MAX_LINE_BYTES = 64 * 2**20
MAX_LINES = 5_000_000
"""Of one rank."""
MAX_ROLES = 1000
MAX_ROLE = 100
"""Letters of a role, which names a folder."""
MAX_ARRAY_BYTES = 4 * 2**30
MAX_ARRAYS = 1000

Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Nanoseconds = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""So that the difference of two fits in 64 bits."""
Rank = Annotated[int, Meta(ge=0, lt=MAX_RANKS)]
Ranks = Annotated[int, Meta(ge=1, le=MAX_RANKS)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(max_length=1000)]
Text = Annotated[str, Meta(max_length=100_000)]
Value = Int | float | Text | bool

_Kept = TypeVar("_Kept")
Named = Annotated[dict[Name, _Kept], Meta(max_length=100_000)]
Numbers = Annotated[list[Int], Meta(max_length=10_000_000)]
Hashes = Annotated[list[int], Meta(max_length=10_000_000)]
"""Each of 64 bits without a sign, which a type of msgspec cannot say; the reader looks."""
Number = float | Literal["nan", "inf", "-inf"]
"""JSON has no NaN and no infinity: the probe writes words."""
