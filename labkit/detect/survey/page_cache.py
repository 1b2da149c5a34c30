"""Was storage read, or memory?

A file that was just written lies in the page cache, and reading it back measures memory: the usual way to believe in a disk
ten times as fast as the real one. Some file systems are memory altogether.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ..verdict import Verdict, answering
from .repeats import operations

NAME = "page-cache"
QUESTION = "Did the reads come from storage, and not from memory?"
TIMED = True
_answer = answering(NAME, QUESTION)

NOT_SAID = "not said"

AS_FAST_AS_MEMORY = 0.5
"""Reads at this share of a copy's bandwidth, or above, look like copies out of some cache."""


def detect(record: Record) -> Verdict:
    """Judge the record's reads, if it has any."""
    run = record.runs.get(Role.STORAGE)
    found = operations(run)
    if run is None or "read-sequential" not in found:
        return _answer("not_applicable", "no-storage-measured")
    bypass, file_system = str(run.fact("cache_bypass", NOT_SAID)), str(run.fact("file_system", "unknown"))
    cached = run.fact("cached_share", -1.0)
    rate = found["read-sequential"].bytes_per_s
    evidence = {"page_cache": Quantity(bypass), "file_system": Quantity(file_system), "rate": Quantity(rate / 1e9, "GB/s")}
    if run.fact("in_memory", False):
        return _answer("found", "file-lay-in-memory", evidence, file_system=file_system)
    if bypass == NOT_SAID:
        return _answer("not_applicable", "page-cache-not-declared", evidence)
    if not bypass.startswith(("bypassed", "dropped")):
        return _answer("found", "page-cache-in-the-way", evidence)
    if isinstance(cached, float) and cached > 0:
        evidence |= {"still_cached": Quantity(cached, "of the places looked at")}
        return _answer("inconclusive", "pages-stayed-in-cache", evidence, share=cached)
    copy = operations(record.runs.get(Role.COMPUTE)).get("copy")
    if copy is not None and rate >= AS_FAST_AS_MEMORY * copy.bytes_per_s:
        evidence |= {"copy": Quantity(copy.bytes_per_s / 1e9, "GB/s")}
        return _answer("inconclusive", "as-fast-as-memory", evidence)
    return _answer("clear", "page-cache-kept-out", evidence, how=bypass)
