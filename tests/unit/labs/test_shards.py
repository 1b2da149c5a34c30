"""What a rank keeps under FSDP2, for numbers of ranks that no test machine has: torch's fake group stands for the others."""

import warnings

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from labkit.labs.zero_stages.strategies import own_account
from labkit.theory.zero import state
from labkit.watch.memory import account_of, bytes_alive

from ..quick import quick

SHAPES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=3)
"""(rows, columns) of each tensor; FSDP2 divides the rows."""


def rows_of(rows, ranks, rank):
    """(rows that a rank has, with padding): equal shares rounded up, until there are none left."""
    share = -(-rows // ranks)
    return min(share, max(0, rows - rank * share)), share


def kept(shapes, ranks, rank):
    """(bytes that are alive by labkit's account, bytes by FSDP2's own partition) on one rank."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.nn.ParameterList(torch.empty(*shape) for shape in shapes)
            fully_shard(model)
        optimizer = torch.optim.Adam(model.parameters())
        return bytes_alive(account_of(model, optimizer)()), own_account(model, optimizer)
    finally:
        dist.destroy_process_group()


@settings(quick, max_examples=12)
@given(shapes=SHAPES, ranks=st.integers(1, 12), data=st.data())
def test_a_rank_keeps_its_rows_and_their_padding(shapes, ranks, data):
    rank = data.draw(st.integers(0, ranks - 1))
    alive, own = kept(shapes, ranks, rank)
    shares = [(*rows_of(rows, ranks, rank), columns) for rows, columns in shapes]
    padded, real = sum(share * columns for _, share, columns in shares), sum(rows * columns for rows, _, columns in shares)
    assert alive["parameters"] == own["parameters"] == own["gradients"] == 4 * padded
    assert own["optimizer_state"] == 8 * real + own["step_counters"]


@quick
@given(rows=st.integers(1, 60), ranks=st.integers(1, 12))
def test_shards_are_torchs_chunks_and_together_the_whole(rows, ranks):
    chunks = [len(chunk) for chunk in torch.empty(rows).chunk(ranks)]
    own, padded = zip(*(rows_of(rows, ranks, rank) for rank in range(ranks)), strict=True)
    assert [size for size in own if size] == chunks and sum(own) == rows
    assert state(rows, ranks, 3).parameters <= 4 * padded[0] < state(rows, ranks, 3).parameters + 4
    assert rows % ranks or state(rows, ranks, 3).parameters == pytest.approx(4 * own[0])
