"""Watch a DistributedDataParallel module from outside: when each bucket was ready, and when its all-reduce ended.

Works on a script that labkit did not write: it needs the wrapped module and a probe, and changes no result. Written into
each step:

    spans    forward, backward (until all gradients are computed here), wait (until they are reduced), all_reduce,
             optimizer if the optimizer is given
    series   a number a bucket: bucket_index, bucket_bytes, bucket_params, bucket_pass, bucket_ready_ns, bucket_end_ns;
             a number a backward pass: sync_at_forward, sync_at_backward, pass_reduced, backward_start_ns,
             backward_computed_ns, backward_end_ns, and unused_params if unused ones are looked for;
             a number a parameter and pass, if they are asked for: param_bytes, param_ready_ns
    counts   forwards, backwards, reductions, all_reduce, all_reduce_bytes, updates
    events   unused_parameters, ddp_comm_hook, and ddp where steps had begun

torch is imported where it is needed, so that records can be read without it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..record.probe import Probe
from ..record.schema import Lane

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    from .reductions import Bucket

_now = time.monotonic_ns

NAMED = 8
"""Unused parameters that are named at most."""


def watch_ddp(
    ddp: DistributedDataParallel,
    probe: Probe,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    parameters: bool = False,
) -> DDPWatch:
    """Begin to watch. *Called on* every rank, after the module is wrapped and before its first forward pass.

    Collectives: none of its own. A communication hook takes over the division by the number of ranks, which DDP does
    itself otherwise, with the same rounding. A hook that the script registers later is timed in its place; one that it
    has registered before cannot be, and then buckets are not seen, which the record says.

    Where the probe is in no step of the program's own, a forward pass opens one, and it ends with the optimizer's step, or
    without an optimizer with the backward pass that reduces.

    Args:
        ddp: the wrapped module; only a weak reference is kept, since one that is alive when its process group is
            destroyed can hang.
        probe: this rank's.
        optimizer: to see its steps.
        parameters: also write when each parameter's gradient was ready (param_ready_ns, param_bytes): a call a
            parameter and pass. Which ones were unused is looked for where find_unused_parameters is set.
    """
    return DDPWatch(ddp, probe, optimizer, parameters)


class DDPWatch:
    """What watches one module. Attribute `seen`: whether its buckets can be seen, else why not."""

    def __init__(self, ddp: Any, probe: Probe, optimizer: Any, parameters: bool) -> None:
        from .optimizer import StepWatch
        from .passes import PassHooks, PassWatch
        from .reductions import BucketHook

        self._ddp, self._probe = weakref.ref(ddp), probe
        self._parameters, self._looks_for_unused = parameters, bool(ddp.find_unused_parameters)
        self._own_step, self._closed = False, False
        self._closes_at_optimizer = optimizer is not None
        self._forward_start = self._optimizer_start = 0
        self._sync_at_forward = self._sync_at_backward = True
        self._start = self._computed = 0
        self._buckets: list[Bucket] = []
        self._ready: list[tuple[int, int]] = []
        self._used: set[int] = set()
        self._told_unused: set[str] = set()
        own = [(name, p) for name, p in ddp.module.named_parameters() if p.requires_grad]
        self._names = [name for name, _ in own]
        self._first = own[0][1] if own else None
        self._gradients_kept = False
        self._sizes = [p.numel() * p.element_size() for _, p in own]
        # on a GPU work is queued, and a clock read on the host says when: counts stay exact, times would be wrong
        self._timed = all(parameter.device.type == "cpu" for parameter in ddp.parameters())
        views = ddp.gradient_as_bucket_view
        hook = BucketHook(
            ddp,
            ready=self._bucket_ready,
            registered=lambda name: probe.event("ddp_comm_hook", hook=name),
            kept=lambda: views and self._gradients_kept,
        )
        self.seen, self._hook = hook.seen, hook
        hooks = PassHooks(
            forward_begins=self._begin_forward,
            forward_ends=self._end_forward,
            backward_begins=self._begin_backward,
            backward_computed=self._all_computed,
            backward_ends=self._end_backward,
        )
        self._passes, self._views = PassWatch(ddp, hooks), views
        self._watches: list[Any] = [self._passes]
        if optimizer is not None:
            self._watches.append(StepWatch(optimizer, probe, self._before_optimizer, self._after_optimizer))
        self._handles = self._register_gradient_hooks(ddp)
        self._declare(ddp)

    def pause(self) -> None:
        """Let passes and buckets through unseen until `resume`. *Called* between passes.

        Where gradients live in the buckets nothing changes: the hook must know of each pass whether they did before it.
        """
        if not self._views and not self._closed:
            self._passes.close()
            self._hook.paused = True

    def resume(self) -> None:
        """Watch again."""
        if self._hook.paused and not self._closed:
            self._passes.attach()
            self._hook.paused = False

    def close(self) -> None:
        """Stop watching passes and steps; the communication hook, which cannot be taken off, does no more than DDP would."""
        for watch in self._watches:
            watch.close()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._closed = True
        self._end_own_step()

    # What the script says of itself

    def _declare(self, ddp: Any) -> None:
        own = [p for p in ddp.module.parameters() if p.requires_grad]
        cap = getattr(ddp, "bucket_bytes_cap", 0)
        facts: dict[str, Any] = dict(
            ddp_params=len(own),
            ddp_gradient_bytes=sum(p.numel() * p.element_size() for p in own),
            ddp_bucket_cap_bytes=int(cap),
            ddp_find_unused=self._looks_for_unused,
            ddp_static_graph=bool(getattr(ddp, "static_graph", False)),
            ddp_world_size=ddp.process_group.size(),
            ddp_buckets_seen=self.seen,
            ddp_timed=self._timed,
        )
        try:
            self._probe.declare(**facts)
        except RuntimeError:  # steps have begun
            self._probe.event("ddp", **facts)

    # Hooks

    def _register_gradient_hooks(self, ddp: Any) -> list[Any]:
        if not (self._parameters or self._looks_for_unused):
            return []
        own = [p for p in ddp.module.parameters() if p.requires_grad]
        return [p.register_post_accumulate_grad_hook(self._gradient_hook(index)) for index, p in enumerate(own)]

    def _gradient_hook(self, index: int) -> Callable[[Any], None]:
        def ready(parameter: Any) -> None:
            self._used.add(index)
            if self._parameters:
                self._ready.append((index, _now()))

        return ready

    def _bucket_ready(self, bucket: Bucket, _gradients: torch.Tensor) -> None:
        if not self._closed:
            self._buckets.append(bucket)

    # Passes

    def _begin_forward(self) -> None:
        if not self._probe.in_step:
            self._probe.begin_step()
            self._own_step = True
        ddp = self._ddp()
        self._sync_at_forward = bool(ddp is not None and ddp.require_backward_grad_sync)
        self._probe.count("forwards")
        self._forward_start = _now()

    def _end_forward(self, inputs: Any, outputs: Any) -> None:
        self._span("forward", "compute", self._forward_start, _now())

    def _begin_backward(self) -> None:
        ddp = self._ddp()
        self._start = _now()
        self._gradients_kept = self._first is not None and self._first.grad is not None
        self._sync_at_backward = bool(ddp is not None and ddp.require_backward_grad_sync)
        self._buckets, self._ready, self._used = [], [], set()

    def _all_computed(self) -> None:
        self._computed = _now()

    def _end_backward(self) -> None:
        end, probe = _now(), self._probe
        if not probe.in_step:  # the program closed its step before it called backward
            return
        self._span("backward", "compute", self._start, self._computed)
        reduced = bool(self._buckets) if self.seen == "yes" else self._sync_at_forward
        if reduced:
            self._span("wait", "idle", self._computed, end)
        for bucket in self._buckets:
            self._span("all_reduce", "comm", bucket.ready_ns, bucket.end_ns)
        self._write_pass(end, reduced)
        if self._own_step and not self._closes_at_optimizer and reduced:
            self._end_own_step()

    def _write_pass(self, end: int, reduced: bool) -> None:
        probe, buckets = self._probe, self._buckets
        number = probe.counted("backwards")
        probe.count("backwards")
        probe.count("reductions", int(reduced))
        probe.count("all_reduce", len(buckets))
        probe.count("all_reduce_bytes", sum(bucket.num_bytes for bucket in buckets))
        values = {
            "sync_at_forward": [int(self._sync_at_forward)],
            "sync_at_backward": [int(self._sync_at_backward)],
            "pass_reduced": [int(reduced)],
            "bucket_index": [bucket.index for bucket in buckets],
            "bucket_bytes": [bucket.num_bytes for bucket in buckets],
            "bucket_params": [bucket.num_params for bucket in buckets],
            "bucket_pass": [number] * len(buckets),
        }
        if self._timed:
            values |= {
                "backward_start_ns": [self._start],
                "backward_computed_ns": [self._computed],
                "backward_end_ns": [end],
                "bucket_ready_ns": [bucket.ready_ns for bucket in buckets],
                "bucket_end_ns": [bucket.end_ns for bucket in buckets],
            }
        for name, numbers in values.items():
            probe.series(name, numbers)
        if self._parameters and self._timed:
            probe.series("param_bytes", [self._sizes[index] for index, _ in self._ready])
            probe.series("param_ready_ns", [time_ns for _, time_ns in self._ready])
        if self._looks_for_unused:
            self._write_unused()

    def _span(self, name: str, lane: Lane, start_ns: int, end_ns: int) -> None:
        if self._timed:
            self._probe.add_span(name, lane, start_ns, end_ns)

    def _write_unused(self) -> None:
        unused = [name for index, name in enumerate(self._names) if index not in self._used]
        self._probe.series("unused_params", [len(unused)])
        new = [name for name in unused if name not in self._told_unused]
        if new and len(self._told_unused) < NAMED:
            self._told_unused.update(new)
            self._probe.event("unused_parameters", count=len(unused), names=", ".join(new[:NAMED]))

    # Steps

    def _before_optimizer(self) -> None:
        self._optimizer_start = _now()

    def _after_optimizer(self) -> None:
        if self._probe.in_step:
            self._span("optimizer", "compute", self._optimizer_start, _now())
            self._end_own_step()

    def _end_own_step(self) -> None:
        if self._own_step:
            self._probe.end_step()
            self._own_step = False
