"""What a step holds: counts, scalars, series, spans and samples; and what is kept of a whole run: digests and arrays.

A name with a star stands for all names that fit it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...theory.strategies import STRATEGIES
from .kinds import ARRAY, COUNT, HASH, HASHES, INTERVAL, NUMBER, WHOLE, WORD_OR_NUMBER, SpanTerm, Term

_PASSES = {
    "forwards": Term(COUNT, "passes", "forward passes of a watched module that were to have gradients"),
    "backwards": Term(COUNT, "passes", "backward passes of a watched DDP module"),
    "backward_calls": Term(COUNT, "calls", "of backward by the script"),
    "between_bursts": Term(
        COUNT,
        "steps",
        "1 in a step that was only followed: reads, calls of backward, updates, rates and collectives were noted",
    ),
    "backward_onto_used": Term(COUNT, "updates", "updates on top of gradients that the update before had used"),
    "backward_onto_last_epoch": Term(COUNT, "passes", "backward passes that add to gradients left of the epoch before"),
    "backward_cleared": Term(COUNT, "passes", "other backward passes whose gradients were cleared before any update"),
    "backward_unused": Term(
        COUNT, "passes", "last backward passes of an epoch whose gradients were cleared before any update"
    ),
    "clips": Term(COUNT, "calls", "that clip gradients"),
    "clips_while_scaled": Term(COUNT, "calls", "that clip gradients which still carry the scaler's scale"),
    "script_collectives": Term(COUNT, "calls", "of collectives by the script itself"),
    "exchanged_elements": Term(COUNT, "elements", "that the script itself gave to collectives"),
    "exchanged_in_forward": Term(COUNT, "elements", "of them within a forward pass"),
    "updates_in_eval_mode": Term(COUNT, "models", "in evaluation mode at an update that were in training mode before"),
    "barriers": Term(COUNT, "calls", "of a barrier by the script"),
    "reductions": Term(COUNT, "passes", "backward passes that reduced gradients over the ranks"),
    "alone": Term(COUNT, "steps", "1 in a step that only computes, beside the run, to compare with"),
}
_OPTIMIZER = {
    "updates": Term(COUNT, "steps", "of an optimizer"),
    "gradient_elements": Term(COUNT, "elements", "of the gradients that the optimizer gets"),
    "gradient_zeros": Term(COUNT, "elements", "of them that are exactly 0"),
    "gradient_nonfinite": Term(COUNT, "elements", "of them that are NaN or infinite"),
    "weights_unchanged": Term(COUNT, "elements", "that an update leaves as they were"),
    "updates_lost": Term(COUNT, "elements", "that an update leaves as they were although their gradient is not 0"),
    "weights_with_gradient": Term(COUNT, "elements", "that had a gradient other than 0 in this step or an earlier one"),
    "weights_as_first": Term(COUNT, "elements", "of them that still hold the value with which they began"),
    "weights_nonfinite": Term(COUNT, "elements", "that are NaN or infinite after an update"),
    "scaler_steps": Term(COUNT, "steps", "that a GradScaler was asked for"),
    "forward_checks": Term(COUNT, "checks", "whether a forward pass sees the new weights"),
    "forward_stale": Term(COUNT, "checks", "in which it saw old ones"),
    "autocast_open_at_update": Term(COUNT, "checks", "in which autocast was open around the update"),
    "read_elements": Term(COUNT, "elements", "of the samples that a loader gave to train on"),
    "fed_elements": Term(COUNT, "elements", "of what modules were given to train on"),
    "backward_in_autocast": Term(COUNT, "passes", "backward passes that began with autocast open"),
    "weights_cast_down": Term(COUNT, "calls", "that took weights which an optimizer trains from 32 bits to 16"),
    "updates_while_scaled": Term(COUNT, "steps", "of an optimizer on gradients that still carry the scaler's scale"),
    "forwards_*": Term(COUNT, "passes", "forward passes whose outputs are of this number format"),
}
_COMMUNICATION = {
    "all_reduce": Term(COUNT, "operations", "all-reduces of gradients"),
    "all_reduce_bytes": Term(COUNT, "bytes", "that were given to them"),
    "gradient_works": Term(COUNT, "operations", "that reduce gradients in the background, by the script itself"),
    "gradient_works_not_waited_for": Term(COUNT, "operations", "of them that an optimizer's step did not wait for"),
    "wire_received_bytes": Term(COUNT, "bytes", "that came over the host's link, headers included"),
    "wire_sent_bytes": Term(COUNT, "bytes", "that went over the host's link, headers included"),
}
_INPUT = {
    "prepared": Term(COUNT, "samples", "prepared for this rank, in its workers too"),
    "prepare_us": Term(COUNT, "µs", "that preparing them took, of all workers together"),
    "store_bytes": Term(COUNT, "bytes", "fetched from the store"),
}
_REPEATED = {
    "bytes": Term(COUNT, "bytes", "that one operation moves, or of its message"),
    "flops": Term(COUNT, "FLOPs", "of one operation"),
    "size": Term(COUNT, "elements", "a side of the matrices"),
    "operations": Term(COUNT, "operations", "in a row, of which `seconds` is the mean"),
    **{name: Term(COUNT, "steps", f"1 in a timed step with {name}, where strategies take turns") for name in STRATEGIES},
}

COUNTS: Mapping[str, Term] = _PASSES | _OPTIMIZER | _COMMUNICATION | _INPUT | _REPEATED
"""By name: whole numbers that add up within a step (`probe.count`)."""

SCALARS: Mapping[str, Term] = {
    "loss_local": Term(WORD_OR_NUMBER, "", "loss of this rank's batch"),
    "batch_samples": Term(COUNT, "samples", "in this rank's batch"),
    "tokens": Term(COUNT, "tokens", "in this rank's batch"),
    "lr_used": Term(WORD_OR_NUMBER, "", "learning rate of the update"),
    "scheduler_steps": Term(COUNT, "calls", "of learning-rate schedulers, since the start"),
    "grad_norm": Term(WORD_OR_NUMBER, "", "norm of the gradients that the optimizer takes, or that clipping found"),
    "scale": Term(NUMBER, "", "of a GradScaler, as it is asked for a step"),
    "version_pulled": Term(COUNT, "updates", "that went into the weights that the gradient was computed on"),
    "version_pushed": Term(COUNT, "updates", "that went into the weights that the gradient met"),
    "cap_mib": Term(NUMBER, "MiB", "cap of the buckets, where a run tries several; 0 for one a parameter"),
    "cpu_s": Term(NUMBER, "s", "on a core since the step before, all threads together"),
    "queued_s": Term(NUMBER, "s", "in which a thread was ready and waited for a core"),
    "seconds": Term(NUMBER, "s", "of one operation, the mean of those in a row"),
    "checksum": Term(WORD_OR_NUMBER, "", "an element of the result, so that the work is not left out"),
}
"""By name: a number of a step (`probe.scalar`)."""

INSTANT = "ns, of the monotonic clock"

SERIES: Mapping[str, Term] = {
    "bucket_index": Term(COUNT, "", "a number a bucket: DDP's own"),
    "bucket_bytes": Term(COUNT, "bytes", "a number a bucket: of its gradients"),
    "bucket_params": Term(COUNT, "tensors", "a number a bucket: in it"),
    "bucket_pass": Term(COUNT, "", "a number a bucket: the backward pass of the step that it belongs to"),
    "bucket_ready_ns": Term(WHOLE, INSTANT, "a number a bucket: when its gradients were ready"),
    "bucket_end_ns": Term(WHOLE, INSTANT, "a number a bucket: when its all-reduce ended"),
    "sync_at_forward": Term(COUNT, "", "a number a pass: 0 where its forward pass ran in no_sync"),
    "sync_at_backward": Term(COUNT, "", "a number a pass: 0 where its backward pass ran in no_sync"),
    "pass_reduced": Term(COUNT, "", "a number a pass: 1 where it reduced gradients"),
    "backward_start_ns": Term(WHOLE, INSTANT, "a number a pass: when the gradient of the output came"),
    "backward_computed_ns": Term(WHOLE, INSTANT, "a number a pass: when all gradients were computed here"),
    "backward_end_ns": Term(WHOLE, INSTANT, "a number a pass: when they were reduced"),
    "unused_params": Term(COUNT, "tensors", "a number a pass: parameters that it did not use, if those are looked for"),
    "param_bytes": Term(COUNT, "bytes", "a number a parameter and pass: of its gradient"),
    "param_ready_ns": Term(WHOLE, INSTANT, "a number a parameter and pass: when its gradient was ready"),
    "collective_calls": Term(COUNT, "", "a number a call of a collective of all ranks: a hash of operation, type and size"),
    "loss_kind": Term(COUNT, "", "a number a call of backward: 1 a mean, 2 a sum, 3 several of them, 0 not known"),
    "loss_share": Term(COUNT, "billionths", "a number a call of backward: weight of all its targets together"),
    "loss_targets": Term(COUNT, "targets", "a number a call of backward: that the loss is taken over, 0 where not known"),
    "loss_site": Term(COUNT, "", "a number a call of backward: the line of the script that it is called on"),
    "loss_inputs": Term(COUNT, "", "a number a call of backward: a hash of some of the model's inputs, 0 where not known"),
    "batch_worker": Term(COUNT, "", "a number a batch: the worker of the loader that made it"),
    "batch_rows": Term(COUNT, "samples", "a number a batch: in it"),
    "by_hand_bytes": Term(COUNT, "bytes", "a number for each all-reduce that a program calls itself"),
}
"""By name: whole numbers of which a step has several, in order (`probe.series`)."""

SPANS: Mapping[str, SpanTerm] = {
    "forward": SpanTerm(INTERVAL, "s", "a forward pass", ("compute",)),
    "backward": SpanTerm(INTERVAL, "s", "a backward pass, until all gradients are computed here", ("compute",)),
    "optimizer": SpanTerm(INTERVAL, "s", "a step of the optimizer", ("compute",)),
    "wait": SpanTerm(INTERVAL, "s", "gradients are computed here, and not yet reduced", ("idle",)),
    "all_reduce": SpanTerm(INTERVAL, "s", "an all-reduce, from its start to its end", ("comm",)),
    "collective": SpanTerm(INTERVAL, "s", "a collective that the script called and waited for", ("comm",)),
    "barrier": SpanTerm(INTERVAL, "s", "a barrier that the script called", ("comm",)),
    "push": SpanTerm(INTERVAL, "s", "a gradient on its way to the server, and the weights on their way back", ("comm",)),
    "device": SpanTerm(INTERVAL, "s", "the rest of what a device of its own would take", ("compute",)),
    "fetch": SpanTerm(INTERVAL, "s", "the loader gives a batch", ("data",)),
    "inside the lock": SpanTerm(INTERVAL, "s", "samples are prepared under a lock", ("data",)),
    "read-sequential": SpanTerm(INTERVAL, "s", "a row of reads in order", ("data",)),
    "read-random": SpanTerm(INTERVAL, "s", "a row of reads of a page each", ("data",)),
    "matmul": SpanTerm(INTERVAL, "s", "a square product, for the ceiling", ("compute",)),
    "matmul-*": SpanTerm(INTERVAL, "s", "a row of square products in this number format", ("compute",)),
    "copy": SpanTerm(INTERVAL, "s", "a row of copies", ("compute",)),
    "add": SpanTerm(INTERVAL, "s", "a row of sums of two arrays", ("compute",)),
    "matvec": SpanTerm(INTERVAL, "s", "a row of products of a matrix and a vector", ("compute",)),
    "linear-16": SpanTerm(INTERVAL, "s", "a row of products with a matrix of 16 columns", ("compute",)),
}
"""By name: intervals of a step, on a lane (`probe.span`)."""

SAMPLES: Mapping[str, Term] = {
    "train": Term(HASHES, "samples", "read to train on"),
    "validation": Term(HASHES, "samples", "read to validate on"),
    "validation_2": Term(HASHES, "samples", "of a second data set to validate on"),
    "validation_3": Term(HASHES, "samples", "of a third"),
    "validation_4": Term(HASHES, "samples", "of a fourth"),
    "targets": Term(HASHES, "samples", "read to train on: their labels"),
    "fed": Term(HASHES, "rows", "that modules were given to train on, from wherever"),
}
"""By name: samples, each as a hash of its bytes, with ids where the data has them (`probe.batches`, `.samples`, `.seen`)."""

DIGESTS: Mapping[str, Term] = {
    "initial_weights": Term(HASH, "", "of the weights before the model is wrapped"),
    "wrapped_weights": Term(HASH, "", "of the whole weights after it is wrapped"),
    "weights": Term(HASH, "", "of the final weights"),
}
"""By name: a hash over whole tensors (`probe.digest`)."""

LOWEST_EXPONENT = -160
"""The power of two that the first entry of `gradient_exponents` counts."""

ARRAYS: Mapping[str, Term] = {
    "weights": Term(ARRAY, "", "the final weights, flat, in float64"),
    "gradient_exponents": Term(
        ARRAY, "elements", f"how many gradients came to the optimizer, by power of two from {LOWEST_EXPONENT} on"
    ),
}
"""By name: whole arrays of rank 0 (`probe.array`)."""
