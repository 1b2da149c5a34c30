"""Where to begin in the exercises on overlap, hints, and solutions."""

from __future__ import annotations

from ..help import Help

_BUCKET_SIZE = Help(
    start="""\
def my_bucket_mb(gradients, link):
    return 25.0  # DDP's default: repair it


lab.check(my_bucket_mb)
""",
    hints=(
        "The last bucket leaves when the backward pass is over, so all of it is exposed. What does that say of its size?",
        "Each bucket pays the link's latency once: link.seconds(0). Many tiny buckets pay it many times.",
        "labkit.theory.overlap_model.predict(gradients, link, cap_bytes).step_s is the length of a step: try some caps.",
    ),
    solution="""\
from labkit.theory.overlap_model import MIB, predict


def my_bucket_mb(gradients, link):
    total = gradients.total_bytes * 1.01 / MIB
    sizes = [total / parts for parts in range(1, 60)]
    return min(sizes, key=lambda size: predict(gradients, link, size * MIB).step_s)
""",
    note="Can you do it without the model? The last bucket should be small, and a bucket should take several latencies.",
)

_BUCKETED_DDP = Help(
    start="""\
import torch.distributed as dist


def my_ddp(module, cap_bytes):
    parameters = [p for p in module.parameters() if p.requires_grad]

    def finish():  # called after each backward pass: a collective a gradient, and none of them overlaps
        for parameter in parameters:
            dist.all_reduce(parameter.grad)

    return finish


lab.check(my_ddp, "bucketed-ddp")
""",
    hints=(
        "Make the weights equal first: broadcast each parameter from rank 0. Then group the trained parameters into "
        "buckets, from the last to the first, and close a bucket when it holds cap_bytes.",
        "parameter.register_post_accumulate_grad_hook(hook) calls hook(parameter) when its gradient is there. Count the "
        "gradients of a bucket that are there. When all are, copy them into one flat tensor, divide by the number of ranks, "
        "and call work = dist.all_reduce(flat, async_op=True).",
        "In finish(): work.wait() for each bucket, then copy each part of the flat tensor back into its parameter's .grad. "
        "Set the counts back to zero, so that the next step begins afresh.",
    ),
    solution="""\
import torch
import torch.distributed as dist


def my_ddp(module, cap_bytes):
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=0)
    buckets, size = [[]], 0
    for parameter in reversed([p for p in module.parameters() if p.requires_grad]):
        if size >= cap_bytes:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.numel() * parameter.element_size()
    missing = [len(bucket) for bucket in buckets]
    under_way = []

    def hook_of(number):
        def hook(_):
            missing[number] -= 1
            if missing[number] == 0:
                flat = torch.cat([p.grad.reshape(-1) for p in buckets[number]])
                flat /= dist.get_world_size()
                under_way.append((number, flat, dist.all_reduce(flat, async_op=True)))

        return hook

    for number, bucket in enumerate(buckets):
        for parameter in bucket:
            parameter.register_post_accumulate_grad_hook(hook_of(number))

    def finish():
        for number, flat, work in under_way:
            work.wait()
            parts = flat.split([p.numel() for p in buckets[number]])
            for parameter, part in zip(buckets[number], parts):
                parameter.grad.copy_(part.view_as(parameter))
            missing[number] = len(buckets[number])
        under_way.clear()

    return finish
""",
    note="On two ranks this equals DistributedDataParallel to the bit. On three it agrees up to rounding: in which order a "
    "backend adds three numbers depends on where they lie in the bucket.",
)


def bucket_size() -> Help:
    """For the size of a bucket."""
    return _BUCKET_SIZE


def bucketed_ddp() -> Help:
    """For data parallelism from its parts."""
    return _BUCKETED_DDP
