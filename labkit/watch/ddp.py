"""Watch a DistributedDataParallel module from outside: when each bucket was ready, and when its all-reduce ended.

Works on a script that labkit did not write: it needs the wrapped module and a probe, and changes no result. Written into
each step:

    spans    forward, backward (until all gradients are computed here), wait (until they are reduced), all_reduce,
             optimizer if the optimizer is given
    series   a number a bucket: bucket_index, bucket_bytes, bucket_params, bucket_pass, bucket_ready_ns, bucket_end_ns;
             a number a backward pass: sync_at_forward, sync_at_backward, reductions, backward_start_ns,
             backward_computed_ns, backward_end_ns, and unused_params if unused ones are looked for
    counts   forwards, backwards, reductions, all_reduce, all_reduce_bytes, updates

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

_now = time.monotonic_ns

_OF_A_BUCKET = ("bucket_index", "bucket_bytes", "bucket_params", "bucket_ready_ns", "bucket_end_ns")

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
        parameters: also write when each parameter's gradient was ready (param_index, param_ready_ns, param_bytes): a
            call a parameter and pass. Which ones were unused is looked for where find_unused_parameters is set.
    """
    return DDPWatch(ddp, probe, optimizer, parameters)


class DDPWatch:
    """What watches one module. Attribute `seen`: whether its buckets can be seen, else why not."""

    def __init__(self, ddp: Any, probe: Probe, optimizer: Any, parameters: bool) -> None:
        self._ddp, self._probe = weakref.ref(ddp), probe
        self._parameters, self._looks_for_unused = parameters, bool(ddp.find_unused_parameters)
        self._own_step = False
        self._closes_at_optimizer = optimizer is not None
        self._forward_start = 0
        self._sync_at_forward = self._sync_at_backward = True
        self._in_backward = False
        self._start = self._computed = 0
        self._rows: list[list[int]] = []
        self._ready: list[tuple[int, int]] = []
        self._used: set[int] = set()
        self._told_unused: set[str] = set()
        own = [(name, p) for name, p in ddp.module.named_parameters() if p.requires_grad]
        self._names = [name for name, _ in own]
        self._first = own[0][1] if own else None
        self._gradients_kept = False
        self._sizes = [p.numel() * p.element_size() for _, p in own]
        self._handles: list[Any] = []
        self._hook: Callable[[Any], Any] | None = None
        # on a GPU work is queued, and a clock read on the host says when: counts stay exact, times would be wrong
        self._timed = all(parameter.device.type == "cpu" for parameter in ddp.parameters())
        self.seen = self._register_comm_hook(ddp)
        self._register_others(ddp, optimizer)
        self._declare(ddp)

    def close(self) -> None:
        """Stop watching passes and steps; the communication hook, which cannot be taken off, does no more than DDP would."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
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

    def _register_comm_hook(self, ddp: Any) -> str:
        """Have each bucket pass through here. Returns "yes", or why buckets cannot be seen."""
        earlier = getattr(ddp, "_comm_hooks", [])
        if earlier:
            return f"no: the script had registered a communication hook of its own, {_name(earlier[0][0])}"
        watch, group, views = self, ddp.process_group, ddp.gradient_as_bucket_view

        # not annotated: DDP wants its own class as the annotation, and with lazy annotations it would see a string
        def watched_all_reduce(state, bucket):
            return watch._on_bucket(bucket, group, views)

        try:
            ddp.register_comm_hook(None, watched_all_reduce)
        except RuntimeError:
            return "no: the script had registered a communication hook of torch's own"
        ddp.register_comm_hook = self._take_hook
        ddp._register_builtin_comm_hook = self._take_builtin_hook
        return "yes"

    def _take_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """What the script registers from now on: DDP takes one hook only, so it is called from the one that is there."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = lambda bucket: hook(state, bucket)
        self._probe.event("ddp_comm_hook", hook=_name(hook))

    def _take_builtin_hook(self, kind: Any) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        named = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}
        self._take_hook(None, named[kind.name])

    def _register_others(self, ddp: Any, optimizer: Any) -> None:
        self._handles += [
            ddp.register_forward_pre_hook(self._before_forward),
            ddp.register_forward_hook(self._after_forward),
        ]
        if self._parameters or self._looks_for_unused:
            for index, parameter in enumerate(p for p in ddp.module.parameters() if p.requires_grad):
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._gradient_hook(index)))
        if optimizer is not None:
            self._handles += [
                optimizer.register_step_pre_hook(self._before_optimizer),
                optimizer.register_step_post_hook(self._after_optimizer),
            ]

    def _gradient_hook(self, index: int) -> Callable[[Any], None]:
        def ready(parameter: Any) -> None:
            self._used.add(index)
            if self._parameters:
                self._ready.append((index, _now()))

        return ready

    def _on_bucket(self, bucket: Any, group: Any, views: bool) -> Any:
        """Start one bucket's all-reduce, and note when it ends. Called by DDP in its backward pass."""
        import torch.distributed as dist

        gradients = bucket.buffer()
        row = [bucket.index(), gradients.numel() * gradients.element_size(), len(bucket.parameters()), _now(), 0]
        if self._handles:  # not closed
            self._rows.append(row)
        if self._hook is not None:
            future = self._hook(bucket)
        else:
            size = group.size()
            # DDP divides gradients that live in the bucket already, and multiplies by 1/W those that it copies there
            if views and self._gradients_kept:
                gradients.div_(size)
            else:
                gradients.mul_(1.0 / size)
            work = dist.all_reduce(gradients, group=group, async_op=True)
            assert work is not None  # asynchronous
            future = work.get_future()

        def completed(done: Any) -> Any:
            row[4] = _now()
            value = done.value()
            return value[0] if isinstance(value, (list, tuple)) else value

        return future.then(completed)

    # Passes

    def _before_forward(self, ddp: Any, inputs: Any) -> None:
        import torch

        if not torch.is_grad_enabled():
            return
        if not self._probe.in_step:
            self._probe.begin_step()
            self._own_step = True
        self._sync_at_forward = bool(ddp.require_backward_grad_sync)
        self._in_backward = False  # where a backward pass was ended by an error
        self._probe.count("forwards")
        self._forward_start = _now()

    def _after_forward(self, ddp: Any, inputs: Any, output: Any) -> None:
        import torch
        from torch.utils._pytree import tree_leaves

        if not torch.is_grad_enabled():
            return
        self._span("forward", "compute", self._forward_start, _now())
        leaves = tree_leaves(output)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            leaves = _tensors_of(output)
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                leaf.register_hook(self._begin_backward)

    def _begin_backward(self, gradient: Any) -> None:
        """The gradient of an output has come: the module's backward pass begins. The first of several outputs counts."""
        import torch

        if self._in_backward:
            return
        ddp = self._ddp()
        self._in_backward, self._start = True, _now()
        self._gradients_kept = self._first is not None and self._first.grad is not None
        self._sync_at_backward = bool(ddp is not None and ddp.require_backward_grad_sync)
        self._rows, self._ready, self._used = [], [], set()
        # called when the last gradient is computed, before DDP's own callback, which waits for the reductions
        torch.autograd.Variable._execution_engine.queue_callback(self._all_computed)

    def _all_computed(self) -> None:
        import torch

        self._computed = _now()
        torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)  # after DDP's own

    def _end_backward(self) -> None:
        end, probe = _now(), self._probe
        self._in_backward = False
        if not probe.in_step:  # the program closed its step before it called backward
            return
        self._span("backward", "compute", self._start, self._computed)
        reduced = bool(self._rows) if self.seen == "yes" else self._sync_at_forward
        if reduced:
            self._span("wait", "idle", self._computed, end)
        for row in self._rows:
            self._span("all_reduce", "comm", row[3], row[4])
        self._write_pass(end, reduced)
        if self._own_step and not self._closes_at_optimizer and reduced:
            self._end_own_step()

    def _write_pass(self, end: int, reduced: bool) -> None:
        probe, rows = self._probe, self._rows
        number = probe.counted("backwards")
        probe.count("backwards")
        probe.count("reductions", int(reduced))
        probe.count("all_reduce", len(rows))
        probe.count("all_reduce_bytes", sum(row[1] for row in rows))
        values = {
            "sync_at_forward": int(self._sync_at_forward),
            "sync_at_backward": int(self._sync_at_backward),
            "pass_reduced": int(reduced),
        }
        if self._timed:
            values |= {"backward_start_ns": self._start, "backward_computed_ns": self._computed, "backward_end_ns": end}
        for name, value in values.items():
            probe.series(name, [value])
        for place, name in enumerate(_OF_A_BUCKET if self._timed else _OF_A_BUCKET[:3]):
            probe.series(name, [row[place] for row in rows])
        probe.series("bucket_pass", [number] * len(rows))
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

    def _before_optimizer(self, *_: Any) -> None:
        self._forward_start = _now()

    def _after_optimizer(self, *_: Any) -> None:
        if not self._probe.in_step:
            return
        self._span("optimizer", "compute", self._forward_start, _now())
        self._probe.count("updates")
        self._end_own_step()

    def _end_own_step(self) -> None:
        if self._own_step:
            self._probe.end_step()
            self._own_step = False


def _name(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", hook))


def _tensors_of(output: Any) -> list[Any]:
    """The tensors of an output that is no plain container, such as a data class."""
    values = vars(output).values() if hasattr(output, "__dict__") else ()
    return [value for value in values if hasattr(value, "requires_grad")]
