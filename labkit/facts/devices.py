"""The table of devices: what vendors print about them. Every figure is `quoted`, none measured."""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..errors import UnknownName, UsageError
from .shipped import data_folder

DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_SPELLED_OTHERWISE = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


class UnsupportedDtype(UsageError):
    """The device has no printed peak for this type: it lacks the units, or the vendor prints no figure."""


@dataclass(frozen=True)
class Device:
    """One line of data/devices.toml, in base units.

    Attributes:
        id: the short name, as in "h100-sxm".
        name: for people.
        aliases: what `torch.cuda.get_device_name` says, and spellings found in published tables.
        vendor: NVIDIA, AMD, Intel or Google.
        year: of the announcement.
        peak_flops: dense peak by dtype, FLOP/s (int8: operations/s). fp32 is the vector rate without tensor cores.
        sparse_peak_flops: the same with 2:4 sparsity: never the denominator of a dense model.
        memory_bytes: capacity, as printed.
        memory_bandwidth_bytes_s: peak, bytes/s.
        link_name: the link between devices of this kind, "" where none is printed.
        link_bytes_s: peak of that link in one direction, bytes/s; half of what vendors print. None where unknown.
        tdp_w: watts of the board or module; None where not printed.
        source, address: the document and where it is.
        notes: where documents disagree, what was left out, what one "device" means here.
    """

    id: str
    name: str
    aliases: tuple[str, ...]
    vendor: str
    year: int
    peak_flops: Mapping[str, float] = field(hash=False)
    sparse_peak_flops: Mapping[str, float] = field(hash=False)
    memory_bytes: float
    memory_bandwidth_bytes_s: float
    link_name: str
    link_bytes_s: float | None
    tdp_w: float | None
    source: str
    address: str
    notes: str = ""


@dataclass(frozen=True)
class Peak:
    """A peak rate with what it is, so that no figure travels without its label.

    Attributes:
        flops: FLOP/s of one device (int8: operations/s).
        dtype: of the inputs of the product.
        sparse: with 2:4 structured sparsity.
        device: id in the table.
    """

    flops: float
    dtype: str
    sparse: bool
    device: str

    @property
    def label(self) -> str:
        """The words to print beside the number."""
        kind = "with 2:4 sparsity: not reached by a dense model" if self.sparse else "dense"
        return f"{self.device} {self.dtype}, {kind} (datasheet)"


def _build(entry: Mapping[str, Any]) -> Device:
    def scaled(name: str) -> Mapping[str, float]:
        # rounded, since 66.9 * 1e12 is not 66.9e12
        return MappingProxyType({dtype: float(round(tera * 1e12)) for dtype, tera in entry.get(name, {}).items()})

    link = entry.get("link")
    return Device(
        id=entry["id"],
        name=entry["name"],
        aliases=tuple(entry["aliases"]),
        vendor=entry["vendor"],
        year=entry["year"],
        peak_flops=scaled("dense_tflops"),
        sparse_peak_flops=scaled("sparse_tflops"),
        memory_bytes=entry["memory_gb"] * 1e9,
        memory_bandwidth_bytes_s=entry["memory_bandwidth_gb_s"] * 1e9,
        link_name=link["name"] if link else "",
        link_bytes_s=link["total_gb_s"] * 1e9 / 2 if link else None,
        tdp_w=entry.get("tdp_w"),
        source=entry["source"],
        address=entry["address"],
        notes=entry.get("notes", ""),
    )


@functools.cache
def devices() -> tuple[Device, ...]:
    """Every device of the shipped table, in the table's order. Read once."""
    with (data_folder() / "devices.toml").open("rb") as file:
        return tuple(_build(entry) for entry in tomllib.load(file)["device"])


def plain(name: str) -> str:
    """A name reduced to what is compared: lower case, without "NVIDIA", spaces, dashes and underscores.

    >>> plain("NVIDIA H100 80GB HBM3")
    'h10080gbhbm3'
    """
    return re.sub(r"[\s_\-]+", "", re.sub(r"\bnvidia\b", "", name.lower()))


@functools.cache
def _by_name() -> Mapping[str, Device]:
    found: dict[str, Device] = {}
    for one in devices():
        for name in (one.id, one.name, *one.aliases):
            other = found.setdefault(plain(name), one)
            assert other is one, f"{name!r} names both {other.id} and {one.id}"
    return found


class UnknownDevice(UnknownName):
    """No such device in the table. `nearest` holds the ids that resemble what was given."""

    def __init__(self, given: str) -> None:
        near = difflib.get_close_matches(plain(given), list(_by_name()), n=8, cutoff=0.6)
        starts = [name for name in _by_name() if name.startswith(plain(given))] if plain(given) else []
        self.nearest = tuple(dict.fromkeys(_by_name()[name].id for name in [*starts, *near]))[:4]
        super().__init__("device", given, [one.id for one in devices()])
        hint = f" Nearest: {', '.join(self.nearest)}." if self.nearest else ""
        self.args = (f"no device {given!r} in data/devices.toml.{hint} There are: {', '.join(self.known)}.",)


def device(name: str) -> Device:
    """Find a device by its id, its name or an alias. There is no fallback: a guessed peak would be a silent error.

    Args:
        name: as in "h100-sxm", "NVIDIA H100 80GB HBM3" (`torch.cuda.get_device_name()`) or "H100-80GB". Case, "NVIDIA",
            spaces, dashes and underscores do not matter. "H100" alone is refused: its variants differ by a fifth.

    Raises:
        UnknownName: with the list and the nearest name. Take a listed device, or give a measured peak instead.

    >>> device("NVIDIA H100 80GB HBM3").id
    'h100-sxm'
    >>> device("h100-smx")
    Traceback (most recent call last):
    labkit.facts.devices.UnknownDevice: no device 'h100-smx' in data/devices.toml. Nearest: h100-sxm...
    """
    try:
        return _by_name()[plain(name)]
    except KeyError:
        raise UnknownDevice(name) from None


def peak(of: Device | str, dtype: str, *, sparse: bool = False) -> Peak:
    """Give the printed peak of a device for a type, with its label.

    Args:
        of: a device or its name.
        dtype: one of DTYPES, or torch's spelling ("torch.bfloat16", "float16").
        sparse: the figure with 2:4 sparsity, which product pages print large. Off, since dense models never reach it.

    Raises:
        UnknownName: dtype is not one of DTYPES, or the device is not in the table.
        UnsupportedDtype: the device has no printed figure for it; the message lists those it has.

    >>> peak("h100-sxm", "bf16").label
    'h100-sxm bf16, dense (datasheet)'
    >>> peak("h100-sxm", "torch.bfloat16").flops / 1e12
    989.4
    """
    one = device(of) if isinstance(of, str) else of
    short = dtype.removeprefix("torch.").lower()
    short = _SPELLED_OTHERWISE.get(short, short)
    if short not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES)
    table = one.sparse_peak_flops if sparse else one.peak_flops
    if short not in table:
        kind = "sparse" if sparse else "dense"
        has = ", ".join(table) or "none at all"
        raise UnsupportedDtype(
            f"{one.name} has no {kind} peak for {short} in data/devices.toml; it has: {has}. {one.notes}".rstrip()
        )
    return Peak(flops=table[short], dtype=short, sparse=sparse, device=one.id)


def peak_flops(of: Device | str, dtype: str, *, sparse: bool = False) -> float:
    """Give the printed peak in FLOP/s: `peak(...)` without its label. Args and errors as there."""
    return peak(of, dtype, sparse=sparse).flops
