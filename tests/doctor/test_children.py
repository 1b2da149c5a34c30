"""Ranks that a script starts by itself are watched as those that the doctor starts."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm

from labkit.doctor import launch
from labkit.doctor.diagnosis import examine
from labkit.doctor.source import is_distributed, starts_ranks
from labkit.view.diagnosis import headline

SCRIPT = Path(__file__).parent / "scripts" / "starts_its_ranks.py"
pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]


@pytest.fixture
def diagnose(tmp_path, monkeypatch):
    monkeypatch.chdir(SCRIPT.parent)

    def of(*arguments, script=SCRIPT.name, ranks=1, still_s=20.0):
        record = tmp_path / f"record-{len(list(tmp_path.iterdir()))}"
        return examine([script, *arguments], ranks=ranks, record=record, deadline_s=120, still_s=still_s, start=warm.start)

    return of


@pytest.mark.parametrize("by", ["spawn", "fork", "forkserver", "torchrun"])
def test_ranks_that_a_script_starts_are_watched(diagnose, by):
    seen = diagnose(by, "sick")
    assert [one.rank for one in seen.ended.ranks] == [0, 1] and seen.ended.code == 0
    assert seen.reading.run.world_size == 2 and seen.updates == 32 and not seen.ended.alone
    assert [verdict.reason for verdict in seen.found] == ["ranks-identical"]


@pytest.mark.parametrize("by", ["spawn", "fork"])
def test_nothing_is_found_of_them_where_they_do_right_nor_of_their_workers(diagnose, by):
    seen = diagnose(by, "workers")
    assert not seen.found and seen.reading.run.world_size == 2 and seen.ended.code == 0


def test_one_that_raises_is_the_scripts_own_error(diagnose):
    seen = diagnose("spawn", "raises")
    assert seen.ended.code == 1 and seen.ended.ranks[0].end == "raised ProcessRaisedException"
    assert seen.reading.run.world_size == 2
    (raised,) = [event for event in seen.reading.run.ranks[1].events if event.name == "raised"]
    assert (raised.fields["error"], raised.fields["where"]) == ("RuntimeError", "starts_its_ranks.py:36")


def test_ranks_that_hang_are_said_to_stand_where_they_do(diagnose, tmp_path):
    (tmp_path / "hangs.py").write_text(
        """
import sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp

def main(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    dist.barrier()
    if rank:
        time.sleep(1000)
    dist.all_reduce(torch.ones(1))

if __name__ == "__main__":
    mp.spawn(main, args=(sys.argv[1],), nprocs=2)
"""
    )
    seen = diagnose(str(tmp_path / "store"), script=str(tmp_path / "hangs.py"), still_s=5.0)
    assert seen.ended.stood_still
    hang = seen.verdicts["stands-still"]
    assert hang.reason == "ranks-never-came" and hang.where == f"{tmp_path}/hangs.py:9"


def test_processes_that_train_and_join_no_group_are_counted_and_said(tmp_path):
    (tmp_path / "hogwild.py").write_text(
        """
import torch, torch.multiprocessing as mp

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    model = torch.nn.Linear(4, 1)
    model.share_memory()
    started = [mp.get_context(how).Process(target=train, args=(model,)) for how in ("fork", "fork")]
    for one in started:
        one.start()
    for one in started:
        one.join()
"""
    )
    script, record = str(tmp_path / "hogwild.py"), tmp_path / "record"  # an interpreter of its own, as a person starts it
    seen = examine([script], ranks=1, record=record, deadline_s=150, still_s=60.0, start=launch.start)
    assert seen.ended.alone == 2 and seen.ended.code == 0 and not seen.found
    said = "2 processes of the script's own train without a process group"
    assert said in headline(seen) and "run one of them by itself" in headline(seen)


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        ("mp.spawn(main, nprocs=2)\ndist.init_process_group('gloo')", True),
        ("notebook_launcher(main, num_processes=2)", True),
        ("Process(target=main).start()\ndist.init_process_group('gloo')", True),
        ("Process(target=main).start()", False),  # no ranks, as far as is seen
        ("dist.init_process_group('gloo')", False),
        ("os.environ['RANK'] = '0'\nmp.spawn(main)\ninit_process_group('gloo')", True),
        ("rank = int(os.environ['RANK'])\nmp.spawn(main)\ninit_process_group('gloo')", False),
        ("if 'RANK' in os.environ: main()\nelse: mp.spawn(main)\ninit_process_group('gloo')", False),
        ("os.environ.get('LOCAL_RANK')\nmp.spawn(main)\ninit_process_group('gloo')", False),
    ],
)
def test_the_source_says_whether_a_script_starts_its_ranks(tmp_path, source, starts):
    script = tmp_path / "script.py"
    script.write_text(source)
    assert starts_ranks(script) == starts
    assert is_distributed(script) == ("init_process_group" in source)


def test_a_script_that_starts_its_ranks_is_started_once(diagnose, tmp_path):
    script = tmp_path / "spawns.py"
    script.write_text("import os\ndef main(): mp.spawn(init_process_group())\nprint(os.getpid())")
    seen = diagnose(script=str(script), ranks=2)
    assert len(seen.ended.ranks) == 1 and seen.ranks_by == "script"
