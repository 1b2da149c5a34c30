"""Events about gradients and the losses that they are of."""

from __future__ import annotations

from collections.abc import Mapping

from .kinds import AMOUNT, COUNT, FLAG, FROM_ONE, TEXT, WORD_OR_NUMBER, EventTerm, Shape, Term

GRADIENTS: Mapping[str, EventTerm] = {
    "gradient": EventTerm(
        "what the backward passes of an update gave on this rank, and what its optimizer took, as projections onto fixed "
        "directions",
        (
            Shape(
                {
                    "update": Term(FROM_ONE, "", "of this optimizer, from 1 on"),
                    "optimizer": Term(COUNT, "", "which one, in the order of their updates"),
                    "tensors": Term(COUNT, "tensors", "that are looked at"),
                    "left_out": Term(COUNT, "tensors", "that are not: parts of larger ones"),
                    "passes": Term(COUNT, "backward passes", "since the gradients were cleared"),
                    "scale": Term(AMOUNT, "", "that the gradients were divided by after the passes, by a GradScaler"),
                    "earlier": Term(TEXT, "", "of all passes but the last, a few numbers a group of parameters"),
                    "last": Term(TEXT, "", "of the last pass"),
                    "taken": Term(TEXT, "", "of what the optimizer took, or what clipping found"),
                },
                {
                    "kind": Term(TEXT, "", "of optimizer"),
                    "clipped": Term(FLAG, "", "whether gradients were clipped"),
                    "formats": Term(TEXT, "", "number formats of the gradients"),
                    "names": Term(TEXT, "", "of the first parameter of each group"),
                },
            ),
        ),
    ),
    "loss_form": EventTerm(
        "how a loss is put together that backward is called on, as it is seen first",
        (
            Shape(
                {
                    "where": Term(TEXT, "file:line", "of the call of backward"),
                    "loss": Term(TEXT, "", "its heaviest part"),
                    "kind": Term(TEXT, "", "mean or sum"),
                    "terms": Term(FROM_ONE, "parts", "that are added up"),
                    "divided_by": Term(TEXT, "", "numbers, outermost first"),
                    "source": Term(TEXT, "", "what the source around the call divides by, as written"),
                },
            ),
        ),
    ),
    "gathered": EventTerm(
        "features with a gradient were gathered from all ranks, by a call that gives none back, before a backward pass",
        (
            Shape(
                {
                    "where": Term(TEXT, "file:line", "of the call"),
                    "used": Term(FLAG, "", "whether the loss is computed from what came from other ranks"),
                    "own_back": Term(FLAG, "", "whether this rank's own part was put back, with its gradient"),
                    "loss": Term(WORD_OR_NUMBER, "", "of this rank"),
                    "ranks": Term(FROM_ONE, "ranks", "of the group"),
                },
            ),
        ),
    ),
    "not_waited_for": EventTerm(
        "an optimizer steps while a collective that reduces its gradients was not waited for",
        (Shape({"where": Term(TEXT, "file:line", "where that was called")}),),
    ),
}
"""By name."""
