"""What is asked of hosts and the links between them: checked, and said in one way."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError
from ..record.schema import said_rate
from ..words import plural

MAX_HOSTS = 64
MIN_RATE_BITS_PER_S, MAX_RATE_BITS_PER_S = 1e6, 400e9
MAX_LATENCY_MS = 10_000.0

_RATE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmg]?)bit(?:/s)?\s*", re.IGNORECASE)
_SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True, kw_only=True)
class Links:
    """Hosts of one machine, each with a link to all others.

    Attributes:
        hosts: how many network stacks.
        rate_bits_per_s: of each direction of each host's link; 0 for no limit.
        latency_s: added to each packet on its way out of a host.
        emulate: add the time to each collective, and make no network stacks.
        store_bits_per_s: rate of the link of one host more, which holds no rank but the data; 0 for no such host.
    """

    hosts: int
    rate_bits_per_s: float = 0.0
    latency_s: float = 0.0
    emulate: bool = False
    store_bits_per_s: float = 0.0


def rate_of(words: str | float) -> float:
    """Bits per second from words as `tc` takes them ("400mbit", "2.5gbit"), or from a number of bits per second.

    Raises:
        UsageError: not a rate, or one out of range.
    """
    match = _RATE.fullmatch(words) if isinstance(words, str) else None
    if match:
        rate = float(match[1]) * _SIZES[match[2].lower()]
    elif isinstance(words, (int, float)) and not isinstance(words, bool):
        rate = float(words)
    else:
        raise UsageError(f"link must be a rate in bits, as in 400mbit or 2.5gbit; given {words!r}")
    if not MIN_RATE_BITS_PER_S <= rate <= MAX_RATE_BITS_PER_S:
        low, high = said_rate(MIN_RATE_BITS_PER_S), said_rate(MAX_RATE_BITS_PER_S)
        raise UsageError(f"link must be from {low} to {high}; given {words!r}")
    return rate


def links(
    ranks: int, hosts: int | None, link: str | float | None, latency_ms: float | None = None, emulate: bool = False
) -> Links | None:
    """Check what was asked for; None where no hosts are.

    Args:
        ranks: processes to place on the hosts; none may stay empty.
        hosts: network stacks; None and 1 for no network at all.
        link: the rate of each host's link, as `rate_of` takes it; None or "" for no limit.
        latency_ms: of each packet on its way out of a host, in milliseconds.
        emulate: whether to delay collectives rather than to make network stacks.

    Raises:
        UsageError: what cannot be.
    """
    if hosts is not None and (isinstance(hosts, bool) or not isinstance(hosts, int) or not 1 <= hosts <= MAX_HOSTS):
        raise UsageError(f"hosts must be a whole number from 1 to {MAX_HOSTS}; given {hosts!r}")
    rate = 0.0 if link in (None, "") else rate_of(link)  # pyright: ignore[reportArgumentType]
    late = _latency_s(latency_ms)
    if hosts in (None, 1):
        wanted = [name for name, value in (("link", rate), ("latency", late), ("emulate_link", emulate)) if value]
        if wanted:
            raise UsageError(f"{wanted[0]} was given, but a link joins two hosts or more; give hosts=2 (--hosts 2) too")
        return None
    assert hosts is not None
    if hosts > ranks:
        raise UsageError(
            f"{hosts} hosts for {plural(ranks, 'rank')}: one would be empty; give at least as many ranks as hosts"
        )
    if emulate and not rate and not late:
        raise UsageError(
            "an emulated link delays by its rate and its latency, and neither was given; add link=400mbit (--link 400mbit)"
        )
    return Links(hosts=hosts, rate_bits_per_s=rate, latency_s=late, emulate=emulate)


def _latency_s(latency_ms: float | None) -> float:
    if latency_ms is None:
        return 0.0
    number = isinstance(latency_ms, (int, float)) and not isinstance(latency_ms, bool)
    if not number or not 0 <= latency_ms <= MAX_LATENCY_MS:
        raise UsageError(f"latency must be from 0 to {MAX_LATENCY_MS:g} milliseconds; given {latency_ms!r}")
    return latency_ms / 1e3


def host_of(rank: int, ranks: int, hosts: int) -> int:
    """The host of a rank: in blocks of neighbours, of equal size where `hosts` divides `ranks`."""
    return rank * hosts // ranks


def local_rank_of(rank: int, ranks: int, hosts: int) -> int:
    """A rank's number among those of its host."""
    own = host_of(rank, ranks, hosts)
    return sum(host_of(other, ranks, hosts) == own for other in range(rank))
