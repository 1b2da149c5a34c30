"""Storages are counted once, where they lie; what has no memory counts nothing."""

import torch
from torch import nn

from labkit.watch.memory import account_of, bytes_alive


def test_a_storage_that_several_tensors_share_counts_once_and_for_the_first_category():
    flat = torch.zeros(100)
    found = bytes_alive({"parameters": [flat[:50], flat[50:]], "gradients": [flat[10:20]], "buffers": [torch.zeros(3)]})
    assert found == {"parameters": 400, "gradients": 0, "optimizer_state": 0, "unsharded": 0, "buffers": 12}


def test_a_view_counts_the_whole_storage_that_it_keeps_alive():
    assert bytes_alive({"gradients": [torch.zeros(1000)[:1]]})["gradients"] == 4000


def test_meta_tensors_and_freed_storages_take_nothing():
    freed = torch.zeros(100)
    freed.untyped_storage().resize_(0)
    assert sum(bytes_alive({"buffers": [torch.zeros(100, device="meta"), freed]}).values()) == 0


def test_a_plain_models_account_is_sixteen_bytes_a_parameter_and_adams_counters():
    model = nn.Linear(10, 10)
    optimizer = torch.optim.Adam(model.parameters())
    account = account_of(model, optimizer)
    assert bytes_alive(account())["optimizer_state"] == 0
    model(torch.zeros(2, 10)).sum().backward()
    optimizer.step()
    assert bytes_alive(account()) == {
        "parameters": 440, "gradients": 440, "optimizer_state": 880 + 2 * 4, "unsharded": 0, "buffers": 0,
    }  # fmt: skip
    optimizer.zero_grad()
    assert bytes_alive(account())["gradients"] == 0


def test_parameters_that_only_the_optimizer_still_holds_count_too():
    old, new = nn.Linear(10, 10), nn.Linear(10, 10)
    account = account_of(new, torch.optim.Adam(old.parameters()))
    assert bytes_alive(account())["parameters"] == 880
