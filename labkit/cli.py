"""The command line: thin. Exit codes: 0 ran, whatever the verdict; 1 --fail-on; 2 wrong use; 3 the program failed."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from . import __version__
from .cli_parts import (
    check_writable,
    console,
    described,
    draw,
    measured,
    named_path,
    number,
    one_or_more,
    pairs,
    printed_out,
    rank_output,
    replace_what_cannot_be_printed,
    seconds,
    together,
    whole,
    write_json,
    write_trace,
)
from .errors import LabkitError, RecordError, UnknownName, UsageError
from .interrupts import ended_in_order

EXIT_FAILED_CHECK, EXIT_WRONG_USE, EXIT_PROGRAM_FAILED, EXIT_INTERRUPTED = 1, 2, 3, 130
STATUSES = ("found", "clear", "inconclusive", "not_applicable")

# typer carries click inside or beside it, by its version; this is the class that either raises for wrong use
_WRONG_USE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Make the silent failures of distributed training happen, see them, fix them, prove the fix.",
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command("list")
def list_labs() -> None:
    """List the labs."""
    from .labs import specs
    from .view.terminal import print_labs

    print_labs(console(), specs())


@app.command()
def run(
    slug: Annotated[str, typer.Argument(help="The lab, as `labkit list` names it.")],
    variant: Annotated[str | None, typer.Option(help="The program to run; `broken` if left out.")] = None,
    ranks: Annotated[str | None, typer.Option(help="Processes; the lab's default if left out.")] = None,
    steps: Annotated[str | None, typer.Option(help="Cap on the steps of the run, whatever the epochs.")] = None,
    epochs: Annotated[str | None, typer.Option(help="Passes over the data.")] = None,
    seed: Annotated[str, typer.Option(help="Of everything random.")] = "0",
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of the lab.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; chosen from the machine if left out.")] = None,
    backend: Annotated[str | None, typer.Option(help="gloo or nccl; chosen from the machine if left out.")] = None,
    hosts: Annotated[str | None, typer.Option(help="Network stacks on this machine to spread the ranks over.")] = None,
    link: Annotated[str | None, typer.Option(metavar="RATE", help="Of each host's link, as in 400mbit or 2.5gbit.")] = None,
    latency: Annotated[str | None, typer.Option(metavar="MS", help="Added to each packet that leaves a host.")] = None,
    emulate_link: Annotated[
        bool, typer.Option("--emulate-link", help="Delay collectives instead of making network stacks: simulated.")
    ] = False,
    record: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the record in this new folder.")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Write the result as JSON; - is standard output.")] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option("--fail-on", metavar="STATUS", help="Exit with 1 if a verdict has this status.")
    ] = None,
    deadline: Annotated[str, typer.Option(metavar="SECONDS", help="Then the ranks are ended, with their stacks.")] = "300",
    help_lab: Annotated[
        bool, typer.Option("--help-lab", help="Show the lab's variants and settings, and run nothing.")
    ] = False,
) -> None:
    """Run a lab on real processes and judge what they did.

    Under torchrun it joins the ranks that are there:
    torchrun --nproc-per-node 4 -m labkit run duplicate-data
    """
    from . import labs

    spec = labs.spec(slug)
    folder = None if record is None else named_path(record)
    if help_lab:
        from .view.terminal import print_lab

        print_lab(console(), spec, described(spec))
        return
    for status in fail_on or ():
        if status not in STATUSES:
            raise UnknownName("status", status, STATUSES)
    values = pairs(settings or [])
    together(values, {name: value for name, value in (("steps", steps), ("epochs", epochs)) if value is not None})
    spec.configure(spec.chosen(variant), values)  # wrong use is said before torch is loaded
    numbers: dict[str, Any] = {
        "ranks": None if ranks is None else whole("--ranks", ranks),
        "seed": whole("--seed", seed),
        "deadline_s": seconds("--deadline", deadline),
        "hosts": None if hosts is None else whole("--hosts", hosts),
        "link": link,
        "latency_ms": None if latency is None else number("--latency", latency),
        "emulate_link": emulate_link,
    }
    if json not in (None, "-"):
        check_writable(named_path(json))

    from .facade import lab
    from .view.terminal import print_record, progress_bar

    opened = lab(slug)
    with progress_bar(console(stderr=True)) as on_progress:
        result = opened.run(
            variant, device=device, backend=backend, record_dir=folder, on_progress=on_progress, **numbers, **values
        )
    if result is None:
        return  # another rank under torchrun: rank 0 reports
    report = opened.report(result)
    write_json(report, json)
    verdicts = opened.judge(result)
    if json != "-":
        print_record(console(), result, opened.measures(result), verdicts, opened.tables(result))
    hit = [verdict for verdict in verdicts if verdict.status in (fail_on or ())]
    if hit:
        print(f"--fail-on: {', '.join(f'{v.detector} is {v.status}' for v in hit)}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED_CHECK)


@app.command()
def bench(
    refresh: Annotated[bool, typer.Option("--refresh", help="Measure again, whatever is kept.")] = False,
    ranks: Annotated[str | None, typer.Option(help="Processes of the link and of the launch; 2 if left out.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; chosen from the machine if left out.")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Write the result as JSON; - is standard output.")] = None,
) -> None:
    """Say what this machine can do: arithmetic, memory, link, storage, launch. Kept as the baseline of all labs."""
    count = None if ranks is None else whole("--ranks", ranks)
    if json not in (None, "-"):
        check_writable(named_path(json))

    from .bench import bench as measure
    from .bench import labs_here
    from .view.survey import print_bench
    from .view.terminal import progress_bar

    with progress_bar(console(stderr=True)) as on_progress:
        found = measure(refresh=refresh, ranks=count, device=device, on_progress=on_progress)
    if found is None:
        return  # another rank under torchrun: rank 0 reports
    if found.measured_now:
        print(f"measured: {found.reason}", file=sys.stderr)
    write_json(found.report(), json)
    if json != "-":
        print_bench(console(), found, labs_here())


@app.command()
def show(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="A record's folder, that of a script's probe files, a name of `labkit runs`, or `last`."
        ),
    ] = "last",
    lab: Annotated[
        str | None, typer.Option(metavar="SLUG", help="Judge by this lab; a script's files by every question if left out.")
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Write the result as JSON; - is standard output.")] = None,
    figures: Annotated[str | None, typer.Option(metavar="DIR", help="Draw the figures into this folder, as PNG.")] = None,
    output: Annotated[str | None, typer.Option(metavar="RANK", help="Print what this rank printed.")] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a Chrome trace, which ui.perfetto.dev opens.")
    ] = None,
) -> None:
    """Show a record again: measures, verdicts, figures, a rank's output, a trace."""
    from .facade import Lab
    from .labs import spec
    from .record.blame import blamed_on
    from .record.store import named, read_record
    from .report import report_of
    from .script import Script
    from .view.terminal import print_record

    chosen = None if lab is None else spec(lab)  # wrong use is said before anything is read
    traced, pictures = (None if word is None else named_path(word) for word in (trace, figures))
    if traced is not None:
        check_writable(traced, "--trace")
    found = read_record(named(str(named_path(record))))
    if output is not None:
        print(rank_output(found, whole("--output", output)), end="")
        return
    with blamed_on(found):
        if traced is not None:
            write_trace(found, traced)
        if chosen is None and not found.lab:
            script = Script(found)
            drawn, verdicts, measures, tables = script.figures(), script.verdicts, script.measures(), script.tables()
            slug, left_out = "", list(script.left_out.values())
        else:
            opened = Lab(chosen or spec(found.lab))
            drawn, verdicts = dict.fromkeys(opened.spec.figures, opened), opened.judge(found)
            measures, tables, left_out = measured(opened, found)
            slug = found.lab or opened.spec.slug
        for why in left_out:
            print(f"not measured: {why}", file=sys.stderr)
        if json is not None:
            write_json(report_of(found, slug, measures, verdicts), json)
        if pictures is not None:
            draw(drawn, found, pictures)
        if json != "-":
            print_record(console(), found, measures, verdicts, tables)


