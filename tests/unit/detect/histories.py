"""Runs drawn at random: W ranks read N samples in batches of B over some epochs, and from one epoch on something is wrong.

None uses labkit. A history is ids by epoch, by rank, by step, as `builders.run_of` takes them.
"""

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from ..builders import in_batches, shares


@dataclass(frozen=True)
class Plan:
    """What is drawn: sizes, the seed of all orders, and where the fault begins."""

    ranks: int
    size: int
    batch: int
    epochs: int
    begins: int
    rank: int
    seed: int
    drop_last: bool

    def order(self, epoch: int, rank: int = 0) -> list[int]:
        return random.Random(f"{self.seed} {epoch} {rank}").sample(range(self.size), self.size)

    def proper(self, epoch: int) -> list[list[list[int]]]:
        return [in_batches(s, self.batch) for s in shares(self.order(epoch), self.ranks, self.drop_last)]

    def history(self, wrong) -> list[list[list[list[int]]]]:
        """Proper epochs, and from `begins` on those that `wrong(plan, epoch)` makes of them."""
        return [wrong(self, epoch) if epoch >= self.begins else self.proper(epoch) for epoch in range(self.epochs)]


@st.composite
def plans(draw, ranks=(1, 8), size=(2, 200), epochs=(1, 10)):
    number = draw(st.integers(*ranks))
    samples = draw(st.integers(*size))
    times = draw(st.integers(*epochs))
    return Plan(
        ranks=number,
        size=samples,
        batch=draw(st.one_of(st.integers(1, 16), st.integers(1, 2 * samples))),
        epochs=times,
        begins=draw(st.integers(0, times - 1)),
        rank=draw(st.integers(0, number - 1)),
        seed=draw(st.integers(0, 10**6)),
        drop_last=draw(st.booleans()) and samples >= number,
    )


# What goes wrong


def identical(plan, epoch):
    return [in_batches(plan.order(epoch), plan.batch)] * plan.ranks


def identical_from_a_step_on(plan, epoch):
    """In the first faulty epoch from some place in the order on, then throughout."""
    order, cut = plan.order(epoch), plan.seed % plan.size if epoch == plan.begins else 0
    return [in_batches(order[:cut][rank :: plan.ranks] + order[cut:], plan.batch) for rank in range(plan.ranks)]


def everyone_is_one_rank(plan, epoch):
    return [plan.proper(epoch)[plan.rank]] * plan.ranks


def own_shuffles(plan, epoch):
    return [in_batches(plan.order(epoch, rank + 1), plan.batch) for rank in range(plan.ranks)]


def own_permutations(plan, epoch):
    return [in_batches(shares(plan.order(epoch, r + 1), plan.ranks)[r], plan.batch) for r in range(plan.ranks)]


def overlap(plan, epoch):
    """Contiguous shards, each longer than its due by a half, around the end."""
    due, order = -(-plan.size // plan.ranks), plan.order(epoch) * 3
    return [in_batches(order[r * due : r * due + due + -(-due // 2)], plan.batch) for r in range(plan.ranks)]


def twins(plan, epoch):
    read = plan.proper(epoch)
    return [read[(plan.rank + 1) % plan.ranks] if rank == plan.rank else own for rank, own in enumerate(read)]


def half_unread(plan, epoch):
    return [in_batches(share, plan.batch) for share in shares(plan.order(epoch)[: plan.size // 2], plan.ranks)]


def double_sharded(plan, epoch):
    dealt = shares(plan.order(epoch), plan.ranks)
    return [in_batches(share[rank :: plan.ranks], plan.batch) for rank, share in enumerate(dealt)]


def forgotten(plan, epoch):
    return plan.proper(plan.begins)


def alternating(plan, epoch):
    return plan.proper(plan.begins + (epoch - plan.begins) % 2)


def forgotten_on_one_rank(plan, epoch):
    read = plan.proper(epoch)
    return [plan.proper(plan.begins)[rank] if rank == plan.rank else own for rank, own in enumerate(read)]


def _workers(batches, times=2):
    return [batch for batch in batches for _ in range(times)]


def workers(plan, epoch):
    return [_workers(of_rank) for of_rank in plan.proper(epoch)]


def workers_of_one_rank(plan, epoch):
    return [_workers(own) if rank == plan.rank else own for rank, own in enumerate(plan.proper(epoch))]


# What is right


def proper(plan, epoch):
    return plan.proper(epoch)


def loader_drops_last(plan, epoch):
    return [in_batches(s, plan.batch, drop_last=True) for s in shares(plan.order(epoch), plan.ranks, plan.drop_last)]


def with_replacement(plan, epoch):
    drawn = random.Random(f"{plan.seed} {epoch} drawn")
    return [in_batches([drawn.randrange(plan.size) for _ in range(-(-plan.size // plan.ranks))], plan.batch)
            for _ in range(plan.ranks)]  # fmt: skip


def weighted(plan, epoch):
    """Some classes weigh ten times as much as others."""
    drawn = random.Random(f"{plan.seed} {epoch} weighted")
    weights = [10 if sample % 5 == 0 else 1 for sample in range(plan.size)]
    return [in_batches(drawn.choices(range(plan.size), weights, k=-(-plan.size // plan.ranks)), plan.batch)
            for _ in range(plan.ranks)]  # fmt: skip


def filled(plan, epoch):
    whole = plan.ranks * plan.batch
    order = plan.order(epoch)
    order += (order * whole)[: -plan.size % whole]
    return [[b[r * plan.batch : (r + 1) * plan.batch] for b in in_batches(order, whole)] for r in range(plan.ranks)]


def by_hand_without_padding(plan, epoch):
    """Every W-th of one order: some ranks read a sample more than others."""
    return [in_batches(plan.order(epoch)[rank :: plan.ranks], plan.batch) for rank in range(plan.ranks)]


def curriculum(plan, epoch):
    """More of the data in each epoch, all of it in the last."""
    part = max(1, plan.size * (epoch + 1) // plan.epochs)
    easy = random.Random(f"{plan.seed} {epoch}").sample(range(part), part)
    return [in_batches(share, plan.batch) for share in shares(easy, plan.ranks)]


def in_turn(plan, epoch):
    """A third of the data in each epoch, in turn."""
    third = -(-plan.size // 3)
    part = plan.order(1000 + epoch // 3)[epoch % 3 * third : (epoch % 3 + 1) * third]
    return [in_batches(part[rank :: plan.ranks], plan.batch) for rank in range(plan.ranks)]
