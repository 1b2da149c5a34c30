"""Facts: what a program declares of itself before its first step, with `probe.declare(name=value)`."""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import AMOUNT, ANY, COUNT, FLAG, FROM_ONE, NUMBER, TEXT, WORD_OR_NUMBER, Term

_SIZES = {
    "batch_size": Term(FROM_ONE, "samples", "in the batch of one rank"),
    "global_batch": Term(FROM_ONE, "samples", "of one step, all ranks together"),
    "dataset_size": Term(COUNT, "samples", "in the data set"),
    "data_rank": Term(ANY, "", "which share of the data this rank reads, where several ranks are to read the same"),
    "workers": Term(COUNT, "processes", "DataLoader workers of each rank"),
    "warm_up": Term(COUNT, "steps", "at the beginning, which no measure counts"),
    "local_steps": Term(FROM_ONE, "steps", "that ranks train apart on purpose between two averages"),
}
_MODEL = {
    "num_parameters": Term(COUNT, "weights", "of the model"),
    "num_tensors": Term(COUNT, "tensors", "that hold the weights"),
    "element_bytes": Term(FROM_ONE, "bytes", "of one weight"),
    "matmul_params": Term(COUNT, "weights", "that take part in matrix products"),
    "layers": Term(COUNT, "blocks", "of the transformer"),
    "hidden": Term(COUNT, "elements", "width of the transformer"),
    "seq": Term(COUNT, "tokens", "in a sequence"),
    "attention": Term(TEXT, "", "how attention is computed"),
    "recompute": Term(FLAG, "", "whether activations are computed again in the backward pass"),
    "precision": Term(TEXT, "", "the number format of the matrix products"),
}
_TRAINING = {
    "lr": Term(NUMBER, "", "learning rate"),
    "momentum": Term(NUMBER, "", "of SGD"),
    "clip_norm": Term(AMOUNT, "", "norm that gradients are clipped to"),
    "growth_interval": Term(COUNT, "steps", "without an overflow after which the scaler doubles its scale"),
    "sharpness": Term(WORD_OR_NUMBER, "", "largest curvature of the loss along a short trial training"),
    "straggler": Term(NUMBER, "times", "how much slower the slowest rank is made"),
    "rank_draws": Term(FLAG, "", "whether each rank draws random numbers of its own while it trains"),
    "meets": Term(FLAG, "", "whether ranks average their gradients each step"),
    "mtbf_s": Term(AMOUNT, "s", "mean time between failures"),
    "group_size": Term(COUNT, "ranks", "in the default process group of the script; 0 where it made none"),
    "watched_by": Term(TEXT, "", "doctor, where labkit's doctor watched a script from outside"),
    "watches_updates": Term(FLAG, "", "whether every update of weights is counted"),
}
_FLOPS = {
    "flops_per_step": Term(AMOUNT, "FLOPs", "of the matrix products of one step"),
    "elementwise_flops_per_step": Term(AMOUNT, "FLOPs", "of one step that are no matrix products"),
    "counted_flops_per_token": Term(AMOUNT, "FLOPs", "of forward and backward that the model needs, by torch's counter"),
    "executed_flops_per_token": Term(AMOUNT, "FLOPs", "of forward and backward, as they were done, recomputation included"),
}
_SHARDING = {
    "strategy": Term(TEXT, "", "how state is divided among ranks"),
    "stage": Term(COUNT, "", "of ZeRO that the strategy stands for"),
    "replicas": Term(FROM_ONE, "groups", "that each hold all state"),
    "room_bytes": Term(AMOUNT, "bytes", "of a device that state has to fit into"),
    "counted_step": Term(COUNT, "", "number of the step in which collectives and memory are counted"),
    "timed_from": Term(COUNT, "", "number of the first step whose time counts"),
    "left_out": Term(TEXT, "", "what could not be run here, and why"),
}
_MACHINE = {
    "cores": Term(FROM_ONE, "cores", "that the ranks of this host may use"),
    "num_gpus": Term(COUNT, "GPUs", "of this host"),
    "cache_bytes": Term(COUNT, "bytes", "of the last level of cache"),
    "working_set_bytes": Term(COUNT, "bytes", "that the memory's rate was measured with"),
    "file_bytes": Term(COUNT, "bytes", "of the file that storage was measured with"),
    "file_system": Term(TEXT, "", "on which that file lay"),
    "in_memory": Term(FLAG, "", "whether that file system keeps files in memory"),
    "cache_bypass": Term(TEXT, "", "how the page cache was kept out of it"),
    "cached_share": Term(NUMBER, "of the file", "that was still in the page cache; -1 where the system does not tell"),
    "launched_here": Term(FLAG, "", "whether the launch started this process"),
    "source": Term(TEXT, "", "where samples come from: local, store or memory"),
}
_DDP = {
    "ddp_params": Term(COUNT, "tensors", "of the watched module that have gradients"),
    "ddp_gradient_bytes": Term(COUNT, "bytes", "of their gradients"),
    "ddp_bucket_cap_bytes": Term(COUNT, "bytes", "that a bucket holds at most"),
    "ddp_find_unused": Term(FLAG, "", "find_unused_parameters, as the module was wrapped"),
    "ddp_made_by": Term(TEXT, "", "packages through which the script wrapped it, the nearest first"),
    "ddp_static_graph": Term(FLAG, "", "static_graph, as the module was wrapped"),
    "ddp_world_size": Term(FROM_ONE, "ranks", "of the module's process group"),
    "ddp_buckets_seen": Term(TEXT, "", "yes, or why buckets could not be seen"),
    "ddp_modules": Term(COUNT, "modules", "that DDP wraps, as the first update is made"),
    "ddp_timed": Term(FLAG, "", "whether passes and buckets are timed"),
}
_PLACES = {
    "loop_where": Term(TEXT, "file:line", "of the training loop"),
    "optimizer_where": Term(TEXT, "", "where the first optimizer is made, file:line"),
    "loader_where": Term(TEXT, "file:line", "of what makes the loader"),
    "split_where": Term(TEXT, "file:line", "of what splits the data"),
    "wrap_where": Term(TEXT, "file:line", "of what wraps the model"),
    "gradients_where": Term(TEXT, "file:line", "of what makes the gradients of a step"),
    "keeper_where": Term(TEXT, "file:line", "of what saves and loads"),
}

FACTS: Mapping[str, Term] = _SIZES | _MODEL | _TRAINING | _FLOPS | _SHARDING | _MACHINE | _DDP | _PLACES
"""By name: what `probe.declare` is to give."""
