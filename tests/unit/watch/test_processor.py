"""What a process takes of the processor, told lap by lap."""

import sys
import time

import pytest

from labkit.watch import processor
from labkit.watch.processor import ProcessorTime


def test_a_lap_of_waiting_takes_nothing_and_a_lap_of_work_takes_processor_time():
    laps = ProcessorTime()
    deadline = time.process_time() + 0.02
    while time.process_time() < deadline:
        pass
    assert laps.lap().cpu_s >= 0.019


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a thread waited for a core")
def test_the_wait_for_a_core_is_told_and_never_negative():
    laps = ProcessorTime()
    assert all((queued := laps.lap().queued_s) is not None and queued >= 0 for _ in range(3))


def test_where_the_system_keeps_no_account_the_wait_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "_TASKS", tmp_path / "none")
    assert ProcessorTime().lap().queued_s is None
