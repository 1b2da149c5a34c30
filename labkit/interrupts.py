"""Ctrl-C, SIGTERM and a closed terminal end a command once, in order, however often they come."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

GRACE_S = 20.0
"""For this long after the first one others are not acted upon: the ranks are being ended. Then the next one is."""

_came: list[int] = []


@contextlib.contextmanager
def ended_in_order() -> Iterator[list[int]]:
    """Have signals raise KeyboardInterrupt, the first of several only; gives the signals that came.

    Once one came, all stay ignored when the context is left: what is still to do is to exit, which a signal must not cut
    short. A context within another one changes nothing. Not under torchrun: it sends SIGTERM to ranks that wait in a
    collective, where no handler would ever run.
    """
    mine = _installed()
    try:
        yield _came
    finally:
        for number, before in mine.items():
            signal.signal(number, signal.SIG_IGN if _came else before)


def _installed() -> dict[signal.Signals, Any]:
    """Take the signals that nobody took; gives what was there before, by signal."""
    if "WORLD_SIZE" in os.environ or threading.current_thread() is not threading.main_thread():
        return {}
    # one that is ignored, as SIGHUP is under nohup, stays so
    untouched = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    mine = {number: before for number, before in untouched.items() if signal.getsignal(number) is before}
    if mine:
        _came.clear()
    first: list[float] = []

    def interrupt(number: int, frame: Any) -> None:
        _came.append(number)
        now = time.monotonic()
        if not first or now - first[0] > GRACE_S:
            first[:] = [now]
            raise KeyboardInterrupt

    for number in mine:
        signal.signal(number, interrupt)
    return mine
