"""Every kind of collective as the counter sees it: its whole, its group, and what a rank sends of it by a ring."""

import pytest

from labkit.ranks.launch import launch
from labkit.watch.traffic import sent_share

RANKS, NUM = 3, 12
AROUND = (RANKS - 1) / RANKS

EXPECTED = {
    # operation: (kind, elements of the whole, share of it that a rank sends as a mean)
    "all_reduce": ("all_reduce", NUM, 2 * AROUND),
    "broadcast": ("broadcast", NUM, AROUND),
    "reduce": ("reduce", NUM, AROUND),
    "all_gather": ("all_gather", RANKS * NUM, AROUND),
    "all_gather_list": ("all_gather", RANKS * NUM, AROUND),
    "reduce_scatter": ("reduce_scatter", RANKS * NUM, AROUND),
    "all_to_all": ("all_to_all", NUM, AROUND),
    "functional_all_reduce": ("all_reduce", NUM, 2 * AROUND),
    "functional_all_gather": ("all_gather", RANKS * NUM, AROUND),
    "on_two_ranks": ("all_reduce", NUM, 1.0),
}


def program(context):
    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional

    from labkit.watch.traffic import CollectiveCounter

    one, whole = torch.ones(NUM), torch.ones(RANKS * NUM)
    pair = dist.new_group([0, 1])
    operations = {
        "all_reduce": lambda: dist.all_reduce(one),
        "broadcast": lambda: dist.broadcast(one, 0),
        "reduce": lambda: dist.reduce(one, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, one),
        "all_gather_list": lambda: dist.all_gather(list(whole.chunk(RANKS)), one),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(one, whole),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty(NUM), one),
        "functional_all_reduce": lambda: functional.wait_tensor(functional.all_reduce(one, "sum", dist.group.WORLD)),
        "functional_all_gather": lambda: functional.wait_tensor(functional.all_gather_tensor(one, 0, dist.group.WORLD)),
        "on_two_ranks": lambda: context.rank < 2 and dist.all_reduce(one, group=pair),
    }
    found = {}
    for name, operation in operations.items():
        with CollectiveCounter() as counter:
            operation()
        found[name] = [(seen.kind, seen.num_elements, seen.num_bytes, seen.weight, seen.ranks) for seen in counter.seen]
    with CollectiveCounter() as counter:
        dist.barrier()
    found["barrier"] = counter.seen
    return found


@pytest.mark.ranks
def test_the_counter_sees_each_kind_its_whole_and_its_group(folder):
    for rank, found in enumerate(launch(program, None, ranks=RANKS, folder=folder).values):
        assert found.pop("barrier") == []
        for name, (kind, elements, share) in EXPECTED.items():
            group = (0, 1) if name == "on_two_ranks" else (0, 1, 2)
            expected = [(kind, elements, 4 * elements, pytest.approx(share), group)] if rank in group else []
            assert found[name] == expected, name


def test_a_group_of_one_sends_nothing_and_a_message_is_sent_whole():
    assert {sent_share(kind, 1) for kind in ("all_reduce", "all_gather", "reduce_scatter", "broadcast")} == {0}
    assert sent_share("send", 2) == 1
    assert sent_share("gather", 4) == 3 / 4  # of a part: all but the root send theirs
    assert sent_share("scatter", 4) == 3 / 4  # of a part: the root sends three, the others none
