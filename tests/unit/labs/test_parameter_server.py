"""The parameter server alone: its rule, called by this thread and by several, without a process."""

import threading

import pytest
import torch
from torch import nn

from labkit.labs.stale_gradients.server import Message, ParameterServer, Service, flat, split_like


def server(*, workers, pushes, lr=0.5, momentum=0.0, **how):
    model = nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    return model, ParameterServer(model, optimizer, workers=workers, total_pushes=pushes, **how)


GRADIENT = torch.tensor([1.0, 2.0])


def test_a_push_is_applied_and_answered_with_the_newest_weights_and_their_version():
    model, held = server(workers=2, pushes=4)
    assert held.pull(0).version == held.pull(1).version == 0
    first = held.push(0, GRADIENT)
    assert (first.applied_at, first.version, first.stop) == (0, 1, False) and first.weights.tolist() == [0.5, 0.0]
    second = held.push(1, GRADIENT)
    assert (second.applied_at, second.version) == (1, 2) and second.weights.tolist() == [0.0, -1.0]
    assert model.weight.flatten().tolist() == [0.0, -1.0]


def test_weights_are_handed_out_as_often_as_gradients_are_wanted_and_the_last_pushes_are_one_of_each():
    _, held = server(workers=3, pushes=7)
    for rank in range(3):
        held.pull(rank)
    stops = [held.push(rank, GRADIENT).stop for rank in (0, 0, 1, 0, 2, 1, 0)]
    assert stops == [False] * 4 + [True] * 3
    held.wait_until_done()


def test_momentum_is_the_servers():
    model, held = server(workers=1, pushes=2, lr=1.0, momentum=0.5)
    held.pull(0)
    held.push(0, GRADIENT)
    held.push(0, GRADIENT)
    assert model.weight.flatten().tolist() == [1 - 1 - 1.5, 1 - 2 - 3]


def test_no_push_is_taken_before_all_have_pulled_the_first_weights():
    _, held = server(workers=2, pushes=4)
    held.pull(0)
    early = threading.Thread(target=held.push, args=(0, GRADIENT), daemon=True)
    early.start()
    early.join(0.05)
    assert early.is_alive()
    late = held.pull(1)
    early.join(10)
    assert (late.version, late.weights.tolist()) == (0, [1.0, 1.0]) and not early.is_alive()


def test_fewer_pushes_than_workers_are_refused():
    with pytest.raises(ValueError, match="3 workers push at least once"):
        server(workers=3, pushes=2)


def work(held, rank, order, gate=None):
    reply = held.pull(rank)
    while not reply.stop:
        if gate is not None:
            gate.wait()
        reply = held.push(rank, GRADIENT)
        order.append((reply.applied_at, rank))


def in_threads(held, workers, gates=()):
    order: list[tuple[int, int]] = []
    gates = dict(gates)
    threads = [
        threading.Thread(target=work, args=(held, rank, order, gates.get(rank)), daemon=True) for rank in range(workers)
    ]
    for thread in threads:
        thread.start()
    return threads, order


def test_in_turn_the_order_is_that_of_ranks_whatever_the_threads_do():
    _, held = server(workers=4, pushes=40, in_turn=True)
    threads, order = in_threads(held, 4)
    for thread in threads:
        thread.join(10)
    assert [rank for _, rank in sorted(order)] == [0, 1, 2, 3] * 10


def test_a_bound_holds_back_who_is_too_far_ahead_until_the_slow_one_pushes():
    _, held = server(workers=2, pushes=12, bound=2)
    gate = threading.Event()
    threads, order = in_threads(held, 2, {1: gate}.items())
    threads[0].join(0.1)
    assert len(order) == 2 and threads[0].is_alive()  # a third push was taken, its answer is held back
    assert held._pushed == [3, 0]
    gate.set()
    for thread in threads:
        thread.join(10)
    assert len(order) == 12 and not any(thread.is_alive() for thread in threads)


def test_an_error_of_one_worker_wakes_those_that_wait():
    _, held = server(workers=2, pushes=8, in_turn=True)
    held.pull(0)
    held.pull(1)
    caught: list[str] = []

    def wait_for_turn():
        try:
            held.push(1, GRADIENT)
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=wait_for_turn, daemon=True)
    thread.start()
    held.fail(RuntimeError("rank 0 is gone"))
    thread.join(10)
    assert caught == ["rank 0 is gone"]
    with pytest.raises(RuntimeError, match="rank 0 is gone"):
        held.wait_until_done()


def test_a_worker_that_is_gone_ends_the_waiting_for_it(monkeypatch):
    def closed(*_args, **_how):
        raise RuntimeError("Connection closed by peer")

    monkeypatch.setattr(torch.distributed, "recv", closed)
    _, held = server(workers=2, pushes=4)
    service = Service(held, 2, GRADIENT, None)
    with pytest.raises(RuntimeError, match="closed by peer"):
        service.wait_until_done()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_message_holds_numbers_and_a_vector_in_one_buffer_to_the_bit(dtype):
    values = torch.randn(7, dtype=dtype)
    message = Message(values)
    message.numbers.copy_(torch.tensor([2**40, -1, 1]))
    message.vector.copy_(values)
    other = Message(values)
    other.buffer.copy_(message.buffer)
    assert other.numbers.tolist() == [2**40, -1, 1] and torch.equal(other.vector, values)


def test_a_flat_vector_comes_apart_as_it_was():
    parameters = list(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).parameters())
    for part, parameter in zip(split_like(flat(parameters), parameters), parameters, strict=True):
        assert torch.equal(part, parameter)
