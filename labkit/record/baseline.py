"""The baseline: what this machine was measured to do, kept for later labs to compare with. One file a kind of device."""

from __future__ import annotations

import contextlib
import math
import os
import uuid
from datetime import datetime
from pathlib import Path

import msgspec

from ..arguments import checked
from ..errors import RecordError, UnknownName
from ..showing import as_html
from ..words import plural
from .bounds import Int, Name, Named
from .files import read_regular
from .load import Load
from .quantity import Quantity
from .safe_json import decoded

BASELINE_SCHEMA = 1
DEVICE_KINDS = ("cpu", "cuda")
MAX_BASELINE_BYTES = 2**20
DOUBTFUL_DAYS = 1
"""One that was taken while the machine did other work as well is measured again this soon."""

WAVERING = 0.3
"""Share of the median repeat's time that the best one of a product or a copy does without on a machine that holds still."""

STALE_DAYS = 30
"""A baseline older than this is measured again: drivers, other tenants and throttling change what a machine does."""


GIGA, MICRO = 1e9, 1e-6


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """Measured ceilings of one machine.

    Attributes:
        schema: of this file.
        device, system, torch, cores: on what it was measured; another machine's baseline is not used.
        device_kind: "cpu" or "cuda".
        backend: of the all-reduce.
        threads: of the products and copies.
        world_size: ranks of the all-reduce and of the launch.
        date: ISO, with zone.
        matmul_flops_per_s: by dtype (fp32, tf32, bf16, fp16): the best repeat.
        copy_bytes_per_s: bytes read and written by a copy far larger than the caches, a second: the best repeat.
        link_alpha_s, link_bytes_per_s: latency of a ring step and bandwidth; None where one rank has no link, and the
            bandwidth also where no message was large enough to show it.
        link_residual_max: largest relative distance between fit and measurement.
        storage_sequential_bytes_per_s: the best repeat.
        storage_random_read_s: seconds of one 4 KiB read at a random place, one at a time: the median.
        storage_cache: how the page cache was kept out, in words.
        launch_s: from the launch of `world_size` ranks that do nothing to their end, the server warm: the median.
        spread: by measure: share of the median repeat's time that the best did without.
        how: by measure: size, repeats and the like, in words.
        load: what other programs took of the cores meanwhile; None where nobody looked.
        set_aside: why it was not kept, in words; empty where it was.
    """

    schema: Int
    device: Name
    device_kind: Name
    system: Name
    torch: Name
    cores: Int
    threads: Int
    backend: Name
    world_size: Int
    date: Name
    matmul_flops_per_s: Named[float]
    copy_bytes_per_s: float
    link_alpha_s: float | None = None
    link_bytes_per_s: float | None = None
    link_residual_max: float | None = None
    storage_sequential_bytes_per_s: float | None = None
    storage_random_read_s: float | None = None
    storage_cache: Name = ""
    launch_s: float | None = None
    spread: Named[float] = {}
    how: Named[Name] = {}
    load: Load | None = None
    set_aside: Name = ""

    @property
    def doubts(self) -> list[str]:
        """Why its rates may be lower than what the machine can do, a phrase each; empty for one to rely on."""
        found = [f"{self.load.said} while it was measured"] if self.load is not None and self.load.matters else []
        wide = {n: s for n, s in self.spread.items() if n.startswith(("matmul", "copy")) and s > WAVERING}
        if wide:
            worst = max(wide, key=lambda name: wide[name])
            found.append(f"repeats of {worst.replace('_', ' ')} differ by {wide[worst]:.0%}")
        return found

    @property
    def caution(self) -> str:
        """The doubts as one sentence with what to do; empty where there are none."""
        if not self.doubts:
            return ""
        said = f"was {self.set_aside}" if self.set_aside else f"may be too low: {', and '.join(self.doubts)}"
        return f"This baseline {said}. End what else runs on this machine, then: labkit bench --refresh"

    def __repr__(self) -> str:
        lines = [f"  {name:<20}{quantity!s:<24}{self.how.get(name, '')}" for name, quantity in quantities(self).items()]
        return "\n".join(["Baseline", *lines, f"  {self.label()}"])

    _repr_html_ = as_html

    def label(self) -> str:
        """One line of provenance, as figures print it."""
        ranks = plural(self.world_size, "rank")
        doubts = "".join(f" · {doubt}" for doubt in self.doubts)
        return f"measured {self.date[:10]} · {self.device} · {ranks} · {self.backend} · torch {self.torch}{doubts}"

    def age_days(self, now: datetime | None = None) -> float:
        """Days since it was measured."""
        return ((now or datetime.now().astimezone()) - datetime.fromisoformat(self.date)).total_seconds() / 86400

    def damage(self) -> str:
        """What shows that it was not written as it is, or not by this labkit; empty where nothing does."""
        if self.schema != BASELINE_SCHEMA:
            return f"schema {self.schema}, this labkit reads {BASELINE_SCHEMA}"
        bad = [name for name, value in _values(self).items() if not (math.isfinite(value) and value > 0)]
        if bad or (self.link_alpha_s or 0) < 0:
            return f"{(bad or ['link_alpha_s'])[0]} is out of range; the file is damaged"
        try:
            date = datetime.fromisoformat(self.date)
            date.utctimetuple()
        except (ValueError, OverflowError) as error:
            return f"{error}; the file is damaged or not a baseline"
        return "" if date.tzinfo else "its date has no zone; the file is damaged"

    def misfits(self, *, device: str, system: str, torch: str, cores: int, now: datetime | None = None) -> list[str]:
        """Why it does not speak for a machine: what differs, and whether it is too old. Empty if it does."""
        here = {"device": device, "system": system, "torch": torch, "cores": cores}
        found = [
            f"it is of another {name} ({getattr(self, name)}; here: {value})"
            for name, value in here.items()
            if getattr(self, name) != value
        ]
        age = self.age_days(now)
        most = DOUBTFUL_DAYS if self.doubts else STALE_DAYS
        if age > most:
            why = f", since {self.doubts[0]}" if self.doubts else ""
            found.append(f"it is {age:.0f} days old (at most {most}{why})")
        if age < -1:
            found.append(f"its date, {self.date[:10]}, is in the future")
        return found


