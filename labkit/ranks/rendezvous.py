"""A rendezvous for the one agent of a single machine: at once, without a port and without a random delay.

torch's c10d rendezvous sleeps up to 0.3 s at random and opens a TCP store, whose clients do reverse DNS.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from torch.distributed import HashStore, PrefixStore  # pyright: ignore[reportPrivateImportUsage]
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

BACKEND = "labkit-one-agent"


@dataclass
class Rounds:
    """How many rounds an agent has begun: one for the first attempt and one for each restart."""

    begun: int = 0


class OneAgentRendezvous(RendezvousHandler):
    """Every round is complete as soon as it is asked for; once closed, another is refused (that is how Stop wins)."""

    def __init__(self, parameters: RendezvousParameters) -> None:
        self._run_id = parameters.run_id
        self._store = HashStore()
        self._refuse = parameters.config["refuse"]
        self._rounds = parameters.config["rounds"]

    def get_backend(self) -> str:
        return BACKEND

    @property
    def use_agent_store(self) -> bool:
        # ranks meet through a FileStore of their own: the agent's would hand a restart the dead attempt's addresses
        return False

    def next_rendezvous(self) -> RendezvousInfo:
        if self.is_closed():
            raise RendezvousClosedError("the run was stopped")
        self._rounds.begun += 1
        store = PrefixStore(f"{self._run_id}/{self._rounds.begun}", self._store)
        return RendezvousInfo(store, 0, 1, RendezvousStoreInfo("127.0.0.1", 0))

    def is_closed(self) -> bool:
        return self._refuse.is_set()

    def set_closed(self) -> None:
        self._refuse.set()

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        return True


def register() -> str:
    """Make the handler known to torch's registry (again is fine) and return its name."""
    with contextlib.suppress(ValueError):  # this module was loaded again: the class that is known already does as well
        rendezvous_handler_registry.register(BACKEND, OneAgentRendezvous)
    return BACKEND
