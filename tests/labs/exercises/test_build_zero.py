"""A sharded optimizer, wrong in one way each: refused with the sentence for it; the right one is accepted."""

import random

import numpy as np
import pytest
from answers import written

import labkit
from labkit.labs.zero_stages.build import Case, Seen, _judge, drawn_cases

LAB = labkit.lab("zero-stages")
NAME = "sharded-optimizer"
RIGHT = LAB.solution(NAME).code

WRONG = {
    "a sum": (("self.part.grad /= self.world_size", "pass"), "take the mean gradient"),
    "half on three ranks": (("self.part.grad /= self.world_size", "self.part.grad /= 2"), "take the mean gradient"),
    "not gathered": (
        (
            "dist.all_gather_into_tensor(whole, self.part.detach())",
            "whole.copy_(self.flat([p.detach() for p in self.parameters]))\n"
            "        whole[self.rank * self.share : (self.rank + 1) * self.share] = self.part.detach()",
        ),
        "gather what each rank updated",
    ),
    "rounded down": (
        ("-(-sum(self.sizes) // self.world_size)", "sum(self.sizes) // self.world_size"),
        "did not come to its",
    ),
    "keeps it whole": (("        whole = torch.empty", "        self.whole = whole = torch.empty"), "beside weights"),
    "sends all": (
        (
            "dist.reduce_scatter_tensor(self.part.grad, self.flat([p.grad for p in self.parameters]))",
            "flat = self.flat([p.grad for p in self.parameters])\n        dist.all_reduce(flat)\n"
            "        self.part.grad.copy_(flat[self.rank * self.share : (self.rank + 1) * self.share])",
        ),
        "1.5 times the bytes",
    ),
    "another Adam": (("torch.optim.Adam(", "torch.optim.AdamW("), "not those of the plain optimizer"),
    "returns nothing": (
        ("    return MyOptimizer(parameters, lr)", "    MyOptimizer(parameters, lr)"),
        "it returned NoneType",
    ),
}
SLOW = {"half on three ranks", "another Adam", "rounded down", "a sum"}


@pytest.mark.ranks
def test_the_solution_equals_the_plain_optimizer():
    assert LAB.check(written(RIGHT, "my_optimizer"), NAME).passed


@pytest.mark.ranks
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] if name in SLOW else []) for name in WRONG])
def test_what_is_wrong_is_said(name):
    (before, after), sentence = WRONG[name]
    assert RIGHT.count(before) == 1, before
    assert sentence in str(LAB.check(written(RIGHT.replace(before, after), "my_optimizer"), NAME, seed=5))


@pytest.mark.ranks
def test_where_it_begins_is_refused_for_its_bytes():
    begun = LAB.reset_exercise(NAME).code.rpartition("\n\n\n")[0]
    assert "the state of all parameters" in str(LAB.check(written(begun, "my_optimizer"), NAME, seed=5))


def test_cases_are_never_a_multiple_of_the_ranks():
    for seed in range(200):
        for case in drawn_cases(random.Random(seed)):
            assert case.count % case.ranks and case.share * case.ranks > case.count


CASE = Case(ranks=2, shapes=((100, 10), (1,)), seed=0)
WEIGHTS = [np.linspace(0, 1, 1001, dtype=np.float32) + step for step in range(3)]


def judged(**how):
    given = {
        "weights": WEIGHTS,
        "plain": WEIGHTS,
        "cut": WEIGHTS,
        "kept_bytes": 8 * 501,
        "sent_bytes": [4008.0] * 3,
        "ops": [],
    }
    return _judge(CASE, [Seen(**{**given, **how})] * 2)


def test_bytes_and_bits_are_judged_by_the_formula():
    off = [one.copy() for one in WEIGHTS]
    off[2][5] = np.nextafter(off[2][5], np.float32(9))
    assert judged() == "" and judged(cut=off) == ""
    assert "after step 2" in judged(weights=off)
    assert judged(weights=off, cut=off) == "", "equal to the plain optimizer on tensors that are cut"
    assert "4,008" in judged(kept_bytes=8 * 1001) and judged(kept_bytes=12 * 501) == ""
    assert "sends nothing" in judged(sent_bytes=[0.0] * 3) and "1.5 times" in judged(sent_bytes=[6012.0] * 3)
