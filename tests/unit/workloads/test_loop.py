"""The plain loop, held against a loop written out."""

import torch
from torch.utils.data import DataLoader

from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.workloads.digits import Digits
from labkit.workloads.loop import keep_weights, train
from labkit.workloads.models import build

torch.optim.SGD([torch.zeros(1)], lr=1.0)  # the first optimizer of a process imports for a second


def test_the_loop_is_sgd_with_momentum_on_the_mean_cross_entropy(tmp_path):
    data, probe = Digits(40, torch.float64), Probe(tmp_path / "rank.jsonl")
    model = build("mlp", seed=1, dtype=torch.float64)
    train(model, lambda epoch: DataLoader(data, 16), probe, epochs=2, lr=0.1, momentum=0.9)
    keep_weights(model, probe)
    probe.close()

    by_hand = build("mlp", seed=1, dtype=torch.float64)
    velocity = [torch.zeros_like(p) for p in by_hand.parameters()]
    losses = []
    for start in (0, 16, 32) * 2:
        rows = slice(start, start + 16)
        log_likelihood = by_hand(data.images[rows]).log_softmax(1)
        loss = -log_likelihood[range(len(log_likelihood)), data.labels[rows]].mean()
        losses.append(loss.item())
        for p, v, g in zip(by_hand.parameters(), velocity, torch.autograd.grad(loss, by_hand.parameters()), strict=True):
            v.mul_(0.9).add_(g)
            p.data.sub_(0.1 * v)
    for p, expected in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(p, expected, rtol=0, atol=1e-14)

    log = read_rank(probe.path)
    torch.testing.assert_close([s.scalar("loss_local") for s in log.steps], losses, rtol=0, atol=1e-14)
    assert [s.scalar("batch_samples") for s in log.steps] == [16, 16, 8] * 2
    assert [span.name for span in log.steps[0].spans] == ["fetch", "forward", "backward", "optimizer"]
    assert log.digests.keys() == {"weights"}


def test_a_cap_ends_the_loop_and_no_further_loader_is_made(tmp_path):
    made, ended = [], []

    def loader(epoch):
        made.append(epoch)
        return DataLoader(Digits(20), 10)

    probe = Probe(tmp_path / "rank.jsonl")
    train(build("mlp", seed=1), loader, probe, epochs=1000, lr=0.1, max_steps=3, after_epoch=ended.append)
    probe.close()
    assert (made, ended, len(read_rank(probe.path).steps)) == ([0, 1], [0, 1], 3)
