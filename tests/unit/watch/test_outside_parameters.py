"""Which parameters are said to be in no optimizer's hands."""

from __future__ import annotations

import pytest
import torch

from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.watch.outside.parameters import Parameters


@pytest.fixture
def seen(tmp_path):
    """Three updates of a model whose optimizer was made by then: what was last said of its parameters."""

    def seen(model, optimizer, after_made=lambda: None, by_hand=lambda: None):
        probe = Probe(tmp_path / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1)
        watch = Parameters(probe, lambda: [model])
        watch._made(optimizer, "train.py:3")
        after_made()
        for update in (1, 2, 3):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            by_hand()
            watch.stepped(optimizer)
            watch.updated(update)
        probe.close()
        return [event.fields for event in read_rank(probe.path).events if event.name == "parameters"][-1]

    return seen


def test_a_layer_that_is_put_in_after_the_optimizer_was_made(seen):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    fields = seen(model, torch.optim.SGD(model.parameters(), 0.1), lambda: model.append(torch.nn.Linear(2, 2)))
    assert (fields["unheld"], fields["later"], fields["later_names"]) == (2, 2, "1.weight, 1.bias")


def test_a_layer_that_is_left_out_was_there_before(seen):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    fields = seen(model, torch.optim.SGD(model[0].parameters(), 0.1))
    assert (fields["unheld"], fields["later"]) == (2, 0)


def test_a_layer_that_the_script_moves_by_hand_is_trained(seen):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))

    def by_hand():
        for parameter in model[1].parameters():
            parameter.data -= 0.1 * parameter.grad

    assert seen(model, torch.optim.SGD(model[0].parameters(), 0.1), by_hand=by_hand)["unheld"] == 0
