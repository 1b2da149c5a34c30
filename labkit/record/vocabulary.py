"""Names that labkit reads in what a program declares and notes, and what it takes them for.

A script may use the same names for things of its own. What does not fit is the script's: it is kept, and no question takes
it for labkit's (`record.own_names`). A name that is not here is always the script's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import shown


@dataclass(frozen=True)
class Kind:
    """What a value is taken for, in words, and whether one is such a value."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value) and abs(value) <= 2**53


WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number from 0 on", lambda value: _is_whole(value) and value >= 0)
FROM_ONE = Kind("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1)
NUMBER = Kind("a number", _is_number)
AMOUNT = Kind("a number from 0 on", lambda value: _is_number(value) and value >= 0)
WORD_OR_NUMBER = Kind("a number, or nan or inf", lambda value: _is_number(value) or value in ("nan", "inf", "-inf"))
TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool) or value in (0, 1))


def _all(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


FACTS: Mapping[str, Kind] = {
    **_all(FROM_ONE, "batch_size global_batch local_steps element_bytes cores replicas ddp_world_size"),
    **_all(
        COUNT,
        "dataset_size workers warm_up matmul_params layers hidden seq num_parameters num_tensors file_bytes cache_bytes "
        "working_set_bytes num_gpus stage counted_step timed_from growth_interval ddp_params ddp_gradient_bytes "
        "ddp_bucket_cap_bytes",
    ),
    **_all(
        AMOUNT,
        "room_bytes mtbf_s clip_norm flops_per_step elementwise_flops_per_step counted_flops_per_token "
        "executed_flops_per_token",
    ),
    **_all(NUMBER, "lr momentum cached_share straggler"),
    **_all(WORD_OR_NUMBER, "sharpness"),
    **_all(FLAG, "in_memory meets launched_here rank_draws watches_updates ddp_find_unused ddp_static_graph ddp_timed"),
    **_all(
        TEXT,
        "precision strategy source attention file_system cache_bypass left_out ddp_buckets_seen clock_id loop_where "
        "loader_where split_where wrap_where wrapped_where gradients_where keeper_where",
    ),
}
"""By name: what `probe.declare` is to give."""


@dataclass(frozen=True)
class Shape:
    """Fields of an event: those that it has, and those that it may have."""

    has: Mapping[str, Kind]
    may_have: Mapping[str, Kind]


def _shape(has: Mapping[str, Kind], **may_have: Kind) -> Shape:
    return Shape(has, may_have)


_ALIVE = _all(COUNT, "parameters gradients optimizer_state unsharded buffers")

EVENTS: Mapping[str, tuple[Shape, ...]] = {
    "epoch_end": (_shape({"epoch": WHOLE}, of=TEXT),),
    "fault": (_shape({"fault": TEXT, "at_step": WHOLE}, at=TEXT),),
    "save": (
        _shape(
            {"of_step": WHOLE},
            **_all(TEXT, "path what digest"),
            **_all(AMOUNT, "stall_s write_s"),
            bytes=COUNT,
            alone=FLAG,
        ),
    ),
    "load": (_shape({"of_step": WHOLE}, path=TEXT, load_s=AMOUNT, had=WHOLE, digest=TEXT),),
    "state": (_shape({"when": TEXT, "of_step": WHOLE}),),
    "timed": (_shape({"loop": TEXT, "repeat": WHOLE, "steps": FROM_ONE, "elapsed_ns": AMOUNT}),),
    "memory": (
        _shape(_all(COUNT, "weights_bytes gradients_bytes optimizer_bytes")),
        _shape({"instant": TEXT}, **_ALIVE),
    ),
    "peak": (_shape({"peak": COUNT}),),
    "own_account": (_shape({}, **_ALIVE),),
    "collectives": (
        _shape({"operation": TEXT, "sent_bytes": AMOUNT, **_all(COUNT, "count elements num_bytes group_size hosts")}),
    ),
    "wire": (_shape({"steps": FROM_ONE, **_all(COUNT, "link_received_bytes link_sent_bytes inside_bytes")}),),
    "optimizer_knows": (_shape(_all(COUNT, "known parameters orphans")),),
    "weights_moved": (_shape({"largest": WORD_OR_NUMBER}),),
    "unused_parameters": (_shape({"count": COUNT, "names": TEXT}),),
    "ddp": (_shape({}, **{name: kind for name, kind in FACTS.items() if name.startswith("ddp_")}, clock_id=TEXT),),
    "evaluated": (_shape({"loss": WORD_OR_NUMBER}),),
    "sharpness": (_shape({"value": WORD_OR_NUMBER}, at_step=WHOLE),),
}
"""By name: the events that labkit notes; where several programs use one name, a shape each."""


def fact_misfit(name: str, value: Any) -> str:
    """How a declared value differs from what labkit takes the name for; empty where it does not, or the name is free."""
    kind = FACTS.get(name)
    if kind is None or kind.fits(value):
        return ""
    return f"{name} is declared as {shown(value)}, and labkit reads it as {kind.words}"


def event_misfit(name: str, fields: Mapping[str, Any]) -> str:
    """How an event's fields differ from all that labkit notes under its name; empty where they do not."""
    shapes = EVENTS.get(name, ())
    wrongs = [_wrong(shape, fields) for shape in shapes]
    return "" if not shapes or "" in wrongs else wrongs[0]


def _wrong(shape: Shape, fields: Mapping[str, Any]) -> str:
    for name, kind in {**shape.has, **shape.may_have}.items():
        if name not in fields:
            if name in shape.has:
                return f"it has no field {name} ({kind.words})"
        elif not kind.fits(fields[name]):
            return f"its field {name} is {shown(fields[name])}, where labkit reads {kind.words}"
    return ""
