"""Ranks that leave the others waiting: the caller gets a named error at once, the cause first."""

from __future__ import annotations

import pytest
import rank_programs as programs

from labkit.errors import RankFailed, RankLeftEarly
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks

DEADLINE_S = 30.0
"""Far beyond what any of these takes: an end that waited for it would be a RankTimeout, which no test here expects."""


def end(folder, how, waiting_in, ranks=3, error=RankFailed) -> RankFailed:
    with pytest.raises(error) as caught:
        launch(programs.rank_one_leaves, (how, waiting_in), ranks=ranks, folder=folder, deadline_s=DEADLINE_S)
    assert caught.type is error
    return caught.value


@pytest.mark.parametrize(
    ("how", "waiting_in"),
    [("return", "all_reduce"), ("return", "barrier"), ("return", "backward"), ("exit", "barrier"), ("exit 0", "backward")],
)
def test_a_rank_that_returns_while_others_wait_for_it_left_early(folder, how, waiting_in):
    error = end(folder, how, waiting_in, error=RankLeftEarly)
    assert str(error).startswith("rank 1 returned while others still waited for it in a collective:")
    assert next(iter(error.ranks)) == 1
    assert error.ranks[1].state == "returned"
    waited = [report for rank, report in error.ranks.items() if rank != 1 and report.state == "lost its peer"]
    assert waited
    for report in waited:
        assert report.message == f"while it waited in {waiting_in}"
        assert report.where is not None and "rank_programs.py:" in report.where


@pytest.mark.parametrize(("how", "said"), [("exit 3", "sys.exit(3)"), ("exit text", "sys.exit('text of the exit')")])
def test_exit_with_a_code_is_a_failure(folder, how, said):
    error = end(folder, how, "barrier")
    assert f"rank 1 failed: RuntimeError: the program called {said}" in str(error)


@pytest.mark.parametrize("waiting_in", ["all_reduce", "barrier", "backward"])
def test_an_exception_names_its_rank_its_text_and_its_line(folder, waiting_in):
    error = end(folder, "exception", waiting_in)
    report = next(iter(error.ranks.values()))
    assert (report.rank, report.state, report.message) == (1, "failed", "KeyError: 'raised by rank 1'")
    assert report.where is not None and report.where.endswith(programs.line_of("raises here"))
    assert "Traceback" in report.text
    assert "raised by rank 1" in (folder / "rank-00001.out").read_text()
    assert (folder / "rank-00001.attempt0.error.json").exists()


def test_an_exception_that_holds_the_ddp_object_hangs_nothing(folder):
    error = end(folder, "exception with DDP", "backward")
    assert "rank 1 failed: HoldsModel: holds its model" in str(error)


def test_an_exception_without_a_text_is_named_too(folder):
    assert "rank 1 failed: Unprintable: " in str(end(folder, "unprintable", "all_reduce"))


def test_an_exception_on_every_rank(folder):
    with pytest.raises(RankFailed) as caught:
        launch(programs.all_raise, ranks=3, folder=folder)
    for rank in range(3):
        report = caught.value.ranks[rank]
        # a rank that the agent ended before it came to its own exception has none to report
        assert report.message in (f"ValueError: raised by rank {rank}", "with the others, in step 0")
    assert "failed: ValueError: raised by rank" in str(caught.value)
    assert "second line" not in str(caught.value)


def test_an_exception_after_the_streams_were_closed(folder):
    with pytest.raises(RankFailed, match="ValueError: without a stream"):
        launch(programs.closes_its_streams, "fails", ranks=2, folder=folder)


@pytest.mark.parametrize(
    ("how", "said"),
    [("SIGKILL", "by SIGKILL"), ("SIGSEGV", "by SIGSEGV"), ("_exit 7", "by exit code 7")],
)
@pytest.mark.parametrize("waiting_in", ["all_reduce", "sleep"])
def test_a_crash_names_its_rank_and_its_signal(folder, how, said, waiting_in):
    error = end(folder, how, waiting_in)
    cause = next(iter(error.ranks.values()))
    assert cause.rank == 1
    # gloo can tell the others before the kernel tells the agent: then the signal is not known, the rank is
    assert said in cause.message or cause.state == "vanished"
    if waiting_in == "sleep":
        assert said in cause.message
        assert ("for want of memory" in cause.message) == (how == "SIGKILL")


@pytest.mark.parametrize("waiting_in", ["all_reduce", "sleep"])
def test_a_process_that_ends_with_code_0_in_the_middle_is_noticed(folder, waiting_in):
    error = end(folder, "_exit 0", waiting_in)
    cause = next(iter(error.ranks.values()))
    assert (cause.rank, cause.state) == (1, "vanished")
    assert "without returning and without an error" in cause.message


def test_a_rank_whose_disk_is_full_is_named_though_its_error_cannot_be_written(folder, capfd):
    with pytest.raises(RankFailed) as caught:
        launch(programs.has_a_full_disk, ranks=2, folder=folder, deadline_s=DEADLINE_S, group=False)
    assert next(iter(caught.value.ranks.values())).state == "failed"
    assert "its error could not be written: File too large; make room at" in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_that_all_end_with_code_0_in_the_middle_are_noticed_too(folder, tmp_path, ranks):
    with pytest.raises(RankFailed) as caught:
        launch(programs.leaves_at_once, ranks=ranks, folder=folder, deadline_s=DEADLINE_S, group=False)
    assert caught.type is RankFailed and {report.state for report in caught.value.ranks.values()} <= {"vanished", "ended"}
    assert "without returning and without an error" in str(caught.value)
    (tmp_path / "next").mkdir()
    assert launch(programs.sum_of_ranks, ranks=2, folder=tmp_path / "next").values == ((0, 3.0), (1, 3.0))


def test_ranks_that_ignore_sigterm_do_not_hold_up_the_end(folder):
    error = end(folder, "exception", "deaf sleep")
    assert "KeyError: 'raised by rank 1'" in str(error)


def test_a_value_that_cannot_travel_is_a_named_failure(folder):
    with pytest.raises(RankFailed, match="TypeError: .*pickle"):
        launch(programs.returns_what_cannot_travel, ranks=2, folder=folder)


def test_a_failed_launch_leaves_the_next_one_alone(folder, tmp_path):
    end(folder, "exception", "all_reduce")
    (tmp_path / "next").mkdir()
    assert launch(programs.sum_of_ranks, ranks=2, folder=tmp_path / "next").values == ((0, 3.0), (1, 3.0))


def test_a_failed_launch_leaves_no_store_board_or_agent_folder(folder):
    end(folder, "SIGKILL", "all_reduce")
    assert all(path.name.startswith("rank-") for path in folder.iterdir())
