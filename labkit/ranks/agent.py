"""torch's elastic agent, the engine under torchrun, on a thread of its own.

On the main thread it would take SIGINT and SIGTERM and never give them back.
"""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import threading
import time
import uuid

from . import forkserver, rendezvous
from .entry import enter
from .job import Job

_LOGGERS = ("torch.distributed.elastic", "torch.distributed.launcher", "torch.multiprocessing.spawn")
_EVENTS = "torchelastic-events-null"


class Abandoned(Exception):
    """Ends the agent's thread, which would wait for ever for what ranks that are gone did not return."""


class Agent:
    """The elastic agent of one launch.

    Attributes:
        done: set when the agent has ended.
        refuse: set it, and no further attempt starts.
        rounds: of starts that it has begun, also of one whose ranks are not up yet.
        error: what the agent raised, if it did.
        started: when it was started, by the monotonic clock.
        server_pid: the process that this launch's ranks are forked from.
        run_id: what its ranks, and all that they start, find in their environment.
    """

    def __init__(self, job: Job, max_restarts: int) -> None:
        self.done = threading.Event()
        self.refuse = threading.Event()
        self.rounds = rendezvous.Rounds()
        self.error: BaseException | None = None
        self.started = time.monotonic()
        self.server_pid = 0
        self.run_id = uuid.uuid4().hex
        self._job, self._max_restarts = job, max_restarts
        self._thread = threading.Thread(target=self._run, daemon=True, name="labkit-agent")

    def start(self) -> None:
        """Start the ranks. Returns at once."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the agent's thread; whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Have the agent end though its ranks returned nothing: it takes one that left with code 0 for one that runs."""
        if self._thread.ident is not None and not self.done.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Abandoned))

    def _run(self) -> None:
        try:
            self._launch()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def _launch(self) -> None:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        silence_elastic()
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=self._job.world_size,
            run_id=self.run_id,
            rdzv_backend=rendezvous.register(),
            rdzv_endpoint="localhost",
            rdzv_configs={"refuse": self.refuse, "rounds": self.rounds},
            max_restarts=self._max_restarts,
            monitor_interval=0.005,
            start_method="forkserver",
            local_addr="127.0.0.1",
            logs_specs=DefaultLogsSpecs(log_dir=str(self._job.folder / "agent")),
        )
        announced = "TORCHELASTIC_SIGNALS_TO_HANDLE"  # which the agent sets in this process's environment
        before = os.environ.get(announced)
        try:
            with forkserver.starting_ranks():
                self.server_pid = forkserver.server_pid()
                elastic_launch(config, enter)(self._job)
        finally:
            if before is None:
                os.environ.pop(announced, None)


def silence_elastic() -> None:
    """Have torch's launcher say nothing: labkit tells what became of ranks itself."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger(_EVENTS).disabled = True  # its level is set by torch later
    _spare_name_lookups()


def _spare_name_lookups() -> None:
    """Have the agent call this host by its plain name in its events, of which nobody here reads any.

    It would look the full name up for each, some ten times a launch; where names resolve badly that takes seconds each.
    """
    from torch.distributed.elastic.agent.server import api

    if hasattr(api, "_get_fq_hostname"):
        api._get_fq_hostname = socket.gethostname
