"""A block of a program or a notebook, watched from within."""

from __future__ import annotations

import pytest
import torch

import labkit.doctor
from labkit.errors import UsageError

pytestmark = pytest.mark.timeout(120)


def train(steps=12, cleared=True):
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        if cleared:
            optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "record"


def test_a_block_is_watched_and_asked_and_shows_itself(folder):
    with labkit.doctor.watch(record=folder) as seen:
        assert seen.diagnosis is None and "watching" in repr(seen) + seen._repr_html_()
        train(cleared=False)
    assert [verdict.reason for verdict in seen.diagnosis.found] == ["gradients-never-cleared"]
    assert "zero_grad" in repr(seen) and "zero_grad" in seen._repr_html_()


def test_what_was_watched_is_as_it_was_before(folder):
    before = (torch.nn.Module.__call__, torch.Tensor.backward, torch.save, torch.optim.Optimizer.__init__)
    with labkit.doctor.watch(record=folder) as seen:
        assert torch.nn.Module.__call__ is not before[0]
        train()
    assert (torch.nn.Module.__call__, torch.Tensor.backward, torch.save, torch.optim.Optimizer.__init__) == before
    assert not seen.diagnosis.found
    updates = sum(step.counts.get("updates", 0) for step in seen.diagnosis.reading.run.ranks[0].steps)
    train()
    assert updates == 12


def test_a_block_ends_after_so_many_steps_or_with_its_own_error(tmp_path):
    with labkit.doctor.watch(record=tmp_path / "a", steps=5) as seen:
        train()
        raise AssertionError("the block ends before this")
    assert seen.diagnosis.ended.ranks[0].end == "enough"
    with pytest.raises(ZeroDivisionError), labkit.doctor.watch(record=tmp_path / "b") as seen:
        train()
        raise ZeroDivisionError
    assert seen.diagnosis.ended.ranks[0].end == "raised ZeroDivisionError"


def test_a_watch_within_a_watch_is_refused(tmp_path):
    with (
        labkit.doctor.watch(record=tmp_path / "a"),
        pytest.raises(UsageError, match="leave the inner one out"),
        labkit.doctor.watch(record=tmp_path / "b"),
    ):
        pass


def test_under_torchrun_the_command_is_named(tmp_path, monkeypatch):
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="-m labkit doctor"), labkit.doctor.watch(record=tmp_path / "a"):
        pass
