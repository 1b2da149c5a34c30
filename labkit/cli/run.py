"""`labkit run`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import All, Device, FailOn, Json, Ranks, check_json, check_statuses, named_path, option, pairs, together
from .output import console, described, fail_on_hit, show_reading, write_json


def run(
    slug: Annotated[str, typer.Argument(metavar="LAB", help="The lab, as `labkit list` names it, or its number.")],
    variant: Annotated[str | None, option("The program to run; `broken` if left out.", "TEXT")] = None,
    ranks: Ranks = None,
    steps: Annotated[int | None, option("Cap on the steps of the run, whatever the epochs.", "INTEGER")] = None,
    epochs: Annotated[int | None, option("Passes over the data.", "INTEGER")] = None,
    seed: Annotated[int, option("Of everything random.", "INTEGER")] = 0,
    settings: Annotated[list[str] | None, option("Any setting of the lab.", "KEY=VALUE", "--set")] = None,
    device: Device = None,
    backend: Annotated[str | None, option("gloo or nccl; chosen from the machine if left out.", "TEXT")] = None,
    hosts: Annotated[int | None, option("Network stacks on this machine to spread the ranks over.", "INTEGER")] = None,
    link: Annotated[str | None, option("Of each host's link, as in 400mbit or 2.5gbit.", "RATE")] = None,
    latency: Annotated[float | None, option("Milliseconds, added to each packet that leaves a host.", "FLOAT")] = None,
    emulate_link: Annotated[
        bool, typer.Option("--emulate-link", help="Delay collectives instead of making network stacks: simulated.")
    ] = False,
    record: Annotated[str | None, option("Keep the record in this new folder.", "DIR")] = None,
    json: Json = None,
    fail_on: FailOn = None,
    deadline: Annotated[float, option("Seconds; then the ranks are ended, with their stacks.", "FLOAT")] = 300.0,
    everything: All = False,
    help_lab: Annotated[
        bool, typer.Option("--help-lab", help="Show the lab's variants and settings, and run nothing.")
    ] = False,
) -> None:
    """Run a lab on real processes and judge what they did.

    Under torchrun it joins the ranks that are there:
    torchrun --nproc-per-node 4 -m labkit run duplicate-data
    """
    from .. import labs

    spec = labs.spec(slug)
    folder = None if record is None else named_path(record)
    if help_lab:
        from ..view.terminal import print_lab

        print_lab(console(), spec, described(spec))
        return
    check_statuses(fail_on)
    values: dict[str, Any] = pairs(settings or [])
    together(values, {name: str(value) for name, value in (("steps", steps), ("epochs", epochs)) if value is not None})
    spec.configure(spec.chosen(variant), values)  # wrong use is said before torch is loaded
    check_json(json)

    from .. import __version__
    from ..facade import lab
    from ..view.kept_runs import keep_verdict
    from ..view.terminal import progress_bar

    opened = lab(slug)
    with progress_bar(console(stderr=True)) as on_progress:
        reading = opened.run(
            variant,
            ranks=ranks,
            seed=seed,
            device=device,
            backend=backend,
            record_dir=folder,
            deadline_s=deadline,
            hosts=hosts,
            link=link,
            latency_ms=latency,
            emulate_link=emulate_link,
            on_progress=on_progress,
            **values,
        )
    if reading is None:
        return  # another rank under torchrun: rank 0 reports
    keep_verdict(reading, reading.verdicts, __version__)
    write_json(reading.report(), json)
    if json != "-":
        show_reading(reading, everything=everything)
    fail_on_hit(reading, fail_on)
