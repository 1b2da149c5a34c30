"""What counts as a checkpoint that the script saves or loads."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.watch.outside.checkpoints import Checkpoints
from labkit.watch.outside.patches import Patches


@pytest.fixture
def told(tmp_path):
    """Do something, and get the kinds of events that were written meanwhile."""

    def told(act):
        probe = Probe(tmp_path / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1)
        watched, patches = Checkpoints(probe, lambda: [], lambda: 0), Patches()
        watched.attach(patches)
        try:
            act()
        finally:
            patches.undo()
            watched.close()
            probe.close()
        assert not patches.faults
        return [event.name for event in read_rank(probe.path).events if event.name in ("torch_save", "torch_load")]

    return told


def through_memory(save, load):
    """Save an optimizer's state to memory, and load it."""
    buffer = io.BytesIO()
    save({"optimizer": {"state": {}, "param_groups": []}}, buffer)
    buffer.seek(0)
    load(buffer)


def within_torch(name):
    """A function of torch's own that calls torch.save or torch.load."""
    space = {"torch": torch}
    source = f"def call(*args):\n    return torch.{name}(*args)\n"
    exec(compile(source, str(Path(torch.__path__[0], "distributed", "optim", "of_ours.py")), "exec"), space)
    return space["call"]


def test_a_checkpoint_in_memory_is_one_where_the_script_makes_it(told):
    assert told(lambda: through_memory(lambda *a: torch.save(*a), lambda *a: torch.load(*a))) == ["torch_save", "torch_load"]


def test_what_torch_sends_from_rank_to_rank_is_no_checkpoint(told):
    assert told(lambda: through_memory(within_torch("save"), within_torch("load"))) == []
