"""The reductions of DistributedDataParallel: each bucket passes through one communication hook, which is written here alone.

The hook does what DDP does without one: it divides by the number of ranks, with the same rounding, then all-reduces.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

from ..record.probe import Probe

_now = time.monotonic_ns


def _nothing(*_: Any) -> None:
    pass


@dataclass
class Bucket:
    """One bucket on its way.

    Attributes:
        index: DDP's own, from 0 on in the order in which buckets become ready.
        num_bytes: of its gradients.
        num_params: gradients in it.
        ready_ns: when all of them were computed here.
        end_ns: when the all-reduce ended; 0 until then.
    """

    index: int
    num_bytes: int
    num_params: int
    ready_ns: int
    end_ns: int = 0


class BucketHook:
    """Have each bucket of a module pass through here. *Called on* every rank, before the first pass.

    A hook that the script registers later is called in the place of DDP's own work. One that it has registered before
    cannot be: DDP takes one hook only.

    Args:
        ddp: the wrapped module; neither it nor its process group is kept alive by its hook.
        ready: called with each bucket as its gradients are computed here, and with these: flat, in DDP's own memory.
        reduced: called with it when its all-reduce has ended; on another thread than the program's.
        registered: called with the name of a hook that the script registers later.
        kept: whether gradients live in the bucket since the pass before. DDP divides those, and multiplies those that
            it copies there by 1/W.
        one_by_one: sum each gradient by itself, in an order that does not depend on how buckets are laid out.

    Attributes:
        paused: whether buckets pass through without being told of.
        seen: "yes", or why buckets cannot be seen.
    """

    def __init__(
        self,
        ddp: DistributedDataParallel,
        *,
        ready: Callable[[Bucket, torch.Tensor], None] = _nothing,
        reduced: Callable[[Bucket], None] = _nothing,
        registered: Callable[[str], None] = _nothing,
        kept: Callable[[], bool] = lambda: False,
        one_by_one: bool = False,
    ) -> None:
        self._ready, self._reduced, self._registered, self._kept = ready, reduced, registered, kept
        # only weakly: what is done when an all-reduce ends is let go on the group's own thread, and a group whose last
        # holder that is would wait there for this very thread to end, which aborts the process
        self._ddp, self._one_by_one = weakref.ref(ddp), one_by_one
        self._own: Callable[[Any], torch.futures.Future] | None = None
        self.paused = False
        self.seen = self._register(ddp)

    def _register(self, ddp: DistributedDataParallel) -> str:
        earlier = getattr(ddp, "_comm_hooks", [])
        if earlier:
            return f"no: the script had registered a communication hook of its own, {_name(earlier[0][0])}"

        # not annotated: DDP wants its own class as the annotation, and with lazy annotations it would see a string
        def watched_all_reduce(state, bucket):
            return self._on_bucket(bucket)

        try:
            ddp.register_comm_hook(None, watched_all_reduce)
        except RuntimeError:
            return "no: the script had registered a communication hook of torch's own"
        ddp.register_comm_hook = self._take_hook
        ddp._register_builtin_comm_hook = self._take_builtin_hook  # pyright: ignore[reportAttributeAccessIssue]
        return "yes"

    def _take_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """What the script registers from now on is called from the hook that is there."""
        if self._own is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._own = lambda bucket: hook(state, bucket)
        self._registered(_name(hook))

    def _take_builtin_hook(self, kind: Any) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        named = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}
        self._take_hook(None, named[kind.name])

    def _on_bucket(self, given: GradBucket) -> torch.futures.Future:
        if self.paused and not self._one_by_one:
            return self._reduce(given).then(_first_of)
        gradients = given.buffer()
        size = gradients.numel() * gradients.element_size()
        bucket = Bucket(given.index(), size, len(given.parameters()), _now())
        self._ready(bucket, gradients)

        def completed(done: torch.futures.Future) -> torch.Tensor:
            bucket.end_ns = _now()
            value = done.value()
            self._reduced(bucket)
            if isinstance(value, (list, tuple)):
                for one in value if self._one_by_one else ():
                    one.value()  # raises if the sum failed; without it the step would go on with this rank's own
                return gradients if self._one_by_one else value[0]
            return value

        return self._reduce(given).then(completed)

    def _reduce(self, bucket: GradBucket) -> torch.futures.Future:
        if self._own is not None:
            return self._own(bucket)
        if self._one_by_one:
            return torch.futures.collect_all([self._all_reduce(gradient) for gradient in bucket.gradients()])
        return self._all_reduce(bucket.buffer())

    def _all_reduce(self, gradients: torch.Tensor) -> torch.futures.Future:
        ddp = self._ddp()
        assert ddp is not None  # it calls its hook
        size = dist.get_world_size(ddp.process_group)
        if self._kept():
            gradients.div_(size)
        else:
            gradients.mul_(1.0 / size)
        work = dist.all_reduce(gradients, group=ddp.process_group, async_op=True)
        assert work is not None  # asynchronous
        return work.get_future()


def _first_of(done: torch.futures.Future) -> torch.Tensor:
    value = done.value()
    return value[0] if isinstance(value, (list, tuple)) else value


def watch_reductions(ddp: DistributedDataParallel, probe: Probe, *, one_by_one: bool = False) -> BucketHook:
    """Record each reduction and nothing else of a module. *Called on* every rank, before the first pass.

    Written into each step: the span all_reduce, the counts all_reduce and all_reduce_bytes.

    Args:
        ddp: the wrapped module.
        probe: this rank's.
        one_by_one: sum each gradient by itself: see `BucketHook`. Each then counts as an all-reduce.
    """

    def ready(bucket: Bucket, _gradients: torch.Tensor) -> None:
        probe.count("all_reduce", bucket.num_params if one_by_one else 1)
        probe.count("all_reduce_bytes", bucket.num_bytes)

    def reduced(bucket: Bucket) -> None:
        probe.add_span("all_reduce", "comm", bucket.ready_ns, bucket.end_ns)

    return BucketHook(ddp, ready=ready, reduced=reduced, one_by_one=one_by_one)


def _name(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", hook))
