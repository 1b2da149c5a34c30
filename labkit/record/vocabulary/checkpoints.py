"""Events of checkpoints in a script that is watched: what it saves, loads and goes on from, and averages that it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import AMOUNT, COUNT, FLAG, NUMBER, TEXT, WHOLE, EventTerm, Shape, Term

_PLACE = {"where": Term(TEXT, "file:line", "of the call")}
_COUNTERS = {"counters": Term(TEXT, "", "whole numbers in it under names that count something")}
_MADE = {"made_step": Term(WHOLE, "", "number of the step at which this process saved it; -1 where it did not")}

_FILES = {
    "torch_save": EventTerm(
        "a script saved states of a training",
        (
            Shape(
                {
                    "path": Term(TEXT, "", "where to; empty for memory"),
                    "over": Term(FLAG, "", "whether a file that this run wrote or read was there"),
                    **_PLACE,
                    "optimizer": Term(FLAG, "", "whether an optimizer's state is in it"),
                    "scheduler": Term(FLAG, "", "whether a learning-rate scheduler's state is in it"),
                    "scaler": Term(FLAG, "", "whether a gradient scaler's state is in it"),
                    "has_scheduler": Term(FLAG, "", "whether the script has such a scheduler that is stepped"),
                    "has_scaler": Term(FLAG, "", "whether the script has such a scaler"),
                },
                {
                    "average": Term(FLAG, "", "whether averaged weights are in it"),
                    "has_average": Term(FLAG, "", "whether the script keeps averaged weights"),
                    "moments": Term(FLAG, "", "whether the optimizer's state in it holds tensors"),
                    "others": Term(
                        COUNT, "files", "with an optimizer's state that this run wrote elsewhere and that are there"
                    ),
                    "content": Term(TEXT, "", "a hash of some values of its tensors, and of its counters"),
                    "rederived": Term(FLAG, "", "whether the source makes schedules that begin in their midst"),
                    "in_thread": Term(FLAG, "", "whether a thread beside the main one saved"),
                    "live": Term(COUNT, "tensors", "that a thread saved and training changes in place"),
                    "updates": Term(COUNT, "updates", "that were made as it began, or as its thread was started"),
                    "meanwhile": Term(COUNT, "updates", "that were made until it was done"),
                    "seconds": Term(AMOUNT, "s", "that it took"),
                    "finished": Term(FLAG, "", "whether it was done as the script ended"),
                    "shared": Term(FLAG, "", "whether all ranks write their parts of it to this path together"),
                    **_COUNTERS,
                },
            ),
        ),
    ),
    "checkpoint_moved": EventTerm(
        "a file that a script saved was renamed or copied",
        (
            Shape(
                {
                    "path": Term(TEXT, "", "where to"),
                    "content": Term(TEXT, "", "a hash of some of what it holds"),
                    **_PLACE,
                }
            ),
        ),
    ),
    "torch_load": EventTerm(
        "a script loaded states of a training",
        (
            Shape(
                {
                    "path": Term(TEXT, "", "where from; empty for memory"),
                    **_PLACE,
                    "optimizer": Term(FLAG, "", "whether an optimizer's state is in it"),
                    "weights": Term(FLAG, "", "whether weights are in it"),
                    **_MADE,
                    **_COUNTERS,
                    "reads_counter": Term(FLAG, "", "whether the source takes one of these out of it"),
                    "elsewhere": Term(FLAG, "", "whether tensors came to a GPU that is not this process's"),
                }
            ),
        ),
    ),
    "module_loaded": EventTerm(
        "a module was given a state",
        (
            Shape(
                {
                    "module": Term(COUNT, "", "which one, in the order of first load"),
                    **_PLACE,
                    "given": Term(COUNT, "keys", "of the state"),
                    "own": Term(COUNT, "tensors", "of the state that are the module's own"),
                    "changed": Term(FLAG, "", "whether it is the module's state of before, and has other values by now"),
                    "missing": Term(COUNT, "keys", "that the module has and the state has not"),
                    "unexpected": Term(COUNT, "keys", "that the state has and the module has not"),
                    "renamed": Term(COUNT, "keys", "of these that would fit but for words in front"),
                    "example": Term(TEXT, "", "one that the module has not"),
                    "from_file": Term(FLAG, "", "whether it came from a file"),
                    "updates": Term(COUNT, "updates", "that were made before"),
                },
                {"in_place": Term(FLAG, "", "whether the module's own tensors were filled from a file")},
            ),
        ),
    ),
    "generator_restored": EventTerm(
        "the script set the state of torch's generator, after it loaded a checkpoint",
        (
            Shape(
                {
                    "digest": Term(TEXT, "", "a hash of the state"),
                    "seed": Term(TEXT, "", "of the generator before"),
                    **_PLACE,
                }
            ),
        ),
    ),
}
_RESUMED = {
    "path": Term(TEXT, "", "of the file that was loaded; empty for memory"),
    "where": Term(TEXT, "file:line", "of the load"),
    "file": Term(WHOLE, "", "which of the files that were loaded; -1 for none"),
    **_MADE,
    **_COUNTERS,
    "optimizer_given": Term(FLAG, "", "whether the optimizer was given a state"),
    "optimizer_where": Term(TEXT, "file:line", "where it was"),
    "file_optimizer": Term(FLAG, "", "whether the file has an optimizer's state"),
    "file_moments": Term(FLAG, "", "whether that holds tensors"),
    "file_steps": Term(WHOLE, "steps", "that it has counted; -1 where it does not say"),
    "steps": Term(WHOLE, "steps", "that the optimizer has counted before this one; -1 where it does not say"),
    "moments": Term(FLAG, "", "whether the optimizer's state held tensors before this step"),
    "stateful": Term(FLAG, "", "whether it holds tensors after it"),
    "same_settings": Term(FLAG, "", "whether the optimizer has the settings of the one in the file"),
    "file_rate": Term(NUMBER, "", "learning rate of the optimizer in the file; -1 without one"),
    "rate": Term(NUMBER, "", "learning rate of this step"),
    "cast": Term(TEXT, "", "state that was given in one number format and is held in another"),
    "cast_down": Term(FLAG, "", "whether that lost digits"),
    "kept_apart": Term(FLAG, "", "whether the optimizer keeps that state in another format than its weights, of itself"),
    "has_schedule": Term(FLAG, "", "whether a learning-rate scheduler has this optimizer"),
    "schedule_at": Term(WHOLE, "steps", "of the scheduler; -1 without one"),
    "schedule_given": Term(FLAG, "", "whether it was given a state"),
    "file_schedule": Term(FLAG, "", "whether the file has a scheduler's state"),
    "file_schedule_at": Term(WHOLE, "steps", "of that scheduler; -1 where it does not say"),
    "schedule_rate": Term(NUMBER, "", "learning rate that the scheduler in the file had set; -1 without one"),
    "has_scaler": Term(FLAG, "", "whether a gradient scaler makes this step"),
    "scaler_given": Term(FLAG, "", "whether it was given a state"),
    "scale": Term(NUMBER, "", "of the scaler; -1 without one"),
    "file_scale": Term(NUMBER, "", "of the scaler in the file; -1 without one"),
    "weights_loaded": Term(AMOUNT, "of the optimizer's weights", "that were in what was loaded"),
    "weights_missing": Term(AMOUNT, "of the optimizer's weights", "that a module had and the file had not"),
    "weights_overwritten": Term(AMOUNT, "of those loaded", "that have nothing of it as the step begins"),
    "weights_expected": Term(COUNT, "tensors", "of the optimizer whose shapes the file has"),
    "weights_arrived": Term(COUNT, "tensors", "of these that hold what the file holds"),
    "put_back": Term(AMOUNT, "of those loaded", "that are after the step where they were before the load"),
    "load_where": Term(TEXT, "file:line", "where a module was given its state"),
}
_AVERAGES = {
    "sampler_epoch": EventTerm(
        "a pass over a loader begins whose sampler orders the data by an epoch",
        (Shape({"epoch": Term(WHOLE, "", "that it believes in")}),),
    ),
    "resumed": EventTerm(
        "the first step of an optimizer after a load",
        (
            Shape(
                _RESUMED,
                {
                    "unread_moments": Term(
                        FLAG, "", "whether the file has moments, the script asked for none, and the optimizer was given none"
                    )
                },
            ),
        ),
    ),
    "average": EventTerm(
        "averaged weights that a script keeps, after an update",
        (
            Shape(
                {
                    "update": Term(COUNT, "updates", "that were made"),
                    "number": Term(COUNT, "", "which average, in the order in which they were seen"),
                    "held_as": Term(TEXT, "", "what the script calls it"),
                    "tensors": Term(COUNT, "tensors", "of it"),
                    "called": Term(COUNT, "tensors", "of it under a name that the model has as it is called"),
                    "fitting": Term(COUNT, "tensors", "of it that fit one that is trained"),
                    "moved": Term(FLAG, "", "whether it changed since the last look"),
                    "weights_moved": Term(FLAG, "", "whether the weights did"),
                    "evaluated": Term(FLAG, "", "whether it was called without gradients"),
                    "since_load": Term(COUNT, "updates", "since a load; 0 where that is long ago"),
                    "from_file": Term(FLAG, "", "whether it holds what was loaded last"),
                    "pull": Term(NUMBER, "of the way", "to the weights that one update took it; -1 where it is not known"),
                    "lag": Term(AMOUNT, "updates", "of the weights that it was behind them"),
                },
                {"named": Term(COUNT, "updates", "after which the script itself went through a wrapped model by names")},
            ),
        ),
    ),
    "evaluation": EventTerm(
        "an evaluation of the model that is trained, told of as training goes on",
        (
            Shape(
                {
                    **_PLACE,
                    "changed": Term(AMOUNT, "of some values", "that were others than the last update left"),
                    "stayed": Term(FLAG, "", "whether training goes on with those that were evaluated"),
                    "back": Term(FLAG, "", "whether it goes on with those that the last update left"),
                    "older": Term(AMOUNT, "", "distance to the nearest of before, over that to the last"),
                    "returned": Term(FLAG, "", "whether they are those of an update before"),
                    "average": Term(FLAG, "", "whether they are those of an average that the script keeps"),
                    "exchanged": Term(FLAG, "", "whether the script called collectives meanwhile"),
                }
            ),
        ),
    ),
}

CHECKPOINTS: Mapping[str, EventTerm] = _FILES | _AVERAGES
"""By name: events that the doctor's watchers note."""
