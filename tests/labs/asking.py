"""Ask a record what its lab measures and finds."""

import pytest

import labkit
from labkit.record.load import heaviest


def value(record, name):
    return labkit.lab(record.lab).measures(record)[name].value


def values(record) -> dict:
    return {name: quantity.value for name, quantity in labkit.lab(record.lab).measures(record).items()}


def status(record, detector) -> str:
    return labkit.lab(record.lab).judge(record)[detector].status


def statuses(record) -> dict[str, str]:
    return {verdict.detector: verdict.status for verdict in labkit.lab(record.lab).judge(record)}


def told_in_time(make, name, wanted="found"):
    """The verdict of a detector of times on a record of `make(seed)`, made anew while other programs hinder it.

    A detector may leave a question open where others took the cores, and there alone; then the test is skipped, and says so.
    """
    for seed in range(3):
        record = make(seed)
        verdict = labkit.lab(record.lab).judge(record)[name]
        if verdict.status == wanted:
            return verdict
        load = heaviest([run.load for run in record.runs.values()])
        assert verdict.status == "inconclusive" and load is not None and load.matters, str(verdict)
    pytest.skip(f"other programs took the cores in three tries: {verdict.cause}")
