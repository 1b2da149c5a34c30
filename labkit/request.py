"""How a reader wants the launches to run, checked before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import UsageError
from .labs.spec import LabSpec, RunPlan
from .ranks.backend import Placement, choose, usable_cores, visible_gpus
from .ranks.faults import Fault
from .ranks.join import Place
from .ranks.launch import MAX_RANKS, Control, check_deadline
from .ranks.links import Links, links
from .ranks.progress import Progress
from .words import plural

OnProgress = Callable[[str, Progress], None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a reader wants the launches to run.

    Attributes:
        ranks: of the run under study.
        seed, device, backend, deadline_s, faults: as for `Lab.run`.
        links: hosts on this machine, and the links between them; None for the machine itself.
        control: to stop from another thread.
        on_progress: called with the role of a launch and its progress.
    """

    ranks: int
    seed: int
    device: str | None
    backend: str | None
    deadline_s: float
    faults: tuple[Fault, ...] = ()
    links: Links | None = None
    control: Control | None = None
    on_progress: OnProgress | None = None

    def placement(self, place: Place | None) -> Placement:
        """Backend and device of the ranks on this machine; refuses what cannot be."""
        local = place.local_world_size if place else self.ranks
        return choose(local, visible_gpus(), self.device, self.backend)


def request_of(
    spec: LabSpec,
    place: Place | None,
    *,
    ranks: int | None,
    seed: int,
    device: str | None,
    backend: str | None,
    deadline_s: float,
    faults: tuple[Fault, ...],
    asked_links: tuple[int | None, str | float | None, float | None, bool],
    control: Control | None,
    on_progress: OnProgress | None,
) -> Request:
    """What a caller of `Lab.run` asked for, all of it checked.

    Args:
        place: among the ranks of torchrun, or None.
        asked_links: hosts, link, latency_ms and emulate_link, as given.

    Raises:
        UsageError: a value that is wrong, or does not go with the lab or with torchrun.
    """
    if faults and not spec.variants:
        raise UsageError(f"{spec.slug} is a survey, in which nothing is broken on purpose; leave faults out")
    check_deadline(deadline_s)
    count = _ranks(ranks, place, spec.ranks)
    request = Request(
        ranks=count,
        seed=checked_seed(seed),
        device=device,
        backend=backend,
        deadline_s=deadline_s,
        faults=faults,
        links=_links(spec, place, count, *asked_links),
        control=control,
        on_progress=on_progress,
    )
    if spec.baseline is not None and place is None:
        check_survey(count)
    return request


def check_plans(spec: LabSpec, config: Any, plans: list[RunPlan], request: Request, place: Place | None) -> None:
    """Refuse what a lab cannot do with these links, or among the ranks of torchrun.

    Raises:
        UsageError: why, and what to do.
    """
    if spec.baseline is not None and request.links is not None and config.keep == "yes":
        raise UsageError(
            f"{spec.slug} keeps what it finds as this machine's baseline, and a link that was set is not the "
            "machine's own; give keep=no (--set keep=no) to see what such a link gives, or leave hosts, link and "
            "latency out"
        )
    if place is not None and any(plan.faults or plan.max_restarts for plan in plans):
        raise UsageError(
            f"{spec.slug} kills its ranks and starts them again, which under torchrun is torchrun's to do; "
            "start it without torchrun"
        )


MOST_RANKS_A_CORE = 8
"""Of a survey: with more of them a link shows how the system takes turns, and each collective takes seconds for it."""


def check_survey(ranks: int) -> None:
    """Refuse to measure the link of more ranks than this machine could say anything about.

    Raises:
        UsageError: naming the cores, and how many ranks may be asked for.
    """
    units = max(usable_cores(), visible_gpus())
    if ranks > MOST_RANKS_A_CORE * units:
        raise UsageError(
            f"{ranks} ranks on {plural(units, 'core')} would measure how they take turns, for minutes; give at most "
            f"{MOST_RANKS_A_CORE * units} (--ranks {units} has one for each)"
        )


def checked_seed(seed: Any) -> int:
    """A seed that was given.

    Raises:
        UsageError: it is none.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise UsageError(f"seed must be a whole number from 0 to {2**31 - 1}; given {seed!r}")
    return seed


def _ranks(ranks: Any, place: Place | None, default: int) -> int:
    if place is not None and ranks not in (None, place.world_size):
        raise UsageError(
            f"ranks is {ranks}, but torchrun started {place.world_size} (WORLD_SIZE); leave ranks out, or start as many"
        )
    count = place.world_size if place else default if ranks is None else ranks
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_RANKS:
        raise UsageError(f"ranks must be a whole number from 1 to {MAX_RANKS}; given {count!r}")
    return count


def _links(
    spec: LabSpec,
    place: Place | None,
    ranks: int,
    hosts: int | None,
    link: str | float | None,
    latency_ms: float | None,
    emulate: bool,
) -> Links | None:
    """The hosts and links of a run: the caller's, else the lab's where the ranks are enough for them."""
    if place is not None:
        if hosts is not None or link is not None or latency_ms is not None or emulate:
            raise UsageError(
                "hosts and links of one machine were asked for, but torchrun started the ranks where they are; leave hosts, "
                "link and latency out, or run without torchrun"
            )
        return None
    if hosts is None and link is None and latency_ms is None and not emulate and ranks < spec.hosts:
        return None  # a lab of two hosts, run on one rank
    hosts = spec.hosts if hosts is None else hosts
    if link is None and hosts > 1:
        link = spec.link
    return links(ranks, hosts, link, latency_ms, emulate)
