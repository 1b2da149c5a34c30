"""What is read from the graph of a loss: means and sums, of how many targets, times what."""

import pytest
import torch
from torch.nn import functional as F

from labkit.watch.outside.losses import terms_of
from labkit.watch.outside.weighting import divisors_in

N, C = 8, 3
LABELS = torch.tensor([-100, 0, 1, 2, 0, 1, 2, 0])
MASK = LABELS >= 0


def scores():
    return torch.linspace(-1, 1, N * C).reshape(N, C).requires_grad_().mul(1.0)


FORMS = {
    "mean": (lambda: F.cross_entropy(scores(), LABELS), "mean", 1, 7, ()),
    "divided": (lambda: F.cross_entropy(scores(), LABELS) / 4, "mean", 1 / 4, 7, (4,)),
    "divided twice": (lambda: F.cross_entropy(scores(), LABELS) / 4 / 4, "mean", 1 / 16, 7, (4, 4)),
    "divided in place": (lambda: F.cross_entropy(scores(), LABELS).div_(4), "mean", 1 / 4, 7, (4,)),
    "multiplied": (lambda: 0.5 * F.cross_entropy(scores(), LABELS), "mean", 1 / 2, 7, ()),
    "smoothed": (lambda: F.cross_entropy(scores(), LABELS, label_smoothing=0.1) / 2, "mean", 1 / 2, 7, (2,)),
    "weighted": (lambda: F.cross_entropy(scores(), LABELS, weight=torch.ones(C) * 2), "mean", 1, 7, ()),
    "sum": (lambda: F.cross_entropy(scores(), LABELS, reduction="sum") / torch.tensor(14), "sum", 1 / 2, 7, (14,)),
    "masked": (lambda: (F.cross_entropy(scores(), LABELS, reduction="none") * MASK).sum() / MASK.sum(), "sum", 1, 7, (7,)),
    "picked": (lambda: F.cross_entropy(scores(), LABELS, reduction="none")[MASK].mean(), "mean", 1, 7, ()),
    "square": (lambda: F.mse_loss(scores(), torch.zeros(N, C)), "mean", 1, N * C, ()),
    "own square": (lambda: scores().square().mean(), "mean", 1, N * C, ()),
    "elements divided": (lambda: (scores().square() / 2).mean(), "mean", 1 / 2, N * C, ()),
    "of a list": (lambda: sum(scores().square().mean() for _ in range(4)) / 4, "mean", 1 / 4, N * C, (4,)),
    "of a stack": (lambda: torch.stack([scores().mean(), scores().mean()]).mean(), "mean", 1 / 2, N * C, ()),
    "a sentence each": (lambda: (scores().square().sum(1) / 3).mean(), "mean", 1 / 3, N, ()),
    "one less": (lambda: 1 - scores().mean(), "mean", -1, N * C, ()),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_loss_is_read(name):
    made, kind, share, targets, divisors = FORMS[name]
    terms = terms_of(made().grad_fn)
    heaviest = max(terms, key=lambda term: abs(term.share))
    assert (heaviest.kind, heaviest.targets, heaviest.divisors) == (kind, targets, divisors)
    assert heaviest.share == pytest.approx(share)


def test_parts_that_are_added_are_told_apart():
    terms = terms_of((F.cross_entropy(scores(), LABELS) + 0.1 * scores().square().mean()).div(2).grad_fn)
    assert [(term.name, round(term.factor, 6)) for term in terms] == [("NllLoss", 0.5), ("mean", 0.05)]


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, g):  # pyright: ignore[reportIncompatibleMethodOverride]
        return g.expand(N, C)


def test_what_is_not_known_is_said_to_be_other():
    assert terms_of(Own.apply(scores()).grad_fn)[0].kind == "other"
    assert terms_of((scores().mean() * scores().mean()).grad_fn)[0].kind == "other"  # no number multiplies it
    long = scores().mean()
    for _ in range(200):
        long = long + 0
    assert terms_of(long.grad_fn)[-1].name == "too long"


def test_the_source_says_what_losses_are_divided_by(tmp_path):
    script = tmp_path / "a.py"
    script.write_text(
        "def train(x):\n    loss = f(x) / world_size\n    loss /= K\n"
        "    x.grad /= 3\n    log(loss.item() / 7)\n    loss.backward()\n"
        "def other():\n    return loss.div(5)\n"
    )
    assert divisors_in(str(script), 6) == ["world_size", "K"]
    assert divisors_in(str(script), 7) == ["5"]
    assert divisors_in(str(tmp_path / "none.py"), 1) == []
