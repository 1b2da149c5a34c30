"""Right programs on a machine whose cores are all busy with something else: nobody is accused, again and again.

`make soak` makes each 50 times, or LABKIT_SOAK_REPEATS; `make test` a few, once.
"""

from __future__ import annotations

import os
from collections import Counter

import psutil
import pytest
from busy_cores import SPIN, busy_cores, cores_that_rest, runs
from healthy_programs import PROGRAMS
from msgspec.structs import replace
from verdict_matrix import EACH, MATRIX, allowed, here, offences, own_faults

import labkit
from labkit import detect
from labkit.detect.verdict import Verdict
from labkit.ranks.backend import usable_cores
from labkit.ranks.launch import launch
from labkit.record.schema import Record
from labkit.record.store import read_record

REPEATS = int(os.environ.get("LABKIT_SOAK_REPEATS", "50"))
FIXED = [slug for slug, rows in MATRIX.items() if "fixed" in rows.rows]
BROKEN = [slug for slug, rows in MATRIX.items() if "broken" in rows.rows]
HEALTHY = [(name, count) for name, (_, counts) in PROGRAMS.items() for count in counts]
QUICK_LABS, QUICK_HEALTHY = ("duplicate-data",), [("plain-ddp", 2), ("watched-ddp", 2), ("accumulating", 2)]
AN_HOUR = 3600

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def tally():
    """What was said, by detector and status, over all runs; printed at the end."""
    said: Counter[tuple[str, str]] = Counter()
    yield said
    print(f"\n{said.pop(('runs', ''), 0)} runs with all cores busy")
    for (name, status), count in sorted(said.items()):
        if status in ("found", "inconclusive"):
            print(f"  {name:<26}{status:<14}{count}")


def run_lab(slug: str, variant: str, seed: int, folder) -> Record:
    rows = MATRIX[slug]
    how = {"device": "cpu", "deadline_s": 300, "seed": seed} | rows.how | here(rows.rows[variant]).how
    return labkit.lab(slug).run(variant, record_dir=folder, **how)


def run_healthy(name: str, ranks: int, seed: int, folder) -> Record:
    folder.mkdir()
    launched = launch(PROGRAMS[name][0], ranks=ranks, folder=folder, seed=seed, group=ranks > 1, deadline_s=300)
    record = read_record(folder)
    run = replace(record.run, load=launched.load)
    return replace(record, runs={run.role: run}, provenance=replace(record.provenance, load=launched.load))


def judged(record: Record, tally: Counter) -> list[Verdict]:
    """What each detector says."""
    verdicts = [detect.ask(name, record) for name in detect.names()]
    tally.update((verdict.detector, verdict.status) for verdict in verdicts)
    tally["runs", ""] += 1
    return verdicts


def accused(record: Record, tally: Counter, expected: set[str]) -> list[str]:
    found = [verdict for verdict in judged(record, tally) if verdict.status == "found"]
    return [f"{verdict.detector}: {verdict.cause}" for verdict in found if verdict.detector not in expected]


def accusations(make, repeats: int, tally: Counter, expected: set[str], tmp_path) -> list[str]:
    """What is found in `repeats` runs beside what is expected."""
    with busy_cores():
        return [
            f"run {number}: {said}"
            for number in range(repeats)
            for said in accused(make(number, tmp_path / str(number)), tally, expected)
        ]


def true_of(slug: str, variant: str) -> set[str]:
    """Detectors that the table says are right to find something in a variant."""
    return {name for name in detect.names() if "F" in allowed(slug, variant, name)}


def fixed_accusations(slug: str, repeats: int, tally: Counter, tmp_path) -> list[str]:
    def make(number, folder):
        return run_lab(slug, "fixed", number, folder)

    return accusations(make, repeats, tally, true_of(slug, "fixed"), tmp_path)


def healthy_accusations(name: str, ranks: int, repeats: int, tally: Counter, tmp_path) -> list[str]:
    return accusations(lambda number, folder: run_healthy(name, ranks, number, folder), repeats, tally, set(), tmp_path)


# A few, in every run of the tests


@pytest.mark.timeout(300)
@pytest.mark.parametrize("slug", QUICK_LABS)
def test_a_fixed_variant_is_not_accused_while_the_cores_are_busy(slug, tally, tmp_path):
    assert not fixed_accusations(slug, 1, tally, tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "ranks"), QUICK_HEALTHY)
def test_a_right_script_is_not_accused_while_the_cores_are_busy(name, ranks, tally, tmp_path):
    assert not healthy_accusations(name, ranks, 1, tally, tmp_path)


def spinning() -> set[int]:
    """Processes that keep a core busy for this one, whether somebody knows their numbers or not."""
    found = psutil.process_iter(["pid", "cmdline", "status"])
    ours = [one.info for one in found if (one.info["cmdline"] or [])[2:4] == [SPIN, str(os.getpid())]]
    return {one["pid"] for one in ours if one["status"] != psutil.STATUS_ZOMBIE}


def test_the_cores_are_busy_only_as_long_as_they_are_to_be():
    with pytest.raises(KeyError), busy_cores(usable_cores()) as pids:
        assert len(pids) == usable_cores() and all(psutil.pid_exists(pid) for pid in pids)
        assert not {child.pid for child in psutil.Process().children(recursive=True)} & set(pids)
        raise KeyError
    assert not any(runs(pid) for pid in pids)


def test_nobody_spins_on_though_many_begin_at_once():
    for _ in range(10):
        with busy_cores(4) as pids:
            assert spinning() == set(pids) and len(pids) == 4
    assert not spinning()


def test_other_workers_keep_cores_busy_too(monkeypatch):
    for workers, left in [("1", usable_cores()), ("2", usable_cores() - 1), ("64", 0)]:
        monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", workers)
        assert cores_that_rest() == left
    with busy_cores() as pids:
        assert not pids


# All, by `make soak`


@pytest.mark.soak
@pytest.mark.timeout(4 * AN_HOUR)
@pytest.mark.parametrize("slug", FIXED)
def test_no_fixed_variant_is_ever_accused(slug, tally, tmp_path):
    assert not fixed_accusations(slug, REPEATS, tally, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(4 * AN_HOUR)
@pytest.mark.parametrize(("name", "ranks"), HEALTHY)
def test_no_right_script_is_ever_accused(name, ranks, tally, tmp_path):
    assert not healthy_accusations(name, ranks, REPEATS, tally, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(4 * AN_HOUR)
@pytest.mark.parametrize("slug", BROKEN)
def test_no_broken_variant_is_ever_clear(slug, tally, tmp_path):
    """Its own detectors find its fault, or say that they cannot tell."""
    with busy_cores():
        for number in range(REPEATS):
            said = judged(run_lab(slug, "broken", number, tmp_path / str(number)), tally)
            assert not [v for v in said if v.detector in own_faults(slug, "broken") and v.status == "clear"]


@pytest.mark.soak
@pytest.mark.timeout(4 * AN_HOUR)
@pytest.mark.parametrize(("slug", "variant"), EACH, ids=lambda word: word)
def test_every_variant_keeps_to_the_table_while_the_cores_are_busy(slug, variant, tally, tmp_path):
    with busy_cores():
        for number in range(-(-REPEATS // 10)):
            said = judged(run_lab(slug, variant, number, tmp_path / str(number)), tally)
            assert not offences(slug, variant, said)
