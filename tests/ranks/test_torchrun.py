"""Inside torchrun labkit starts no rank: it joins those that are there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rank_helpers import ROOT

import labkit
from labkit.errors import UsageError
from labkit.ranks.join import Place, outer_place
from labkit.record.store import read_record

pytestmark = pytest.mark.ranks

VARIABLES = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}


@pytest.fixture
def torchrun(tmp_path):
    """Run a script under torchrun: (text, number of processes) -> the ended process."""

    def run(text: str, ranks: int, **env: str) -> subprocess.CompletedProcess:
        (tmp_path / "script.py").write_text(text)
        rendezvous = ["--nnodes", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
        agent = ["--local-addr", "127.0.0.1", "--monitor-interval", "0.1"]
        paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "torch.distributed.run",
                *rendezvous,
                *agent,
                "--nproc-per-node",
                str(ranks),
                "script.py",
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths, "LABKIT_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )

    return run


RUNS = """
import os
import labkit
lab = labkit.lab("duplicate-data")
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
try:
    lab.run("fixed", ranks=ranks + 1)
except labkit.UsageError as error:
    assert f"ranks is {{ranks + 1}}, but torchrun started {{ranks}}" in str(error), error
else:
    raise AssertionError("it was not refused")
faults = [labkit.Fault(kind="delay", rank=ranks - 1, step=0, seconds=0.01)]
for variant in {variants}:
    record = lab.run(variant, ranks=ranks, seed=3, record_dir=variant, faults=faults)
    assert (record is None) == (rank != 0), (rank, record)
if rank == 0:
    print(lab.judge(record)[0].status)
"""


def samples(record):
    return [[step.ids for step in log.steps] for log in record.run.ranks]


def digests(record):
    return [[step.digests for step in log.steps] for log in record.run.ranks]


@pytest.mark.parametrize(("ranks", "variants"), [(2, ("broken", "fixed")), (3, ("fixed",))])
def test_rank_0_gets_the_record_that_a_launch_of_as_many_ranks_gives(torchrun, tmp_path, monkeypatch, ranks, variants):
    """Also the second time in one process."""
    ended = torchrun(RUNS.format(variants=variants), ranks)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "clear\n"
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "other"))
    for variant in variants:
        joined = read_record(tmp_path / variant)
        spawned = labkit.lab("duplicate-data").run(variant, ranks=ranks, seed=3)
        assert joined.run.world_size == spawned.run.world_size == ranks
        assert samples(joined) == samples(spawned)
        assert digests(joined) == digests(spawned)
        assert [log.digests for log in joined.run.ranks] == [log.digests for log in spawned.run.ranks]
        assert (joined.run.arrays["weights"] == spawned.run.arrays["weights"]).all()
        assert [log.head.facts for log in joined.run.ranks] == [log.head.facts for log in spawned.run.ranks]
        assert all(log.finished for log in joined.run.ranks)
        assert joined.runs["single"].ranks[0].digests == spawned.runs["single"].ranks[0].digests
        fired = [[event.name for event in log.events].count("fault") for log in joined.run.ranks]
        assert fired == [0] * (ranks - 1) + [1]
    # the files that each rank wrote for itself are gone
    assert not list((tmp_path / "cache").glob("runs/*"))


FAILS = """
import torch, torch.distributed as dist
from labkit.ranks.join import outer_place, run_joined
from pathlib import Path

def program(context):
    if context.rank == 1:
        {what}
    dist.all_reduce(torch.ones(1))

place = outer_place()
folder = Path("out") if place.rank == 0 else None
Path("out").mkdir(exist_ok=True)
run_joined(place, program, None, folder=folder, seed=0, device=None, backend=None, deadline_s={deadline})
if place.rank == 1:
    import time; time.sleep(500)  # its process stays: only leaving the group wakes the other
print("not reached")
"""


def test_a_program_that_fails_ends_all_ranks_and_torchrun(torchrun):
    ended = torchrun(FAILS.format(what="raise ValueError('from rank 1')", deadline=60), 2)
    assert ended.returncode != 0
    assert "ValueError: from rank 1" in ended.stderr
    assert ended.stdout == ""


def test_a_rank_that_returns_early_is_named_by_those_that_waited(torchrun):
    ended = torchrun(FAILS.format(what="return", deadline=30), 2)
    assert ended.returncode != 0
    assert "RankLeftEarly: rank 1 returned while rank 0 still waited for it in a collective" in ended.stderr
    assert ended.stdout == ""


def test_a_hang_ends_at_the_deadline_and_each_rank_says_where_it_waits(torchrun):
    started = time.monotonic()
    ended = torchrun(FAILS.format(what="import time; time.sleep(500)", deadline=2), 2)
    assert time.monotonic() - started < 90
    assert ended.returncode != 0
    assert "labkit: rank 0 had not finished after 2 s: it waits in all_reduce at script.py:9" in ended.stderr
    assert "labkit: rank 1 had not finished after 2 s: it waits in program at script.py:8" in ended.stderr
    assert ended.stdout == ""


# ---- The variables by which a rank is known: no process is started


def test_without_the_variables_there_is_no_outer_launcher(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert outer_place() is None
    monkeypatch.setenv("WORLD_SIZE", "4")  # some clusters set it for the job
    assert outer_place() is None


def test_the_place_is_read_from_the_variables(monkeypatch):
    for name, value in {**VARIABLES, "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert outer_place() == Place(rank=5, local_rank=1, world_size=8, local_world_size=2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"WORLD_SIZE": None}, "RANK is set, but WORLD_SIZE not"),
        ({"WORLD_SIZE": None, "LOCAL_RANK": None}, "RANK is set, but WORLD_SIZE and LOCAL_RANK not"),
        ({"RANK": "zero"}, "are whole numbers"),
        ({"RANK": ""}, "are whole numbers"),
        ({"LOCAL_WORLD_SIZE": "2.0"}, "are whole numbers"),
        ({"RANK": "2"}, "RANK=2 does not fit WORLD_SIZE=2"),
        ({"RANK": "-1"}, "RANK=-1 does not fit"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK=2, LOCAL_WORLD_SIZE=2 and WORLD_SIZE=2 contradict each other"),
        ({"LOCAL_WORLD_SIZE": "0"}, "contradict each other"),
        ({"LOCAL_WORLD_SIZE": "3"}, "contradict each other"),
    ],
)
def test_broken_variables_are_refused_with_a_remedy(monkeypatch, change, said):
    for name, value in {**VARIABLES, **change}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=said) as caught:
        outer_place()
    assert "start with torchrun" in str(caught.value) or "whole numbers" in str(caught.value)


def test_a_missing_address_is_refused_with_a_remedy(monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(UsageError, match="MASTER_ADDR.*start with torchrun"):
        labkit.lab("duplicate-data").run("fixed")


@pytest.mark.parametrize("asked", [{"hosts": 2}, {"link": "1gbit"}, {"latency_ms": 1.0}, {"emulate_link": True}])
def test_hosts_of_one_machine_are_refused_where_torchrun_placed_the_ranks(monkeypatch, asked):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="torchrun started the ranks where they are"):
        labkit.lab("duplicate-data").run("fixed", **asked)
