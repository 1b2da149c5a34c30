"""What the doctor says of evaluations, on records made by hand."""

from __future__ import annotations

import pytest

from labkit.detect import ask
from labkit.record.schema import Event, RankLog, Run, Step
from labkit.watch.outside.divisions import is_averaged

from ..builders import head, record_of

S = 1_000_000_000


def said(*of_ranks):
    """What is said of ranks, each given by its events; a run of ten seconds."""
    steps = tuple(Step(at, 0, at * S, (at + 1) * S, counts={"updates": 1}) for at in range(10))
    logs = tuple(
        RankLog(head(rank, len(of_ranks), watched_by="doctor"), steps, tuple(events), (), {}, True)
        for rank, events in enumerate(of_ranks)
    )
    verdict = ask("evaluation-metric", record_of(Run("variant", logs, 10.0)))
    assert verdict.cause and str(verdict)
    return verdict.status, verdict.reason


def evaluated(rows, size=100, seconds=0.1, number=0):
    fields = {"loader": 1, "number": number, "rows": rows, "size": size, "seconds": seconds, "updates": 10}
    return Event("evaluation_pass", 9, 0, fields)


def reduced(*values, rows=50, op="SUM", averaged=False, by_hand=False):
    fields = {"operation": "all_reduce", "op": op, "values": " ".join(map(str, values)), "elements": len(values)}
    return Event(
        "reduced", 9, 0, fields | {"rows": rows, "updates": 10, "averaged": averaged, "where": "a.py:7", "by_hand": by_hand}
    )


def of_batches(plain, weighted):
    fields = {"plain": plain, "weighted": weighted, "batches": 3, "fewest": 1, "most": 16, "rows": 33}
    return Event("batch_means", 9, 0, fields | {"where": "a.py:5"})


def by_hand(value, rows):
    return reduced(value, rows=rows, averaged=True, by_hand=True)


CLEAR = ("clear", "each-sample-counts-once")


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([[evaluated(50)], [evaluated(50)]], CLEAR),
        ([[], []], ("not_applicable", "no-evaluation-seen")),
        ([[evaluated(0)], [evaluated(0)]], ("found", "nothing-is-evaluated")),
        # batches of 16, 16 and 1
        ([[evaluated(33), of_batches(0.5, 0.4)]], ("found", "mean-of-unequal-batches")),
        ([[evaluated(33), of_batches(0.404, 0.4)]], ("inconclusive", "mean-of-unequal-batches")),
        ([[evaluated(33), of_batches(0.4001, 0.4)]], ("clear", "one-rank-evaluates-all")),
        # without a loader: accuracies of 24 and 6 samples; what is no share of them may be a mean of something else
        ([[by_hand(0.75, 24)], [by_hand(0.5, 6)]], ("found", "means-of-unequal-parts")),
        ([[by_hand(0.77, 24)], [by_hand(0.5, 6)]], CLEAR),
        ([[by_hand(0.75, 24)], [by_hand(0.5, 24)]], CLEAR),
        ([[evaluated(100)]], ("clear", "one-rank-evaluates-all")),
        # 21 samples, 22 evaluated
        (
            [[evaluated(11, 21), reduced(7.0, 11.0)], [evaluated(11, 21), reduced(8.0, 11.0)]],
            ("found", "repeated-samples-count"),
        ),
        ([[evaluated(11, 21), reduced(7.0)], [evaluated(11, 21), reduced(8.0)]], ("found", "repeated-samples-count")),
        ([[evaluated(11, 21), reduced(7.0, 11.0)], [evaluated(11, 21), reduced(8.0, 10.0)]], CLEAR),  # left out by hand
        ([[evaluated(11, 21)], [evaluated(11, 21)]], ("inconclusive", "repeated-samples-may-count")),
        (
            [[evaluated(500, 999), reduced(7.0)], [evaluated(500, 999), reduced(8.0)]],
            ("inconclusive", "repeated-samples-may-count"),
        ),
        ([[evaluated(100)], [evaluated(100)]], CLEAR),  # each rank all of it
        # unequal parts
        (
            [
                [evaluated(20, 26), reduced(0.5, rows=20, averaged=True)],
                [evaluated(6, 26), reduced(0.9, rows=6, averaged=True)],
            ],
            ("found", "means-of-unequal-parts"),
        ),
        ([[evaluated(20, 26), reduced(0.5, rows=20)], [evaluated(6, 26), reduced(0.9, rows=6)]], CLEAR),
        (
            [[evaluated(20, 26), reduced(9, rows=20, averaged=True)], [evaluated(6, 26), reduced(5, rows=6, averaged=True)]],
            CLEAR,  # right answers
        ),
        (
            [
                [evaluated(20, 26), reduced(0.5, rows=20, averaged=True), reduced(20, rows=20)],
                [evaluated(6, 26), reduced(0.9, rows=6, averaged=True), reduced(6, rows=6)],
            ],
            CLEAR,  # the count is reduced too
        ),
        (
            [
                [evaluated(13, 26), reduced(0.5, rows=13, averaged=True)],
                [evaluated(13, 26), reduced(0.9, rows=13, averaged=True)],
            ],
            CLEAR,
        ),
        # one rank alone
        ([[evaluated(100, seconds=6.0)], []], ("found", "one-rank-evaluates")),
        ([[evaluated(100, seconds=0.5)], []], CLEAR),
        ([[Event("reduced_again", 3, 0, {"where": "a.py:9"})], []], ("found", "sum-is-summed-again")),
    ],
)
def test_evaluations(ranks, expected):
    assert said(*ranks) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x):\n    dist.all_reduce(x)\n    return x / dist.get_world_size()", True),
        ("def f(x):\n    dist.all_reduce(x)\n    x /= world_size", True),
        ("def f(x):\n    dist.all_reduce(x)\n    return x.item() / self.world", True),
        ("def f(x):\n    dist.all_gather(every, x)\n    return torch.stack(every).mean()", True),
        ("def f(x):\n    dist.all_gather(every, x)\n    return sum(every) / len(every)", True),
        ("def f(x):\n    dist.all_reduce(x)\n    return x[0] / x[1]", False),
        ("def f(x):\n    dist.all_reduce(x)\n    return x / len(data)", False),
        ("def f(x):\n    dist.all_reduce(x)\n    return y / world_size", False),
        ("def f(x):\n    dist.all_reduce(x)\n    return x.mean()", False),
        ("def f(x):\n    return x / world_size\ndef g(x):\n    dist.all_reduce(x)", False),
    ],
)
def test_whether_a_source_divides_by_the_ranks(tmp_path, source, expected):
    file = tmp_path / "script.py"
    file.write_text(source)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "dist.all" in text)
    assert is_averaged(str(file), line) is expected
