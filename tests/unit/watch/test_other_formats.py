"""What the doctor's watchers read out of checkpoints that are not torch.save's."""

from __future__ import annotations

import pytest

from labkit.watch.outside.distributed_checkpoints import _unread

WHOLE = {
    "model.0.weight": "float32",
    "optimizer.state.0.weight.exp_avg": "bfloat16",
    "optimizer.state.0.weight.step": "float32",
    "optimizer.state.0.bias.exp_avg": "bfloat16",
}


@pytest.mark.parametrize(
    ("asked", "parameters"),
    [
        (["model.0.weight", "optimizer.param_groups.0.lr"], 2),
        (["model.0.weight", "optimizer.state.0.weight.step"], 2),  # counters are no moments
        (["model.0.weight", "optimizer.state.0.weight.exp_avg"], None),
    ],
)
def test_moments_in_a_file_that_nobody_asks_for(asked, parameters):
    found = list(_unread(WHOLE, asked))
    assert [one.parameters for one in found] == ([] if parameters is None else [parameters])
    assert all(one.types == {"exp_avg": "bfloat16"} for one in found)


def test_a_file_without_an_optimizer_has_no_moments():
    assert not list(_unread({"model.state_embedding.weight": "float32"}, ["model.state_embedding.weight"]))
