"""Events of which a part is read in a script's source."""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import COUNT, FLAG, TEXT, EventTerm, Shape, Term

OF_SOURCE: Mapping[str, EventTerm] = {
    "sampled": EventTerm(
        "a loader whose DistributedSampler shares a data set out begins its first pass",
        (
            Shape(
                {
                    "loader": Term(COUNT, "", "which stream of data"),
                    "where": Term(TEXT, "file:line", "of the pass"),
                    "size": Term(COUNT, "samples", "of the data set on this rank"),
                    "ranks": Term(COUNT, "", "among which the sampler shares it out"),
                    "rank": Term(COUNT, "", "whose share it takes"),
                    "shuffle": Term(FLAG, "", "whether it shuffles"),
                    "rows": Term(TEXT, "", "the smallest hashes of each column that lies in memory"),
                    "cut": Term(TEXT, "file:line", "where the source takes a rank's part of something; empty without"),
                    "loop": Term(TEXT, "file:line", "in which the loader is read again and again; empty without"),
                    "told": Term(FLAG, "", "whether the source calls set_epoch, or an epoch was set"),
                },
            ),
        ),
    ),
    "source_read": EventTerm(
        "the source of the script's own modules was read",
        (
            Shape(
                {"files": Term(COUNT, "files", "that could be read")},
                {"own_parts": Term(TEXT, "file:line", "where it says that each rank keeps an own part; empty without")},
            ),
        ),
    ),
    "unread": EventTerm(
        "a setting of the training that nothing in the source reads",
        (
            Shape(
                {
                    "where": Term(TEXT, "file:line", "of the option, the function or the field"),
                    "kind": Term(TEXT, "", "option, argument or field"),
                    "setting": Term(TEXT, "", "its name"),
                    "function": Term(TEXT, "", "whose argument it is, or the class whose field; empty for an option"),
                    "alone": Term(FLAG, "", "whether what it is given is used for nothing else"),
                },
            ),
        ),
    ),
    "unreached": EventTerm(
        "a call of the training that stands behind the end of its block",
        (
            Shape(
                {
                    "where": Term(TEXT, "file:line", "of the call"),
                    "call": Term(TEXT, "", "as it is written"),
                    "after": Term(TEXT, "file:line", "of what ends the block"),
                    "ends_with": Term(TEXT, "", "return, break or continue"),
                },
            ),
        ),
    ),
    "stopped": EventTerm(
        "the script was ended after as many updates as were asked for",
        (Shape({"updates": Term(COUNT, "updates", "that were made")}),),
    ),
}
