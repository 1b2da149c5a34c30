"""A data store that all ranks read from: a real server on a host of its own, behind a link of a chosen rate.

Where no network stacks can be made the same server runs on loopback and paces itself, and what follows from its rate
is `simulated`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from ..errors import LaunchError
from ..record.schema import Network, Storage
from .hosts import Hosts, Seats, first_line, hosts
from .links import Links

_SERVER = Path(__file__).with_name("data_store_server.py")


class DataStoreSpec(Protocol):
    """What a data store is to hold, as a lab's plan says it."""

    @property
    def rate_bits_per_s(self) -> float: ...
    @property
    def items(self) -> Callable[[], bytes]: ...
    @property
    def item_bytes(self) -> int: ...
    @property
    def emulate(self) -> bool: ...


@dataclass(frozen=True)
class DataStoreAddress:
    """Where ranks find the data store, as plain data that travels to them.

    Attributes:
        host, port: of its server.
        token: that it wants to be shown.
        item_bytes: size of each item.
    """

    host: str
    port: int
    token: str
    item_bytes: int


@dataclass(frozen=True)
class Testbed:
    """What is up around the ranks while a record is made: hosts, links, a data store.

    Attributes:
        seats: hosts for the ranks, or None for the machine itself.
        network: the same, as the record keeps it.
        data_store: where the data store is, or None.
        storage: the same, as the record keeps it.
    """

    seats: Seats | None = None
    network: Network | None = None
    data_store: DataStoreAddress | None = None
    storage: Storage | None = None

    def seats_for(self, ranks: int, *, group: bool, reads_data_store: bool) -> Seats | None:
        """Where the ranks of one launch sit: spread over the hosts, or all on the first if they only read the store."""
        if self.seats is None:
            return None
        count = self.seats.network.hosts
        if group and ranks >= count > 1:
            return self.seats
        if not reads_data_store or not self.seats.holder_pid:
            return None
        return dataclasses.replace(self.seats, network=msgspec.structs.replace(self.seats.network, hosts=1))


@contextlib.contextmanager
def bring_up(links: Links | None, holds: DataStoreSpec | None = None) -> Iterator[Testbed]:
    """Bring up what the ranks need around them, and take it down at the end. *Called on* the parent.

    Args:
        links: hosts for the ranks; None for none.
        holds: what a store holds and how fast it gives it; None for no store.

    Raises:
        LaunchError: the store's server does not come up.
    """
    if holds is None:
        with hosts(links) if links else contextlib.nullcontext() as up:
            yield Testbed(up.seats, up.network) if up else Testbed()
        return
    asked = dataclasses.replace(links or Links(hosts=1), store_bits_per_s=holds.rate_bits_per_s)
    if holds.emulate:
        asked = dataclasses.replace(asked, emulate=True)
    with hosts(asked) as up, _served(up, asked, holds) as address:
        storage = Storage(
            rate_bits_per_s=holds.rate_bits_per_s,
            achieved_bits_per_s=up.store_achieved_bits_per_s,
            way=up.network.way,
            reason=up.network.reason,
        )
        yield Testbed(up.seats, up.network if links else None, address, storage)


@contextlib.contextmanager
def _served(up: Hosts, links: Links, holds: DataStoreSpec) -> Iterator[DataStoreAddress]:
    """Run the server on the last host, or on loopback at the link's pace where there are no network stacks."""
    real = up.network.way != "emulated"
    host = up.address(links.hosts) if real else "127.0.0.1"
    command = [sys.executable, "-I", "-S", str(_SERVER)]
    with tempfile.TemporaryFile(prefix="labkit-store-") as file:  # of no name, so that nothing of it can be left behind
        file.write(holds.items())
        file.flush()
        asked = {
            "address": host,
            "token": secrets.token_urlsafe(24),
            "fd": file.fileno(),
            "item_bytes": holds.item_bytes,
            "rate_bits_per_s": 0 if real else links.store_bits_per_s,
        }
        server = subprocess.Popen(
            up.command(links.hosts, command) if real else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[file.fileno()],
            start_new_session=True,  # a terminal's Ctrl-C is the owner's to act upon
        )
        try:
            assert server.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # then it says why below
                server.stdin.write(json.dumps(asked).encode() + b"\n")
                server.stdin.flush()
            answer = first_line(server)
            if "error" in answer:
                raise LaunchError(f"the store's server did not come up: {answer['error']}")
            yield DataStoreAddress(host, answer["port"], asked["token"], holds.item_bytes)
        finally:
            server.kill()
            for pipe in (server.stdin, server.stdout, server.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            server.wait()
