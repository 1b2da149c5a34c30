"""How busy other programs kept the machine while ranks ran: what a launcher saw, and whether it could matter. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

MATTERS, HEAVY = 0.1, 0.25
"""Of the cores that ranks wanted: shares that others took, from which on it is said, and from which on times say little."""


_Whole = Annotated[int, msgspec.Meta(ge=1, le=10**6)]
_Number = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""A record may be untrusted: what it says is within what can be shown."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What others took of the cores that the ranks of one launch could use. Numbers of cores, each a mean over time.

    Attributes:
        cores: that the launcher and its ranks may use.
        wanted: by the ranks: their number times the threads of each.
        before: that other programs used just before the launch.
        during: that other programs used while the ranks ran; what a hypervisor gave to other machines counts with them.
        own: that the ranks, their children and their launcher used meanwhile.
        seconds: over which `during` and `own` were looked at.
    """

    cores: _Whole
    wanted: _Whole
    before: _Number
    during: _Number
    own: _Number
    seconds: _Number

    @property
    def taken(self) -> float:
        """Cores that others used and the ranks wanted: none while enough are left for both."""
        return max(0.0, min(self.during, self.during + self.wanted - self.cores))

    @property
    def share(self) -> float:
        """Of the cores that the ranks could have had, what others took."""
        return min(1.0, self.taken / min(self.cores, self.wanted))

    @property
    def matters(self) -> bool:
        """Whether others took enough to be said with the result."""
        return self.share >= MATTERS

    @property
    def heavy(self) -> bool:
        """Whether others took so much that times show the machine's load as much as the program."""
        return self.share >= HEAVY

    @property
    def pressure(self) -> float:
        """How many runnable threads there are to a core, 1 or more: as many times one rank may be slower than another."""
        return max(1.0, (self.wanted + self.during) / self.cores)

    @property
    def said(self) -> str:
        """In words: "other programs used 1.8 of 2 cores"."""
        return f"other programs used {self.during:.1f} of {self.cores} core{'s' if self.cores != 1 else ''}"


def heaviest(loads: list[Load | None]) -> Load | None:
    """Of the launches of a record, the load of the one that others hindered most; None where none was looked at."""
    return max((load for load in loads if load is not None), key=lambda load: (load.share, load.during), default=None)
