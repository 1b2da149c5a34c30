"""How sharply the loss curves along a training run: the largest eigenvalue of its Hessian, by power iteration.

Shapes: images [N, 64] and labels [N] of all N samples; a vector has a tensor for each parameter, of its shape.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

from ...workloads.digits import Digits

ITERATIONS = 12
LOOKS = 10
PILOT_STEPS = 50
PILOT_LR, PILOT_MOMENTUM = 0.2, 0.9


def sharpness(model: nn.Module, data: Digits) -> float:
    """The largest curvature λ of the mean loss over all data, in any direction.

    Power iteration on the Hessian, whose products with a vector are the gradient of (gradient · vector). From below: after
    a dozen iterations within a few per cent.
    """
    device = next(model.parameters()).device
    parameters = list(model.parameters())
    loss = nn.functional.cross_entropy(model(data.images.to(device)), data.labels.to(device))
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    start = torch.Generator().manual_seed(0)
    vectors = [torch.randn(p.shape, generator=start, dtype=p.dtype).to(device) for p in parameters]
    value = 0.0
    for _ in range(ITERATIONS):
        norm = torch.sqrt(torch.stack([(v * v).sum() for v in vectors]).sum())
        vectors = [v / norm for v in vectors]
        products = torch.autograd.grad(gradients, parameters, vectors, retain_graph=True)
        value = sum(float((p * v).sum()) for p, v in zip(products, vectors, strict=True))
        vectors = [p.detach() for p in products]
        if not all(bool(torch.isfinite(v).all()) and bool(v.any()) for v in vectors):
            break
    return value


class Trail:
    """The weights that a training run passed through, to look at afterwards: nothing is measured while it runs.

    Args:
        model: that is trained.
        steps: how many it will take; some ten are kept.
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self._model, self._every = model, max(1, steps // LOOKS)
        self._step = 0
        self._kept: list[tuple[int, list[torch.Tensor]]] = []

    def keep(self) -> None:
        """Keep the weights as they are now, if it is time."""
        if self._step % self._every == 0:
            self._kept.append((self._step, [p.detach().clone() for p in self._model.parameters()]))
        self._step += 1

    def sharpness(self, data: Digits) -> list[tuple[int, float]]:
        """(step, curvature) where weights were kept; those that are no numbers any more are left out."""
        model, found = copy.deepcopy(self._model), []
        for step, weights in self._kept:
            with torch.no_grad():
                for parameter, value in zip(model.parameters(), weights, strict=True):
                    parameter.copy_(value)
            at = sharpness(model, data)
            if at - at == 0:
                found.append((step, at))
        return found


def sharpness_of_training(model: nn.Module, data: Digits, streams: list[Iterator[torch.Tensor]]) -> float:
    """The largest curvature that a short synchronous training in this process meets.

    Not that of the first weights: it grows several times over in the first steps of training.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=PILOT_LR, momentum=PILOT_MOMENTUM)
    trail = Trail(model, PILOT_STEPS)
    for _ in range(PILOT_STEPS):
        trail.keep()
        ids = torch.cat([next(stream) for stream in streams])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.images[ids]), data.labels[ids]).backward()
        optimizer.step()
    return max(value for _, value in trail.sharpness(data))
