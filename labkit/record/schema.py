"""The lines of a rank's file, and the nouns above them: Run, Record, Provenance.

A rank writes JSON lines: one `Head`, a `Step` for each step, `Event`s and `Digest`s where they happen, one `End` if it
finished. Times are nanoseconds of the rank's monotonic clock, which `Head.clock` names: ranks of one machine share it.
`Head.barrier_ns` was stamped by all ranks as they left one barrier, which is what aligns the clocks of several machines
(`clocks`, as a record is read).
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from ..showing import as_html
from ..words import plural
from .baseline import Baseline
from .bounds import Count, Hashes, Int, Name, Named, Nanoseconds, Number, Numbers, Rank, Ranks, Text, Value
from .load import Load
from .roles import Role

SCHEMA_VERSION = 1

Lane = Literal["compute", "comm", "data", "checkpoint", "idle"]
Source = Literal["measured", "recorded", "simulated", "quoted"]
Way = Literal["root", "user", "emulated"]
LANES: tuple[Lane, ...] = get_args(Lane)


class Origin(enum.Enum):
    """Who had a record made, and so what can be advised about it."""

    LAB = "lab"
    """A lab ran it, beside the references that its questions need."""
    SCRIPT = "script"
    """A script's own probes wrote it."""
    DOCTOR = "doctor"
    """A script wrote it through watchers that labkit attached."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """An interval on one lane of one rank."""

    name: Name
    lane: Lane
    start_ns: Nanoseconds
    end_ns: Nanoseconds


class Head(msgspec.Struct, frozen=True, tag="head", tag_field="kind"):
    """Who wrote the file."""

    schema: Int
    rank: Rank
    local_rank: Int
    world_size: Ranks
    host: Name
    pid: Int
    attempt: Count
    device: Name
    backend: Name
    threads: Int
    barrier_ns: Nanoseconds
    facts: Named[Value] = {}
    """What the program declares of itself: dataset_size, batch_size, workers and the like."""
    clock: Name = ""
    """The monotonic clock that its times are of, the same for all ranks of one machine; "" in older records."""


class Step(msgspec.Struct, frozen=True, tag="step", tag_field="kind"):
    """One step as one rank saw it."""

    step: Int
    epoch: Int
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    spans: list[Span] = []
    scalars: Named[Number] = {}
    counts: Named[Int] = {}
    digests: Named[Hashes] = {}
    ids: Named[Numbers] = {}
    series: Named[Numbers] = {}
    """Whole numbers of which a step has several, in order: one a bucket, one a micro-batch."""
    loader: Int = 0
    """Which of the loaders that this epoch read under one name, from 0 on in the order in which they were begun."""

    def scalar(self, name: str) -> float:
        """The value of a scalar; JSON has no NaN, so those are written as words."""
        return float(self.scalars[name])


class Event(msgspec.Struct, frozen=True, tag="event", tag_field="kind"):
    """Something that happened once: a fault fired, a restart, a checkpoint, the end of an epoch."""

    name: Name
    step: Int
    time_ns: Nanoseconds
    fields: Named[Value] = {}


class Seen(msgspec.Struct, frozen=True, tag="seen", tag_field="kind"):
    """Samples seen outside a step (a validation pass)."""

    name: Name
    epoch: Int
    digests: Hashes
    ids: Numbers = []


class Digest(msgspec.Struct, frozen=True, tag="digest", tag_field="kind"):
    """A hash of a whole thing, such as the final weights. Equal hashes mean equal bits."""

    name: Name
    value: Name


class End(msgspec.Struct, frozen=True, tag="end", tag_field="kind"):
    """The rank finished on its own; a file without it is of a rank that was ended."""

    steps: Int
    time_ns: Nanoseconds


Line = Head | Step | Event | Seen | Digest | End


class RankLog(msgspec.Struct, frozen=True, dict=True):
    """All that one rank wrote in one attempt."""

    head: Head
    steps: tuple[Step, ...]
    events: tuple[Event, ...] = ()
    seen: tuple[Seen, ...] = ()
    digests: dict[str, str] = {}
    finished: bool = False


class Run(msgspec.Struct, frozen=True, dict=True):
    """What the ranks of one launch wrote, by rank (the last attempt; `attempts` counts them, `earlier` holds the others)."""

    role: str
    ranks: tuple[RankLog, ...]
    wall_s: float
    """Seconds from the launch to the last rank's exit, as the launcher saw it."""
    attempts: int = 1
    arrays: dict[str, np.ndarray] = {}
    """Whole arrays that rank 0 left, such as the final weights, by name."""
    earlier: tuple[tuple[RankLog, ...], ...] = ()
    """The attempts before the last, each the logs of those ranks that came far enough to leave one."""
    load: Load | None = None
    """What other programs took of the cores meanwhile; None where nobody looked."""

    @property
    def world_size(self) -> int:
        return len(self.ranks)

    @property
    def ranks_said(self) -> str:
        """The number of ranks as words: "1 rank", "4 ranks"."""
        return plural(self.world_size, "rank")

    @property
    def left_open(self) -> str:
        """Which ranks did not close their probes, as a phrase; empty where all did."""
        open_still = [log for log in self.ranks if not log.finished]
        said = [
            f"rank {log.head.rank} did not close its probe"
            + (f" after step {log.steps[-1].step}" if log.steps else ", and finished no step")
            for log in open_still[:8]
        ]
        more = f", and {len(open_still) - 8} more did not" if len(open_still) > 8 else ""
        return ", ".join(said) + more

    @property
    def steps_said(self) -> str:
        """The number of steps as words: "60 steps", and "47 to 74 steps a rank" where ranks made unequally many."""
        fewest, most = (pick(len(log.steps) for log in self.ranks) for pick in (min, max))
        return plural(most, "step") if fewest == most else f"{fewest} to {most} steps a rank"

    def fact(self, name: str, default: object = None) -> object:
        """A fact that rank 0 declared."""
        return self.ranks[0].head.facts.get(name, default)


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that a run was spread over, on one machine, and the link of each to all others.

    `way` says what a host was: a network namespace, made as root or as an ordinary user, or nothing but a delay added
    to each collective ("emulated"). Rates are of one direction of one host's link, headers included.
    """

    hosts: Int
    way: Way
    rate_bits_per_s: float = 0.0
    """What was asked for; 0 for a link that is not limited."""
    achieved_bits_per_s: float = 0.0
    """What a plain TCP stream between two hosts got, measured when they came up; 0 where nothing was to measure."""
    latency_s: float = 0.0
    """Added to each packet, on its way out of a host."""
    reason: Text = ""
    """Why the hosts are emulated."""

    @property
    def source(self) -> Source:
        """Of all that this link makes of a run."""
        return "simulated" if self.way == "emulated" else "measured"

    @property
    def made(self) -> str:
        """How the hosts came to be, as a sentence."""
        if self.way == "emulated":
            return (
                f"The link is emulated, a delay added to each collective ({self.reason}); what follows from it is simulated."
            )
        who = "root" if self.way == "root" else "an ordinary user"
        return f"The {self.hosts} hosts are network namespaces, made as {who}; the rate was measured as they came up."

    def label(self) -> str:
        """One line, as figures print it."""
        limit = f"{said_rate(self.rate_bits_per_s)} links" if self.rate_bits_per_s else "unlimited links"
        late = f" with {self.latency_s * 1e3:g} ms" if self.latency_s else ""
        if self.way == "emulated":
            return f"{plural(self.hosts, 'host')}, {limit}{late} (simulated)"
        return f"{plural(self.hosts, 'host')}, {limit}{late} ({said_rate(self.achieved_bits_per_s)} measured)"


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """The store that a run read from: a server on a host of its own, or on loopback at a pace of its own ("emulated")."""

    rate_bits_per_s: float
    """Of its link, all readers together."""
    way: Way
    achieved_bits_per_s: float = 0.0
    """What a plain TCP stream from it got, headers included, measured when it came up; 0 where nothing was to measure."""
    reason: Text = ""
    """Why it is emulated."""

    @property
    def source(self) -> Source:
        """Of all that the store's rate makes of a run."""
        return "simulated" if self.way == "emulated" else "measured"

    @property
    def made(self) -> str:
        """How the store came to be, as a sentence."""
        if self.way == "emulated":
            return f"The store's server paces itself, on loopback ({self.reason}); what follows from its rate is simulated."
        return "The store is a server in a network namespace of its own; the rate of its link was measured as it came up."

    def label(self) -> str:
        """One line, as figures print it."""
        said = "simulated" if self.way == "emulated" else f"{said_rate(self.achieved_bits_per_s)} measured"
        return f"a store at {said_rate(self.rate_bits_per_s)} ({said})"


