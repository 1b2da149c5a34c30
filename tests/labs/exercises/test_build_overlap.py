"""Data parallelism from its parts, wrong in one way each: refused with the sentence for it; the right one is accepted."""

import dataclasses

import numpy as np
import pytest
from answers import written

import labkit
from labkit.labs.overlap.build import Case, Seen, _gradients, _traffic

LAB = labkit.lab("overlap")
NAME = "bucketed-ddp"
RIGHT = LAB.solution(NAME).code

WRONG = {
    "no broadcast": (("dist.broadcast(parameter.data, src=0)", "pass"), "begin with different weights"),
    "a sum": (("flat /= dist.get_world_size()", "pass"), "are sums over the ranks"),
    "half on three ranks": (("flat /= dist.get_world_size()", "flat /= 2"), "on 3 ranks"),
    "no wait": (("work.wait()", "pass"), "Wait for each bucket"),
    "nothing put back": (("parameter.grad.copy_(part.view_as(parameter))", "pass"), "put its sums back"),
    "waits in the hook": (
        ("async_op=True)))", "async_op=True)))\n                under_way[-1][2].wait()"),
        "async_op=True",
    ),
    "one bucket": (("size >= cap_bytes", "False"), "close a bucket when it is full"),
    "one a gradient": (("size >= cap_bytes", "buckets[-1]"), "put many gradients into one"),
    "once": (("            missing[number] = len(buckets[number])\n", ""), "nothing is reduced"),
    "a bucket twice": (
        (
            "dist.all_reduce(flat, async_op=True)",
            "dist.all_reduce(flat, async_op=True)))\n"
            "                under_way.append((number, flat, dist.all_reduce(flat, async_op=True)",
        ),
        "send each of them once",
    ),
    "the frozen too": ((" if p.requires_grad]", "]"), "t require gradient"),
    "returns nothing": (("    return finish\n", "    return None\n"), "it returned NoneType"),
}
SLOW = {"waits in the hook", "a bucket twice", "one a gradient", "nothing put back", "the frozen too"}


def changed(before, after):
    assert RIGHT.count(before) == 1, before
    return written(RIGHT.replace(before, after), "my_ddp")


@pytest.mark.ranks
def test_the_solution_equals_torch_s_own():
    assert LAB.check(written(RIGHT, "my_ddp"), NAME).passed


@pytest.mark.ranks
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] if name in SLOW else []) for name in WRONG])
def test_what_is_wrong_is_said(name):
    (before, after), sentence = WRONG[name]
    assert sentence in str(LAB.check(changed(before, after), NAME, seed=5))


AT_THE_END = """
import torch
import torch.distributed as dist

def my_ddp(module, cap_bytes):
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=0)
    trained = [p for p in module.parameters() if p.requires_grad]

    def finish():
        for start in range(0, len(trained), 5):
            some = trained[start:start + 5]
            flat = torch.cat([p.grad.reshape(-1) for p in some]) / dist.get_world_size()
            dist.all_reduce(flat)
            for p, part in zip(some, flat.split([p.numel() for p in some])):
                p.grad.copy_(part.view_as(p))

    return finish
"""


@pytest.mark.ranks
def test_buckets_that_leave_when_the_backward_pass_is_over_are_refused():
    assert "leaves when all gradients are there" in str(LAB.check(written(AT_THE_END, "my_ddp"), NAME, seed=5))


@pytest.mark.ranks
def test_where_it_begins_is_refused_and_torch_s_own_is_no_answer():
    begun = LAB.reset_exercise(NAME).code.rpartition("\n\n\n")[0]
    assert "begin with different weights" in str(LAB.check(written(begun, "my_ddp"), NAME, seed=5))

    def wraps(module, cap_bytes):
        from torch.nn.parallel import DistributedDataParallel

        DistributedDataParallel(module)
        return lambda: None

    assert "without DistributedDataParallel" in str(LAB.check(wraps, NAME, seed=5))


# the judge, without ranks

CASE = Case(ranks=2, widths=(20, 20, 20, 20, 20), frozen=1, cap_bytes=1500, seed=0)
GRADIENTS = np.linspace(-1, 1, 1260, dtype=np.float32)


def test_on_two_ranks_a_bit_decides_and_on_three_it_does_not():
    off = GRADIENTS.copy()
    off[7] = np.nextafter(off[7], np.float32(2))
    assert _gradients(CASE, GRADIENTS, GRADIENTS, 0) == ""
    assert "up to rounding" in _gradients(CASE, off, GRADIENTS, 0)
    assert _gradients(dataclasses.replace(CASE, ranks=3), off, GRADIENTS, 0) == ""
    assert "not DDP's" in _gradients(dataclasses.replace(CASE, ranks=3), off + 1e-3, GRADIENTS, 0)


def test_buckets_are_counted_weighed_and_seen_to_leave_early():
    def judged(*sent, by_itself=True):
        return _traffic(CASE, Seen(GRADIENTS, list(sent), by_itself), GRADIENTS.nbytes, 0)

    right = [("all_reduce", 1680, known) for known in (2, 4, 6)]
    assert judged(*right) == ""
    assert "when all gradients are there" in judged(*[("all_reduce", 1680, 6)] * 3)
    assert "waits inside" in judged(*right, by_itself=False)
    assert "send each of them once" in judged(*right, ("all_reduce", 4, 6))
    assert "reduce nothing: broadcast" in judged(*right, ("broadcast", 4, 6))
    assert "put many" in judged(*[("all_reduce", 504, 1)] * 10)
