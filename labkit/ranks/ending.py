"""End ranks, whatever happened, and leave nothing of them behind."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

from ..errors import LaunchError
from .agent import Agent
from .board import Board
from .forkserver import kill_server
from .manners import kill_started_by

_PATIENCE_S = 10.0


def end_launch(board: Board, agent: Agent, folder: Path) -> None:
    """Kill what is left of the ranks, refuse another attempt, wait for the agent to notice, and clear the folder up.

    Needed after Stop, a deadline and an interrupt; and when the warm server was killed, for then the agent believes
    that its ranks are gone while they run on. An interrupt does not cut this short.

    Raises:
        LaunchError: the agent cannot be ended.
    """
    failures: list[LaunchError] = []
    ended = threading.Event()

    def end() -> None:
        try:
            _end(board, agent)
            kill_started_by(agent.run_id)
        except LaunchError as error:
            failures.append(error)
        finally:
            board.close()
            tidy(folder)
            ended.set()

    threading.Thread(target=end, name="labkit-end-launch").start()
    interrupt: KeyboardInterrupt | None = None
    while not ended.is_set():
        try:
            ended.wait()  # not Thread.join: up to Python 3.12, one that was interrupted takes the thread for ended
        except KeyboardInterrupt as another:
            interrupt = another
    if failures:
        raise failures[0]
    if interrupt is not None:
        raise interrupt


def _end(board: Board, agent: Agent) -> None:
    agent.refuse.set()
    board.stop()
    if not _killed_until_joined(board, agent):
        agent.abandon()
        kill_server(agent.server_pid)  # which does not answer: it is all that the agent can still be waiting for
        if not _killed_until_joined(board, agent):
            raise LaunchError("the elastic agent did not end after its ranks were killed; restart this process")
    patience = time.monotonic() + _PATIENCE_S
    while any(row.is_alive for row in board.rows()) and time.monotonic() < patience:
        time.sleep(0.002)


def _killed_until_joined(board: Board, agent: Agent) -> bool:
    patience = time.monotonic() + _PATIENCE_S
    while time.monotonic() < patience:
        for row in board.rows():
            row.kill()
        if agent.join(0.02):
            for row in board.rows():  # one that came up since
                row.kill()
            return True
    return False


def tidy(folder: Path) -> None:
    """Remove what only served the launch; empty outputs and stacks too."""
    shutil.rmtree(folder / "agent", ignore_errors=True)
    for path in [folder / "board", *folder.glob("store.*"), *folder.glob("value-*"), *folder.glob("*.part")]:
        path.unlink(missing_ok=True)
    for path in [*folder.glob("rank-*.stack"), *folder.glob("rank-*.out")]:
        if path.stat().st_size == 0:
            path.unlink(missing_ok=True)