def said_rate(bits_per_s: float) -> str:
    """A rate as a person writes it: "400 Mbit/s"."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits_per_s >= size:
            return f"{bits_per_s / size:.3g} {unit}"
    return f"{bits_per_s:.3g} bit/s"


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where the numbers come from. Every number that a person sees carries one."""

    source: Source
    device: Name
    backend: Name
    world_size: Ranks
    date: Name
    torch: Name = ""
    seed: Int | None = None
    labkit: Name = ""
    python: Name = ""
    system: Name = ""
    network: Network | None = None
    storage: Storage | None = None
    load: Load | None = None
    """Of the launch of the record that other programs hindered most."""

    def label(self) -> str:
        """One line, as figures print it."""
        parts = [
            f"{self.source} {self.date[:10]}",
            self.device,
            plural(self.world_size, "rank"),
            "" if self.backend == "none" else self.backend,
            self.network and self.network.label(),
            self.storage and self.storage.label(),
            self.load.said if self.load is not None and self.load.matters else "",
            self.torch and f"torch {self.torch}",
            "" if self.seed is None else f"seed {self.seed}",
        ]
        return " · ".join(part for part in parts if part)


class Record(msgspec.Struct, frozen=True, dict=True):
    """The runs that a verdict needs, by role: the variant is the one under study, the others its references (see `Role`).

    A survey has no variant; its first run stands for it. `baseline` is what the machine was known to do at the time.
    What a script's own probes wrote is of no lab (""), which `origin` says; its variant is the name of its folder.
    """

    lab: str
    variant: str
    config: Named[Value | None]
    provenance: Provenance
    runs: dict[str, Run]
    folder: Path | None = None
    baseline: Baseline | None = None
    origin: Origin = Origin.LAB

    @property
    def title(self) -> str:
        """What ran, as a heading: the lab and its variant, or a script's folder."""
        return f"{self.lab} / {self.variant}" if self.origin is Origin.LAB else f"your script: {self.variant}"

    @property
    def ended_early(self) -> str:
        """Which ranks of a script did not close their probes, as a sentence; empty where all did. A lab's run fails then."""
        return f"ended early: {self.run.left_open}" if self.origin is not Origin.LAB and self.run.left_open else ""

    @property
    def baseline_doubts(self) -> str:
        """Why the machine's baseline, as the record holds it, may be too low, as a sentence; empty for one to rely on."""
        return "" if self.baseline is None else self.baseline.caution

    @property
    def run(self) -> Run:
        """The run under study."""
        return self.runs.get(Role.VARIANT) or next(iter(self.runs.values()))

    @property
    def network(self) -> Network | None:
        """The hosts and links that the run was spread over, or None."""
        return self.provenance.network

    @property
    def storage(self) -> Storage | None:
        """The store that the run read from, or None."""
        return self.provenance.storage

    @property
    def link_source(self) -> Source | None:
        """The source of what the link between hosts had a part in: "simulated" where it is emulated, else the record's."""
        return "simulated" if self.network is not None and self.network.source == "simulated" else None

    @property
    def store_source(self) -> Source | None:
        """The source of what the store's rate, or the link, had a part in: "simulated" where it is emulated, else None."""
        return "simulated" if self.storage is not None and self.storage.source == "simulated" else self.link_source

    def __repr__(self) -> str:
        run = self.run
        roles = ", ".join(sorted(self.runs))
        return (
            f"Record({self.title}: {run.ranks_said}, {run.steps_said}, {run.wall_s:.2f} s; "
            f"runs: {roles})\n"
            f"  {self.provenance.label()}" + (f"\n  {self.ended_early}" if self.ended_early else "")
        )

    _repr_html_ = as_html
