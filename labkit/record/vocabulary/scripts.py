"""Events that are noted of a script which labkit did not write, by what watches it from outside."""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import AMOUNT, COUNT, FLAG, FROM_ONE, NUMBER, TEXT, WHOLE, WORD_OR_NUMBER, EventTerm, Shape, Term

OF_SCRIPTS: Mapping[str, EventTerm] = {
    "replica": EventTerm(
        "what a rank holds of a model after an update",
        (
            Shape(
                {
                    "update": Term(WHOLE, "updates", "that were made"),
                    "model": Term(COUNT, "", "which one, in the order of first use"),
                    "shape": Term(TEXT, "", "a hash of names, shapes and types of its parameters"),
                },
                {
                    "class": Term(TEXT, "", "of the model"),
                    "names": Term(TEXT, "", "a hash of names and shapes of parameters and buffers"),
                    "types": Term(TEXT, "", "a hash of their names and number formats"),
                    "start": Term(FLAG, "", "whether it is what the model holds before its first pass"),
                    "named": Term(TEXT, "", "names of parameters, then a bar, then those of buffers"),
                    "wrapped": Term(FLAG, "", "whether it is a DistributedDataParallel module"),
                    "sharded": Term(FLAG, "", "whether parameters are parts of larger ones"),
                    "ignored": Term(COUNT, "tensors", "that DDP was told to leave alone"),
                    "weights": Term(TEXT, "", "a hash of the weights"),
                    "buffers": Term(TEXT, "", "a hash of the buffers"),
                    "each": Term(TEXT, "", "a short hash of each parameter; before a colon, which part it is"),
                    "each_buffer": Term(TEXT, "", "a short hash of each buffer"),
                    "norm": Term(WORD_OR_NUMBER, "", "of the weights that are looked at"),
                    "mark": Term(WORD_OR_NUMBER, "", "their sum, each weighted by a cosine of its place"),
                },
            ),
        ),
    ),
    "update_made": EventTerm(
        "what an optimizer's step was made of",
        (
            Shape(
                {
                    "update": Term(WHOLE, "updates", "that were made, this one counted"),
                    "optimizer": Term(COUNT, "", "which one, in the order of first use"),
                },
                {
                    "class": Term(TEXT, "", "of the optimizer"),
                    "tensors": Term(COUNT, "tensors", "that it holds"),
                    "elements": Term(COUNT, "elements", "of them"),
                    "layout": Term(TEXT, "", "a hash of their shapes and types"),
                    "loose": Term(TEXT, "", "places of those that belong to no model that is trained"),
                    "gradients": Term(TEXT, "", "a short hash of each gradient"),
                    "after": Term(TEXT, "", "a short hash of each tensor after the step"),
                    "state": Term(TEXT, "", "a hash of what the optimizer keeps; empty where it is not whole"),
                    "settings": Term(TEXT, "", "of its groups, but the learning rate"),
                },
            ),
        ),
    ),
    "model_start": EventTerm(
        "how a model is as it begins its first pass of training",
        (
            Shape(
                {
                    "model": Term(COUNT, "", "which one, in the order of first use"),
                    "unwritten": Term(COUNT, "tensors", "parameters that hold what memory held as it was reserved"),
                    "unwritten_names": Term(TEXT, "", "their names"),
                    "unwritten_buffers": Term(COUNT, "tensors", "buffers that do"),
                    "unwritten_buffer_names": Term(TEXT, "", "their names"),
                    "unfit": Term(COUNT, "tensors", "parameters that are not finite, or huge"),
                    "unfit_names": Term(TEXT, "", "their names"),
                    "untied": Term(COUNT, "groups", "of parameters that were one tensor, and are several"),
                    "untied_names": Term(TEXT, "", "their names"),
                    "untied_where": Term(TEXT, "file:line", "of the call that parted them"),
                },
            ),
        ),
    ),
    "sharding": EventTerm(
        "a module is given to a wrapper that shards it",
        (
            Shape(
                {
                    "number": Term(COUNT, "", "of such calls before"),
                    "wrapper": Term(TEXT, "", "fully_shard or FullyShardedDataParallel"),
                    "tensors": Term(COUNT, "tensors", "whole parameters that it gets"),
                    "weights": Term(TEXT, "", "a hash of them"),
                    "synced": Term(FLAG, "", "whether it is told to send rank 0's weights to all"),
                    "where": Term(TEXT, "file:line", "of the call"),
                },
            ),
        ),
    ),
    "sharded_start": EventTerm(
        "whether a sharded model begins with what it was sharded with",
        (
            Shape(
                {
                    "model": Term(COUNT, "", "which one, in the order of first use"),
                    "parts": Term(COUNT, "tensors", "that were compared"),
                    "unchanged": Term(FLAG, "", "whether all are as they were"),
                },
            ),
        ),
    ),
    "sharded_scaling": EventTerm(
        "by which factor a rank's part of the gradients was scaled between the backward pass and the update",
        (Shape({"update": Term(WHOLE, "updates", "this one counted"), "factor": Term(WORD_OR_NUMBER, "", "of it")}),),
    ),
    "clipped": EventTerm(
        "clip_grad_norm_ found a norm",
        (
            Shape(
                {
                    "update": Term(WHOLE, "updates", "the one that follows counted"),
                    "norm": Term(WORD_OR_NUMBER, "", "of the gradients that it was given"),
                    "where": Term(TEXT, "file:line", "of the call"),
                },
            ),
        ),
    ),
    "inputs": EventTerm(
        "what a model is called with in training",
        (
            Shape(
                {
                    "model": Term(COUNT, "", "which one, in the order of first use"),
                    "call": Term(FROM_ONE, "", "of this model, in training"),
                    "each": Term(TEXT, "", "a short hash of each tensor that may have been drawn"),
                }
            ),
        ),
    ),
    "minds_mode": EventTerm(
        "a model has dropout or BatchNorm", (Shape({"batch_norm": Term(FLAG, "", "whether it has BatchNorm")}),)
    ),
    "evaluated_over": EventTerm(
        "a model was called over a pass of a loader of which nothing was trained on",
        (
            Shape(
                {
                    "loader": Term(COUNT, "", "which one, in the order of first use"),
                    "batches": Term(COUNT, "batches", "that it was called with"),
                    "in_train_mode": Term(COUNT, "calls", "in training mode"),
                    "in_eval_mode": Term(COUNT, "calls", "in evaluation mode"),
                    "trains_too": Term(FLAG, "", "whether other passes of the loader are trained on"),
                    "where": Term(TEXT, "file:line", "of the first call"),
                }
            ),
        ),
    ),
    "barrier_in_step": EventTerm(
        "a script calls a barrier within a step for the first time", (Shape({"where": Term(TEXT, "file:line", "")}),)
    ),
    "raised": EventTerm(
        "the script raised an error and ended",
        (
            Shape(
                {
                    "error": Term(TEXT, "", "its type"),
                    "message": Term(TEXT, "", "its first line"),
                    "where": Term(TEXT, "file:line", "of the script"),
                    "waits_in": Term(TEXT, "", "the collective that the script was in; empty without one"),
                    "of_others": Term(FLAG, "", "whether it says that another rank did not come, or left"),
                    "number": Term(COUNT, "calls", "of collectives by the script"),
                    "given": Term(TEXT, "", "what was given to the last"),
                },
            ),
        ),
    ),
    "parameters": EventTerm(
        "which parameters of a model are trained, after an update",
        (
            Shape(
                {
                    "update": Term(WHOLE, "updates", "that were made"),
                    "model": Term(COUNT, "", "which one, in the order of first use"),
                    "trainable": Term(COUNT, "tensors", "that ask for a gradient"),
                    "without_gradient": Term(COUNT, "tensors", "that an optimizer holds and that have no gradient"),
                    "unheld": Term(COUNT, "tensors", "with a gradient, held by no optimizer, that keep their values"),
                    "unheld_names": Term(TEXT, "", "their names"),
                    "later": Term(COUNT, "tensors", "of these, made after the last optimizer was"),
                    "later_names": Term(TEXT, "", "their names"),
                    "unfrozen": Term(COUNT, "tensors", "that were frozen when DDP wrapped the model, and now are not"),
                    "unfrozen_names": Term(TEXT, "", "their names"),
                    "foreign": Term(COUNT, "tensors", "that optimizers hold and no model that is trained has"),
                },
            ),
        ),
    ),
    "idle_weights": EventTerm(
        "modules whose weights an optimizer holds, and which never get a gradient nor change, were called in a pass",
        (
            Shape(
                {
                    "update": Term(WHOLE, "updates", "that were made"),
                    "tensors": Term(COUNT, "tensors", "of these modules"),
                    "share": Term(AMOUNT, "", "of all elements that optimizers hold and that ask for a gradient"),
                    "names": Term(TEXT, "", "of the modules"),
                    "no_grad": Term(FLAG, "", "whether they were called with gradients switched off"),
                    "training": Term(FLAG, "", "whether they are in training mode"),
                },
            ),
        ),
    ),
    "precision_use": EventTerm(
        "what a script uses of mixed precision, as it is used first",
        (Shape({"what": Term(TEXT, "", "autocast and its format, scaler, ..."), "where": Term(TEXT, "file:line", "")}),),
    ),
    "scheduler": EventTerm(
        "a learning-rate scheduler is stepped for the first time",
        (Shape({"where": Term(TEXT, "file:line", ""), "updates_before": Term(COUNT, "updates", "that were made before")}),),
    ),
    "worker_random": EventTerm(
        "a worker of a loader drew random numbers for its first batch",
        (
            Shape(
                {
                    "start": Term(COUNT, "", "which start of workers, in their order"),
                    "worker": Term(COUNT, "", "its number"),
                    "of": Term(COUNT, "workers", "of this loader"),
                    "stream": Term(FLAG, "", "whether the data set is a stream, which may shuffle alike in all workers"),
                    "generator": Term(TEXT, "", "which one"),
                    "state": Term(TEXT, "", "a hash of its state before"),
                },
            ),
        ),
    ),
    "workers_started": EventTerm(
        "workers of a loader were started, and gave their first batch",
        (
            Shape(
                {
                    "seconds": Term(AMOUNT, "s", "from the start to the batch"),
                    "workers": Term(COUNT, "workers", "of this loader"),
                    "where": Term(TEXT, "file:line", "of the loop"),
                },
            ),
        ),
    ),
    "evaluation_pass": EventTerm(
        "a pass over data that a model evaluated came to its end",
        (
            Shape(
                {
                    "loader": Term(COUNT, "", "which stream of data"),
                    "number": Term(COUNT, "", "of the pass"),
                    "rows": Term(COUNT, "samples", "that this rank read"),
                    "size": Term(COUNT, "samples", "of the data set; 0 where it cannot tell"),
                    "seconds": Term(AMOUNT, "s", "from the first batch to the end"),
                    "updates": Term(COUNT, "updates", "that were made before"),
                },
            ),
        ),
    ),
    "reduced": EventTerm(
        "a script reduces something over ranks while it evaluates",
        (
            Shape(
                {
                    "operation": Term(TEXT, "", "the collective"),
                    "op": Term(TEXT, "", "SUM, AVG and so on"),
                    "values": Term(TEXT, "", "that this rank gives, where they are few"),
                    "elements": Term(COUNT, "elements", "that it gives"),
                    "rows": Term(COUNT, "samples", "that it evaluated since the last update"),
                    "updates": Term(COUNT, "updates", "that were made before"),
                    "averaged": Term(FLAG, "", "whether the result is divided by the number of ranks"),
                    "where": Term(TEXT, "file:line", "of the call"),
                },
                {"by_hand": Term(FLAG, "", "whether the samples came from no loader")},
            ),
        ),
    ),
    "batch_means": EventTerm(
        "a script keeps the plain mean of numbers that it took of batches of different sizes",
        (
            Shape(
                {
                    "where": Term(TEXT, "file:line", "where it takes the number of a batch"),
                    "plain": Term(NUMBER, "", "mean of the numbers"),
                    "weighted": Term(NUMBER, "", "their mean, each as often as its batch has samples"),
                    "batches": Term(COUNT, "batches", "that were evaluated"),
                    "fewest": Term(COUNT, "samples", "of a batch"),
                    "most": Term(COUNT, "samples", "of a batch"),
                    "rows": Term(COUNT, "samples", "of all batches"),
                },
            ),
        ),
    ),
    "reduced_again": EventTerm(
        "a sum over ranks was summed over ranks again, several times",
        (Shape({"where": Term(TEXT, "file:line", "of the call")}),),
    ),
    "plateau": EventTerm(
        "a scheduler that looks at a metric is stepped",
        (Shape({"metric": Term(WORD_OR_NUMBER, "", "what it is given"), "where": Term(TEXT, "file:line", "of the call")}),),
    ),
    "scheduler_end": EventTerm(
        "what became of a learning-rate scheduler by the end of the run",
        (
            Shape(
                {
                    "scheduler": Term(TEXT, "", "its class"),
                    "where": Term(TEXT, "file:line", "where it was made"),
                    "calls": Term(COUNT, "calls", "that stepped it"),
                    "before_first_update": Term(COUNT, "calls", "of them before any of these"),
                    "given": Term(FLAG, "", "whether a step was given an epoch or a metric"),
                    "length": Term(COUNT, "steps", "of its own for which it is made; 0 where it does not say"),
                    "updates": Term(COUNT, "updates", "of its optimizer, since it was made"),
                    "cut": Term(FLAG, "", "whether the run was ended after the updates that were asked for"),
                },
            ),
        ),
    ),
    "scheduler_astray": EventTerm(
        "a learning-rate scheduler whose optimizer makes no update, while another one with the same parameters does",
        (
            Shape(
                {
                    "scheduler": Term(TEXT, "", "its class"),
                    "where": Term(TEXT, "file:line", "where it was made"),
                    "calls": Term(COUNT, "calls", "that stepped it"),
                    "first": Term(WORD_OR_NUMBER, "", "learning rate that it was seen to set first"),
                    "last": Term(WORD_OR_NUMBER, "", "learning rate that it was seen to set last"),
                },
            ),
        ),
    ),
    "lr_beside": EventTerm(
        "a number that the script changes as if it were the learning rate, and that no step of the optimizer reads",
        (
            Shape(
                {
                    "what": Term(TEXT, "", "how it is written"),
                    "where": Term(TEXT, "file:line", "where the script assigns to it"),
                    "first": Term(WORD_OR_NUMBER, "", "at the first update"),
                    "last": Term(WORD_OR_NUMBER, "", "at the last update"),
                },
            ),
        ),
    ),
    "update_effect": EventTerm(
        "what an optimizer's step did to a sample of its weights",
        (
            Shape(
                {
                    "optimizer": Term(COUNT, "", "which one, in the order of their first steps"),
                    "update": Term(WHOLE, "steps", "of this optimizer, this one counted"),
                    "tensors": Term(COUNT, "tensors", "that it holds"),
                    "with_gradient": Term(COUNT, "tensors", "of them that have a gradient"),
                    "gradients_zero": Term(FLAG, "", "whether there are gradients, and all are 0"),
                    "elements": Term(COUNT, "elements", "of the sample, whose gradient is not 0"),
                    "unchanged": Term(COUNT, "elements", "of them that the step left as they were"),
                    "unmoved": Term(COUNT, "elements", "of them that are as they were before the first step"),
                    "undone": Term(FLAG, "", "whether somebody had put back what the step before did"),
                    "moved": Term(FLAG, "", "whether any weight of the sample changed in this step"),
                    "lr": Term(NUMBER, "", "largest learning rate of its groups; -1 where it has none"),
                    "half": Term(FLAG, "", "whether all of its weights have 16 bits"),
                    "where": Term(TEXT, "file:line", "of the call"),
                },
            ),
        ),
    ),
    "not_updated": EventTerm(
        "so many backward passes were made, and no optimizer made a step",
        (
            Shape(
                {
                    "backwards": Term(COUNT, "passes", "so far"),
                    "weights_move": Term(FLAG, "", "whether weights that an optimizer holds changed by other means"),
                },
            ),
        ),
    ),
    "stood_still": EventTerm(
        "where a rank stood when a run was ended that stood still",
        (
            Shape(
                {
                    "waits_in": Term(TEXT, "", "what the script had called"),
                    "where": Term(TEXT, "", "its line"),
                    "in_collective": Term(FLAG, "", "whether that is a collective"),
                    "number": Term(COUNT, "calls", "of collectives by the script, this one counted"),
                },
                {
                    "given": Term(TEXT, "", "type, size and partner of what was given to it"),
                    "died_of": Term(TEXT, "", "the signal that ended the process, where one did"),
                },
            ),
        ),
    ),
}
"""By name."""
