"""Ask a record what its lab measures and finds."""

import labkit


def value(record, name):
    return labkit.lab(record.lab).measures(record)[name].value


def values(record) -> dict:
    return {name: quantity.value for name, quantity in labkit.lab(record.lab).measures(record).items()}


def status(record, detector) -> str:
    return labkit.lab(record.lab).judge(record)[detector].status


def statuses(record) -> dict[str, str]:
    return {verdict.detector: verdict.status for verdict in labkit.lab(record.lab).judge(record)}
