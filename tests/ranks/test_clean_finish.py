"""Ranks that finish: what comes back, and that nothing else stays."""

from __future__ import annotations

import os
import threading

import psutil
import pytest
import rank_programs as programs

from labkit.ranks.launch import launch
from labkit.ranks.progress import Progress

pytestmark = pytest.mark.ranks


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_values_come_back_by_rank_and_only_rank_files_stay(folder):
    launched = launch(programs.sum_of_ranks, ranks=4, folder=folder)
    assert launched.values == ((0, 10.0), (1, 10.0), (2, 10.0), (3, 10.0))
    assert (launched.attempts, launched.faults_fired) == (1, 0)
    assert names(folder) == [f"rank-0000{rank}.jsonl" for rank in range(4)]


def test_one_rank_is_a_launch_too(folder):
    assert launch(programs.sum_of_ranks, ranks=1, folder=folder).values == ((0, 1.0),)


def test_more_ranks_than_cores(folder):
    launched = launch(programs.sum_of_ranks, ranks=8, folder=folder)
    assert {value[1] for value in launched.values} == {36.0}


def test_without_a_group_no_group_is_joined(folder):
    value = launch(programs.facts, ranks=1, folder=folder, group=False).values[0]
    assert not value["initialized"]
    assert value["world_size"] == 1


def test_a_rank_has_the_launchers_folder_environment_and_what_it_was_given(folder, tmp_path, monkeypatch):
    launch(programs.empty, ranks=1, folder=folder)  # the warm server is older than the changes that follow
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("LABKIT_TEST_VARIABLE", "set after the server was started")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("RANK", "77")
    values = launch(
        programs.facts, {"rate": 0.5}, ranks=2, folder=_fresh(tmp_path), seed=42, threads=3, deadline_s=50
    ).values
    for rank, value in enumerate(values):
        assert value["cwd"] == str(elsewhere)
        assert value["env"]["LABKIT_TEST_VARIABLE"] == "set after the server was started"
        assert "HOME" not in value["env"]
        assert value["env"]["RANK"] == str(rank)
        assert (value["config"], value["seed"], value["threads"]) == ({"rate": 0.5}, 42, 3)
        assert value["folder"] == tmp_path / "fresh"
        assert not value["stdin"]


def _fresh(tmp_path):
    (tmp_path / "fresh").mkdir()
    return tmp_path / "fresh"


def test_the_launchers_environment_is_as_before(folder):
    before = dict(os.environ)
    launch(programs.empty, ranks=2, folder=folder)
    assert dict(os.environ) == before


def test_large_values_come_back(folder):
    values = launch(programs.megabytes, 50, ranks=2, folder=folder).values
    assert [len(value) for value in values] == [50 * 2**20] * 2
    assert [value[-1] for value in values] == [0, 1]
    assert names(folder) == ["rank-00000.jsonl", "rank-00001.jsonl"]


def test_what_ranks_print_goes_to_their_files_and_nowhere_else(folder, capfd):
    launch(programs.talkative, ranks=2, folder=folder)
    assert capfd.readouterr() == ("", "")
    for rank in range(2):
        printed = (folder / f"rank-0000{rank}.out").read_text().splitlines()
        assert sorted(printed) == [f"hello from rank {rank}", f"shell from rank {rank}", "to stderr"]


def test_a_flood_of_output_blocks_nobody(folder):
    launch(programs.flood, ranks=2, folder=folder)
    assert (folder / "rank-00001.out").stat().st_size == 50_000 * 201


@pytest.mark.parametrize("program", [programs.changes_signal_handlers, programs.closes_its_streams])
def test_programs_that_take_signals_or_streams_away_finish(folder, program):
    assert launch(program, ranks=2, folder=folder).values == ((0, 3.0), (1, 3.0))


def test_a_ddp_object_in_a_global_does_not_hang_the_end(tmp_path):
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        launch(programs.keeps_its_ddp_object, ranks=3, folder=folder, deadline_s=60)


def test_children_that_a_rank_forgot_are_ended_with_it(folder):
    launch(programs.leaves_children, ranks=2, folder=folder)  # the fixture looks for what is left


def test_progress_is_told_while_the_ranks_run(folder):
    seen: list[Progress] = []
    launch(programs.steps, 200, ranks=2, folder=folder, on_progress=seen.append)
    assert seen[-1].steps == (200, 200)
    assert seen[-1].total_steps == 200
    assert seen[-1].fraction == 1.0
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)


def test_an_error_in_the_callback_ends_the_ranks(folder):
    def broken(progress):
        raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        launch(programs.slow_steps, ranks=2, folder=folder, on_progress=broken)


def test_two_launches_at_once_do_not_meet(tmp_path):
    results: dict[int, list] = {2: [], 3: []}

    def several(ranks):
        for number in range(4):
            folder = tmp_path / f"{ranks}-{number}"
            folder.mkdir()
            results[ranks].append(launch(programs.sum_of_ranks, ranks=ranks, folder=folder).values[0])

    threads = [threading.Thread(target=several, args=(ranks,)) for ranks in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {2: [(0, 3.0)] * 4, 3: [(0, 6.0)] * 4}


def test_many_launches_leak_no_descriptor_and_no_thread(tmp_path):
    def once(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        launch(programs.empty, ranks=2, folder=folder)

    once("first")
    descriptors, threads = psutil.Process().num_fds(), threading.active_count()
    for number in range(5):
        once(number)
    assert psutil.Process().num_fds() <= descriptors
    assert threading.active_count() <= threads
