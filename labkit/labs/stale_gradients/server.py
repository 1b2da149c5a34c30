"""The parameter server: it holds the weights, takes gradients as they come, and answers each with the newest weights.

It lives on rank 0, which is a worker too. Every other worker has a thread there that serves it; rank 0's own worker calls
the server directly. All of them take turns at one lock, and the order in which they get it is the order of arrival.

Shapes: weights and gradients are flat, [P] for a model of P parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

_TAG_PUSH, _TAG_REPLY = 1, 2
_NUMBERS = 3
_PULL = -1


@dataclass(frozen=True)
class Reply:
    """The server's answer to a pull or a push.

    Attributes:
        weights: the newest, flat.
        version: how many updates went into them.
        applied_at: the version that the pushed gradient met; -1 after a pull.
        stop: whether the worker is done.
    """

    weights: torch.Tensor
    version: int
    applied_at: int
    stop: bool


class ParameterServer:
    """The weights, and the rule by which gradients change them. Any number of threads may call it.

    All workers begin on the same weights: no push is taken before each has pulled. A gradient is begun when its weights are
    handed out. The server hands weights out `total_pushes` times; a worker that
    pushes after that is told to stop. So there are exactly `total_pushes` pushes, and the last ones are one of each worker,
    whatever their speeds.

    Args:
        model: whose parameters it holds and changes.
        optimizer: of these parameters.
        workers: how many.
        total_pushes: how many gradients to take, at least one of each worker.
        bound: a worker that has pushed more than this many gradients more than the slowest one waits for its weights;
            0 is no bound.
        in_turn: take gradients in the order of ranks: one that comes early waits for its turn.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        workers: int,
        total_pushes: int,
        bound: int = 0,
        in_turn: bool = False,
    ) -> None:
        if total_pushes < workers:
            raise ValueError(f"{workers} workers push at least once each; total_pushes is {total_pushes}")
        self._parameters = list(model.parameters())
        self._optimizer = optimizer
        self._total, self._bound, self._in_turn = total_pushes, bound, in_turn
        self._pushed = [0] * workers
        self._active = [True] * workers
        self._begun = 0
        self._version = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def pull(self, rank: int) -> Reply:
        """The weights to begin with."""
        with self._changed:
            self._begun += 1
            self._changed.notify_all()
            return self._reply(-1, stop=False)

    def push(self, rank: int, gradient: torch.Tensor) -> Reply:
        """Apply a gradient and hand out the newest weights: one operation, in which no other push comes between.

        Raises:
            what `fail` was given, in place of waiting for ever for a worker that is gone.
        """
        with self._changed:
            # all begin on the same weights: those of a worker that starts late are no newer
            self._wait(lambda: self._begun >= len(self._pushed))
            if self._in_turn:
                self._wait(lambda: self._version % len(self._pushed) == rank)
            applied_at = self._version
            self._apply(gradient)
            self._version += 1
            self._pushed[rank] += 1
            stop = self._begun >= self._total
            if stop:
                self._active[rank] = False
            else:
                self._begun += 1
            self._changed.notify_all()
            if self._bound and not stop:
                self._wait(lambda: self._lead_of(rank) <= self._bound)
            return self._reply(applied_at, stop)

    def fail(self, error: BaseException) -> None:
        """Wake all that wait, with an error."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def wait_until_done(self) -> None:
        """Wait until every worker was told to stop."""
        with self._changed:
            self._wait(lambda: not any(self._active))

    def _wait(self, until: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._error is not None or until())
        if self._error is not None:
            raise self._error

    def _lead_of(self, rank: int) -> int:
        slowest = min(count for count, active in zip(self._pushed, self._active, strict=True) if active)
        return self._pushed[rank] - slowest

    def _apply(self, gradient: torch.Tensor) -> None:
        for parameter, part in zip(self._parameters, split_like(gradient, self._parameters), strict=True):
            parameter.grad = part
        self._optimizer.step()

    def _reply(self, applied_at: int, stop: bool) -> Reply:
        return Reply(flat(self._parameters), self._version, applied_at, stop)


class Message:
    """Three whole numbers and a vector in one buffer, so that they travel together."""

    def __init__(self, like: torch.Tensor) -> None:
        head = 8 * _NUMBERS
        self.buffer = torch.empty(head + like.numel() * like.element_size(), dtype=torch.uint8)
        self.numbers = self.buffer[:head].view(torch.int64)
        self.vector = self.buffer[head:].view(like.dtype)


class RemoteServer:
    """The server as a worker on another rank sees it. *Called on* every rank but 0.

    Args:
        like: a flat vector of the weights' size and type.
        group: whose messages travel over gloo.
    """

    def __init__(self, like: torch.Tensor, group: dist.ProcessGroup | None) -> None:
        self._out, self._in, self._group = Message(like), Message(like), group

    def pull(self, rank: int) -> Reply:
        return self._ask(_PULL, None)

    def push(self, rank: int, gradient: torch.Tensor) -> Reply:
        return self._ask(0, gradient)

    def _ask(self, kind: int, gradient: torch.Tensor | None) -> Reply:
        self._out.numbers[0] = kind
        if gradient is not None:
            self._out.vector.copy_(gradient)
        dist.send(self._out.buffer, 0, group=self._group, tag=_TAG_PUSH)
        dist.recv(self._in.buffer, 0, group=self._group, tag=_TAG_REPLY)
        version, applied_at, stop = self._in.numbers.tolist()
        return Reply(self._in.vector, version, applied_at, bool(stop))


class Service:
    """The threads on rank 0 that serve the other workers. *Called on* rank 0.

    A worker that is gone ends its thread with gloo's error, which then ends whatever waits at the server.
    """

    def __init__(self, server: ParameterServer, workers: int, like: torch.Tensor, group: dist.ProcessGroup | None) -> None:
        self._server, self._like, self._group = server, like, group
        self._threads = [
            threading.Thread(target=self._serve, args=(rank,), daemon=True, name=f"serves-rank-{rank}")
            for rank in range(1, workers)
        ]
        for thread in self._threads:
            thread.start()

    def wait_until_done(self) -> None:
        """Wait until every worker was told to stop, and the last of them has heard it."""
        self._server.wait_until_done()
        for thread in self._threads:
            thread.join()

    def _serve(self, rank: int) -> None:
        came, answer = Message(self._like), Message(self._like)
        try:
            stop = False
            while not stop:
                dist.recv(came.buffer, rank, group=self._group, tag=_TAG_PUSH)
                pulls = int(came.numbers[0]) == _PULL
                reply = self._server.pull(rank) if pulls else self._server.push(rank, came.vector)
                stop = reply.stop
                answer.numbers.copy_(torch.tensor([reply.version, reply.applied_at, int(stop)]))
                answer.vector.copy_(reply.weights)
                dist.send(answer.buffer, rank, group=self._group, tag=_TAG_REPLY)
        except BaseException as error:
            self._server.fail(error)


def flat(tensors: list[torch.Tensor] | list[nn.Parameter]) -> torch.Tensor:
    """A copy of several tensors, end to end, on the CPU."""
    return torch.cat([tensor.detach().reshape(-1).cpu() for tensor in tensors])


def split_like(vector: torch.Tensor, tensors: list[nn.Parameter]) -> Iterator[torch.Tensor]:
    """A flat vector's parts, in the shapes and on the devices of some tensors."""
    parts = vector.split([tensor.numel() for tensor in tensors])
    for part, tensor in zip(parts, tensors, strict=True):
        yield part.view_as(tensor).to(tensor.device)
