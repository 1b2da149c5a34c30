"""What is noted of learning rates."""

from __future__ import annotations

import pytest
import torch

from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.watch.outside.schedules import Schedules


def _group(optimizer, rate):
    optimizer.param_groups[0]["lr"] = rate


def _attribute(optimizer, rate):
    optimizer.lr = rate


def _default(optimizer, rate):
    optimizer.defaults["lr"] = rate


@pytest.mark.parametrize(
    ("write", "named"), [(_group, []), (_attribute, ["optimizer.lr"]), (_default, ['optimizer.defaults["lr"]'])]
)
def test_a_rate_that_is_written_beside_the_groups(tmp_path, write, named):
    probe = Probe(tmp_path / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1)
    watch, optimizer = Schedules(probe), torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    for number in range(3):
        probe.begin_step()
        write(optimizer, 0.1 / (number + 1))
        watch.updated(optimizer)
        probe.end_step()
    watch.close(cut=False)
    probe.close()
    assert [event.fields["what"] for event in read_rank(probe.path).events if event.name == "lr_beside"] == named
