"""A record, its measures and its verdicts as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .detect.verdict import Verdict
from .record.quantity import Quantity
from .record.schema import Record


def report_of(record: Record, lab: str, measures: Mapping[str, Quantity], verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """What `--json` writes.

    Args:
        lab: the slug of the lab that judged; "" where every question was asked of a script.
    """
    provenance = {k: v for k, v in msgspec.to_builtins(record.provenance).items() if v not in ("", None)}
    return {
        "lab": lab,
        "variant": record.variant,
        "config": dict(record.config),
        "provenance": provenance,
        "measures": {name: _plain(quantity) for name, quantity in measures.items()},
        "verdicts": [
            {
                "detector": verdict.detector,
                "status": verdict.status,
                "reason": verdict.reason,
                "evidence": {name: _plain(quantity) for name, quantity in verdict.evidence.items()},
                "cause": verdict.cause,
                "fix": verdict.fix,
                "where": verdict.where,
                "waste": verdict.waste,
            }
            for verdict in verdicts
        ],
        "record": str(record.folder),
    }


def _plain(quantity: Quantity) -> dict[str, Any]:
    plain = {"value": quantity.value, "unit": quantity.unit}
    return plain | ({"source": quantity.source} if quantity.source else {})
