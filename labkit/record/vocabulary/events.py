"""Events: what happens now and then, with `probe.event(name, field=value)`."""

from __future__ import annotations

from collections.abc import Mapping

from .checkpoints import CHECKPOINTS
from .facts import FACTS
from .gradients import GRADIENTS
from .kinds import AMOUNT, COUNT, FLAG, FROM_ONE, TEXT, WHOLE, WORD_OR_NUMBER, EventTerm, Shape, Term
from .scripts import OF_SCRIPTS
from .source import OF_SOURCE

_OF_STEP = {"of_step": Term(WHOLE, "steps", "that are done")}
_ALIVE = {
    "parameters": Term(COUNT, "bytes", "of the weights, or their shards"),
    "gradients": Term(COUNT, "bytes", "of the gradients, or their shards"),
    "optimizer_state": Term(COUNT, "bytes", "of the optimizer's state, or its shards"),
    "unsharded": Term(COUNT, "bytes", "of whole copies that a wrapper gathered"),
    "buffers": Term(COUNT, "bytes", "of buffers, DDP's buckets among them"),
}
_SAVES = {
    "save": EventTerm(
        "a checkpoint is complete",
        (
            Shape(
                _OF_STEP,
                {
                    "path": Term(TEXT, "", "where it is"),
                    "what": Term(TEXT, "", "which state it holds: full, light or weights"),
                    "stall_s": Term(AMOUNT, "s", "that training stood still"),
                    "write_s": Term(AMOUNT, "s", "until it was complete"),
                    "bytes": Term(COUNT, "bytes", "of all ranks' files together"),
                    "alone": Term(FLAG, "", "whether this rank saves without the others"),
                    "digest": Term(TEXT, "", "a hash of what it holds"),
                },
            ),
        ),
    ),
    "save_failed": EventTerm("a checkpoint could not be written", (Shape(_OF_STEP, {"error": Term(TEXT, "", "why")}),)),
    "load": EventTerm(
        "what a start found; of_step is 0 where there was nothing",
        (
            Shape(
                _OF_STEP,
                {
                    "path": Term(TEXT, "", "where it was"),
                    "load_s": Term(AMOUNT, "s", "that loading took"),
                    "had": Term(WHOLE, "steps", "that this rank's own disk held"),
                    "digest": Term(TEXT, "", "a hash of what was loaded"),
                    "refused": Term(COUNT, "checkpoints", "newer ones that could not be used"),
                },
            ),
        ),
    ),
    "state": EventTerm(
        "a hash of each state of a training, as it is saved and as it is resumed",
        (Shape({"when": Term(TEXT, "", "saved or resumed"), **_OF_STEP}, more="a hash for each state, by its name"),),
    ),
}
_WATCHED = {
    "ddp": EventTerm(
        "what a watched DDP module says of itself, where steps had begun",
        (Shape({}, {name: term for name, term in FACTS.items() if name.startswith("ddp_")}),),
    ),
    "ddp_comm_hook": EventTerm("the script registered a communication hook", (Shape({"hook": Term(TEXT, "", "its name")}),)),
    "unused_parameters": EventTerm(
        "parameters that no pass had left unused before",
        (Shape({"count": Term(COUNT, "tensors", "unused in this pass"), "names": Term(TEXT, "", "of the new ones")}),),
    ),
    "memory": EventTerm(
        "bytes that a rank keeps at an instant",
        (
            Shape(
                {"instant": Term(TEXT, "", "of a step, such as backward_end, or first_update")},
                _ALIVE,
            ),
        ),
    ),
    "peak": EventTerm(
        "the most that was alive at an instant or as a collective began",
        (Shape({"peak": Term(COUNT, "bytes", "of all categories together")}, _ALIVE),),
    ),
    "own_account": EventTerm(
        "what an implementation's own partition says that a rank keeps",
        (Shape({}, {**_ALIVE, "step_counters": Term(COUNT, "bytes", "of the optimizer's counters of steps")}),),
    ),
    "collectives": EventTerm(
        "what a rank gave to one kind of collective in one group, in a step",
        (
            Shape(
                {
                    "operation": Term(TEXT, "", "its kind, such as all_reduce"),
                    "sent_bytes": Term(AMOUNT, "bytes", "that a rank sends by the ring algorithm, the mean over the group"),
                    "count": Term(COUNT, "operations", ""),
                    "elements": Term(COUNT, "elements", "of the whole tensors"),
                    "num_bytes": Term(COUNT, "bytes", "of the whole tensors"),
                    "group_size": Term(COUNT, "ranks", "of the group"),
                    "hosts": Term(COUNT, "hosts", "that the group is spread over"),
                }
            ),
        ),
    ),
    "way_of_a_step": EventTerm(
        "what one step gave to collectives and held, by how it was made",
        (
            Shape(
                {
                    "strategy": Term(TEXT, "", "how state is divided"),
                    "micro_batches": Term(FROM_ONE, "passes", "before the optimizer's step"),
                    "last_alone": Term(FLAG, "", "whether gradients are reduced in the last micro-batch alone"),
                    "gathered_as": Term(TEXT, "", "type in which weights are gathered"),
                    "reduced_as": Term(TEXT, "", "type in which gradients are reduced"),
                    "gathered_bytes": Term(COUNT, "bytes", "of whole weights given to collectives"),
                    "reduced_bytes": Term(COUNT, "bytes", "of whole gradients given to collectives"),
                    "sent_bytes": Term(AMOUNT, "bytes", "that a rank sends by the ring algorithm"),
                    "between_bytes": Term(COUNT, "bytes", "of gradients held between two micro-batches"),
                }
            ),
        ),
    ),
    "wire": EventTerm(
        "what a host's interfaces counted, headers included",
        (
            Shape(
                {
                    "steps": Term(FROM_ONE, "steps", "that it counted over"),
                    "wire_received_bytes": Term(COUNT, "bytes", "that came over the host's link"),
                    "wire_sent_bytes": Term(COUNT, "bytes", "that went over the host's link"),
                    "inside_bytes": Term(COUNT, "bytes", "between ranks of this host"),
                }
            ),
        ),
    ),
    "optimizer_knows": EventTerm(
        "which of the model's parameters an optimizer holds",
        (
            Shape(
                {
                    "known": Term(COUNT, "tensors", "of the model that it holds"),
                    "parameters": Term(COUNT, "tensors", "of the model"),
                    "orphans": Term(COUNT, "tensors", "that it holds and the model does not have"),
                }
            ),
        ),
    ),
}
_PROGRAMS = {
    "epoch_end": EventTerm(
        "all of a loader was read",
        (
            Shape(
                {"epoch": Term(WHOLE, "", "its number")},
                {
                    "of": Term(TEXT, "", "the name of the samples, where it is not train"),
                    "loader": Term(COUNT, "", "which of the loaders of this name and epoch"),
                },
            ),
        ),
    ),
    "fault": EventTerm(
        "a planned fault happens",
        (
            Shape(
                {"fault": Term(TEXT, "", "its kind"), "at_step": Term(WHOLE, "", "number of the step")},
                {"at": Term(TEXT, "", "the point of the program"), "seconds": Term(AMOUNT, "s", "that it lasts")},
            ),
        ),
    ),
    "timed": EventTerm(
        "a loop was timed without a watch",
        (
            Shape(
                {
                    "loop": Term(TEXT, "", "variant or fp32"),
                    "repeat": Term(WHOLE, "", "number of the repeat"),
                    "steps": Term(FROM_ONE, "steps", "that were timed"),
                    "elapsed_ns": Term(AMOUNT, "ns", "that they took"),
                }
            ),
        ),
    ),
    "loop_returned": EventTerm("a loop returned something", (Shape({"kind": Term(TEXT, "", "its type")}),)),
    "weights_moved": EventTerm(
        "how far training moved the weights", (Shape({"largest": Term(WORD_OR_NUMBER, "", "difference of one weight")}),)
    ),
    "evaluated": EventTerm("the loss over all data, at the end", (Shape({"loss": Term(WORD_OR_NUMBER, "", "")}),)),
    "sharpness": EventTerm(
        "the largest curvature of the loss on the way",
        (Shape({"value": Term(WORD_OR_NUMBER, "", "of it")}, {"at_step": Term(WHOLE, "", "number of the step")}),),
    ),
}

EVENTS: Mapping[str, EventTerm] = {**_SAVES, **CHECKPOINTS, **OF_SCRIPTS, **OF_SOURCE, **GRADIENTS, **_WATCHED, **_PROGRAMS}
"""By name: the events that labkit notes."""
