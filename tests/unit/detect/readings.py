"""How ranks may read N samples in batches of B: ways that are right, ways that are wrong. None uses labkit.

Each is called with (N, W, B, seed) and gives ids by epoch, by rank, by step, for two epochs.
"""

import random

from ..builders import Reading, in_batches, shares, shuffled


def _epochs(of_epoch) -> Reading:
    return [of_epoch(0), of_epoch(1)]


def fixed(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(share, batch) for share in shares(shuffled(size, seed + e), ranks)])


def sampler_drop_last(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(s, batch) for s in shares(shuffled(size, seed + e), ranks, drop_last=True)])


def loader_drop_last(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(s, batch, drop_last=True) for s in shares(shuffled(size, seed + e), ranks)])


def filled_from_the_start(size, ranks, batch, seed=0, strided=False) -> Reading:
    def of_epoch(epoch):
        order = shuffled(size, seed + epoch)
        order += (order * ranks * batch)[: -size % (ranks * batch)]
        whole = in_batches(order, ranks * batch)
        if strided:
            return [[b[rank::ranks] for b in whole] for rank in range(ranks)]
        return [[b[rank * batch : (rank + 1) * batch] for b in whole] for rank in range(ranks)]

    return _epochs(of_epoch)


def filled_strided(size, ranks, batch, seed=0) -> Reading:
    return filled_from_the_start(size, ranks, batch, seed, strided=True)


def with_replacement(size, ranks, batch, seed=0, draws=None) -> Reading:
    def of_rank(epoch, rank):
        own = random.Random(seed * 1000 + epoch * 100 + rank)
        return in_batches([own.randrange(size) for _ in range(draws or -(-size // ranks))], batch)

    return _epochs(lambda e: [of_rank(e, rank) for rank in range(ranks)])


def all_with_replacement(size, ranks, batch, seed=0) -> Reading:
    return with_replacement(size, ranks, batch, seed, draws=size)


def identical(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(shuffled(size, seed + e), batch)] * ranks)


def everyone_is_rank_0(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(shares(shuffled(size, seed + e), ranks)[0], batch)] * ranks)


def own_shuffles(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(shuffled(size, seed + e + 100 * (r + 1)), batch) for r in range(ranks)])


def own_permutations(size, ranks, batch, seed=0) -> Reading:
    """A sampler that is seeded by rank: each takes its share of another permutation."""

    def of_rank(epoch, rank):
        return in_batches(shares(shuffled(size, seed + epoch + 100 * (rank + 1)), ranks)[rank], batch)

    return _epochs(lambda e: [of_rank(e, rank) for rank in range(ranks)])


def overlapping_shards(size, ranks, batch, seed=0) -> Reading:
    """Contiguous shards, each longer than its due by a quarter, around the end."""
    due = -(-size // ranks)

    def of_epoch(epoch):
        order = shuffled(size, seed + epoch)
        return [in_batches((order * 2)[rank * due : rank * due + due + due // 4], batch) for rank in range(ranks)]

    return _epochs(of_epoch)


def double_sharded(size, ranks, batch, seed=0) -> Reading:
    return _epochs(lambda e: [in_batches(s[r::ranks], batch) for r, s in enumerate(shares(shuffled(size, seed + e), ranks))])


def _workers(share, batch, workers) -> list[list[int]]:
    """Batches of several DataLoader workers that each read the whole share, in turn."""
    return [b for b in in_batches(share, batch) for _ in range(workers)]


def unsharded(size, ranks, batch, seed=0, workers=2) -> Reading:
    return _epochs(lambda e: [_workers(shuffled(size, seed + e), batch, workers)] * ranks)


def unsharded_workers(size, ranks, batch, seed=0, workers=2) -> Reading:
    """Sharded over ranks, but not over their workers."""
    return _epochs(lambda e: [_workers(s, batch, workers) for s in shares(shuffled(size, seed + e), ranks)])


def same_order(size, ranks, batch, seed=0) -> Reading:
    return fixed(size, ranks, batch, seed)[:1] * 2


def in_stored_order(size, ranks, batch, seed=0) -> Reading:
    return [[in_batches(share, batch) for share in shares(list(range(size)), ranks)]] * 2
