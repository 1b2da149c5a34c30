"""What the questions about reads say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # what ids and hashes of the content cannot settle
    "contents-change": Reason(
        "{different:,} different contents were read of {samples:plural sample/samples}: a sample is not the same each time "
        "(augmentation, padding to a batch), and hashes of the content do not show it again",
        "record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
    ),
    "ids-are-doubtful": Reason(
        "ranks read the same ids, but never the same content under one: the ids may number each rank's own part of the "
        "data, or the content changes each time (augmentation)",
        "give each sample of the whole data an id of its own, the same on all ranks, and run 2 epochs",
    ),
    # in which epochs, passes or stretches of an endless epoch something holds: the end of a cause
    "in-all-epochs": Reason(", in all {parts:plural epoch/epochs}"),
    "in-all-passes": Reason(", in all {parts:plural pass/passes}"),
    "in-all-stretches": Reason(", in all {parts:plural stretch/stretches}"),
    "from-epochs": Reason(", from {first} on: in {found} of {parts:plural epoch/epochs}"),
    "from-passes": Reason(", from {first} on: in {found} of {parts:plural pass/passes}"),
    "from-stretches": Reason(", from {first} on: in {found} of {parts:plural stretch/stretches}"),
    "first-in-epochs": Reason(", first in {first}: in {found} of {parts:plural epoch/epochs}"),
    "first-in-passes": Reason(", first in {first}: in {found} of {parts:plural pass/passes}"),
    "first-in-stretches": Reason(", first in {first}: in {found} of {parts:plural stretch/stretches}"),
    "part-cut-short": Reason("; {parts:and} was cut short and cannot be judged"),
    "parts-cut-short": Reason("; {parts:and} were cut short and cannot be judged"),
}