def baseline_file(device_kind: str = "cpu") -> Path:
    """Where the baseline of a kind of device is kept: beside the runs, in the user's cache (LABKIT_CACHE moves it)."""
    from .store import runs_folder

    return runs_folder().parent / f"baseline-{device_kind}.json"


@checked()
def read_baseline(device_kind: str = "cpu") -> Baseline:
    """Read the kept baseline. Whether it fits the machine and is fresh, `misfits` says.

    Raises:
        NoBaseline: none is kept yet.
        RecordError: the file is damaged, or of another labkit.
    """
    if device_kind not in DEVICE_KINDS:
        raise UnknownName("kind of device", device_kind, DEVICE_KINDS)
    path = baseline_file(device_kind)
    remedy = "measure again with: labkit bench --refresh"
    if not path.exists():
        raise NoBaseline(f"no baseline of this machine's {device_kind} yet; measure it with: labkit bench")
    try:
        found = decoded(read_regular(path, MAX_BASELINE_BYTES, remedy=remedy), msgspec.json.Decoder(Baseline))
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: {error}; the file is damaged or not a baseline; {remedy}") from error
    wrong = found.damage()
    if wrong:
        raise RecordError(f"{path}: {wrong}; {remedy}")
    return found


def reason_to_set_aside(baseline: Baseline) -> str:
    """Why a baseline is not to be kept in place of the one before it; empty where it is.

    One with doubts does not take the place of one without that still speaks for the machine.
    """
    if not baseline.doubts:
        return ""
    try:
        earlier = read_baseline(baseline.device_kind)
    except RecordError:
        return ""
    here = {"device": baseline.device, "system": baseline.system, "torch": baseline.torch, "cores": baseline.cores}
    if earlier.doubts or earlier.misfits(**here) or earlier.world_size != baseline.world_size:
        return ""
    return f"not kept: {', and '.join(baseline.doubts)}; the one of {earlier.date[:10]}, without such doubts, stays"


def write_baseline(baseline: Baseline) -> Path:
    """Keep a baseline in place of the one before it, at once: a reader meets the old file or the new one, whole.

    Raises:
        RecordError: the cache cannot be written.
    """
    path = baseline_file(baseline.device_kind)
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(msgspec.json.format(msgspec.json.encode(baseline), indent=1))
        os.replace(aside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise RecordError(f"cannot keep the baseline in {path}: {error.strerror}; set LABKIT_CACHE elsewhere") from error
    return path


class NoBaseline(RecordError):
    """This machine has not been measured yet."""


def _values(baseline: Baseline) -> dict[str, float]:
    """All of a baseline's numbers that must be above 0, by name."""
    named = {f"matmul_flops_per_s[{name}]": value for name, value in baseline.matmul_flops_per_s.items()}
    for name in (
        *("copy_bytes_per_s", "link_bytes_per_s", "storage_sequential_bytes_per_s", "storage_random_read_s"),
        *("launch_s", "cores", "threads", "world_size"),
    ):
        if getattr(baseline, name) is not None:
            named[name] = getattr(baseline, name)
    return named


def quantities(baseline: Baseline) -> dict[str, Quantity]:
    """A baseline's numbers by name, in units that suit them."""
    found = {
        f"matmul_{dtype}": Quantity(flops_per_s / GIGA, "GFLOP/s")
        for dtype, flops_per_s in baseline.matmul_flops_per_s.items()
    }
    found["copy"] = Quantity(baseline.copy_bytes_per_s / GIGA, "GB/s")
    for name, value, factor, unit in (
        ("link_latency", baseline.link_alpha_s, MICRO, "µs a step"),
        ("link_bandwidth", baseline.link_bytes_per_s, GIGA, "GB/s"),
        ("storage_sequential", baseline.storage_sequential_bytes_per_s, GIGA, "GB/s"),
        ("storage_random", baseline.storage_random_read_s, MICRO, "µs a read"),
        ("launch", baseline.launch_s, 1.0, "s"),
    ):
        if value is not None:
            found[name] = Quantity(value / factor, unit)
    return found