@app.command()
def runs(
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Write the list as JSON; - is standard output.")] = None,
) -> None:
    """List the kept runs, newest first; `labkit show` takes their names."""
    from .record.store import kept_runs, runs_folder
    from .view.terminal import print_runs

    found = kept_runs()
    rows = [
        {
            "name": run.folder.name,
            "lab": run.lab,
            "variant": run.variant,
            "ranks": run.provenance.world_size,
            "date": run.provenance.date,
            "record": str(run.folder),
        }
        for run in found
    ]
    write_json({"runs": rows}, json)
    if json != "-":
        print_runs(console(), rows, runs_folder())


@app.command()
def capture(
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="A new folder for the recordings.")],
    labs: Annotated[str | None, typer.Option(metavar="SLUGS", help="Labs, with commas between; all if left out.")] = None,
    minutes: Annotated[str, typer.Option(help="No further run starts after these.")] = "6",
) -> None:
    """Record labs on the device at hand, to be shown elsewhere as recorded."""
    from .capture import capture as capture_labs

    chosen = None if labs is None else one_or_more("--labs", labs)
    until, where = seconds("--minutes", minutes), named_path(out)
    kept = capture_labs(chosen, where, minutes=until, tell=lambda line: print(line, flush=True))
    print(f"{len(kept)} recordings in {out}; to ship them, put them under data/recordings/")


def main() -> None:
    """Run the command line. Errors are one sentence on standard error."""
    replace_what_cannot_be_printed()
    with ended_in_order() as came:
        code = _outcome()
        if code == EXIT_INTERRUPTED:  # typer may have turned the interrupt into this code itself
            by = came[0] if came else signal.SIGINT
            said = "interrupted" if by == signal.SIGINT else "ended from outside"
            print(f"labkit: {said}; its ranks are ended", file=sys.stderr)
            code = 128 + by
        sys.exit(printed_out(code))


def _outcome() -> int:
    try:
        code = app(standalone_mode=False, prog_name="labkit")
    except _WRONG_USE as error:
        error.show()
        code = EXIT_WRONG_USE
    except typer.Exit as end:
        code = end.exit_code
    except (UsageError, RecordError) as error:
        print(f"labkit: {error}", file=sys.stderr)
        code = EXIT_WRONG_USE
    except LabkitError as error:
        print(f"labkit: {error}", file=sys.stderr)
        if getattr(error, "folder", ""):
            print(f"output and stacks of each rank: {error.folder}", file=sys.stderr)  # type: ignore[attr-defined]
        code = EXIT_PROGRAM_FAILED
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # nobody reads on, as under `labkit list | head -1`
        code = 0
    except SystemExit as end:  # by rich, which takes a pipe that nobody reads for an error
        code = 0 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except OSError as error:  # a disk that is full or forbidden, mostly
        where = f" at {error.filename}" if error.filename else ""
        print(
            f"labkit: {error.strerror or error}{where}; make room or give rights there, or choose another place with "
            "--record, LABKIT_CACHE or TMPDIR",
            file=sys.stderr,
        )
        code = EXIT_PROGRAM_FAILED
    return code or 0
