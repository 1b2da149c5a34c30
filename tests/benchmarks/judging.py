"""Judge one record in a process of its own, and print what that took as JSON: `python judging.py FOLDER`."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import threading
from pathlib import Path

import labkit
from labkit import detect, labs


def used_s() -> float:
    """Seconds of processor time, which other programs change less than they change seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class PeakOfOwnMemory:
    """The most memory of its own that this process held, without the pages of files that are mapped: these can be let go."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> PeakOfOwnMemory:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._ended.wait(0.02):
            with contextlib.suppress(OSError, StopIteration):
                lines = Path("/proc/self/status").read_text().splitlines()
                told = next(line for line in lines if line.startswith("RssAnon"))
                self.bytes = max(self.bytes, 1024 * int(told.split()[1]))


def main(folder: str) -> None:
    for name in detect.names():
        detect.detector(name)
    labs.specs()
    with PeakOfOwnMemory() as peak:
        begun = used_s()
        reading = labkit.read(folder)
        read = used_s()
        found = {verdict.detector: verdict.status for verdict in reading.verdicts}
        judged = used_s()
        measures = len(reading.measures)
        measured = used_s()
    print(
        json.dumps(
            {
                "read_s": read - begun,
                "judge_s": judged - read,
                "measure_s": measured - judged,
                "whole_s": measured - begun,
                "resident_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "own_bytes": peak.bytes,
                "statuses": found,
                "measures": measures,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
