"""`labkit doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from .exit_codes import EXIT_AT_DEADLINE, EXIT_PROGRAM_FAILED
from .options import FailOn, Json, check_json, check_statuses, check_writable, named_path, option
from .output import console, fail_on_hit, write_json


def doctor(
    context: typer.Context,
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="Your training script, as you start it. Its arguments follow.")
    ],
    ranks: Annotated[int | None, option("Processes; 2 where the source has to do with several, else 1.", "INTEGER")] = None,
    steps: Annotated[int | None, option("End each rank after so many steps of the optimizer.", "INTEGER")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module, as for python -m.")] = False,
    record: Annotated[str | None, option("Keep the record in this new folder.", "DIR")] = None,
    json: Json = None,
    sarif: Annotated[str | None, option("Write the findings as SARIF, for code reviews.", "FILE")] = None,
    html: Annotated[str | None, option("Write the report as one page.", "FILE")] = None,
    fail_on: FailOn = None,
    deadline: Annotated[float | None, option("Seconds; then the run is ended.", "FLOAT")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Say of what was not seen why not.")] = False,
) -> None:
    """Say which silent faults your training script has.

    It runs unchanged, on ranks of this machine, watched from outside.

    Options stand before the script; what follows it is the script's own:
    labkit doctor --ranks 2 --steps 50 train.py --epochs 3

    Under torchrun it joins the ranks that are there:
    torchrun --nproc-per-node 4 -m labkit doctor train.py --epochs 3
    """
    from .. import __version__
    from ..doctor.diagnosis import examine, examine_here
    from ..doctor.sarif import sarif as sarif_of
    from ..errors import UsageError
    from ..ranks.join import outer_place
    from ..view.diagnosis import print_diagnosis
    from ..view.diagnosis_page import page

    check_statuses(fail_on)
    check_json(json)
    files = {name: named_path(word) for name, word in (("--sarif", sarif), ("--html", html)) if word is not None}
    for name, path in files.items():
        check_writable(path, name)
    folder = None if record is None else named_path(record)
    command, place = [script, *context.args], outer_place()
    if place is None:
        seen = examine(command, is_module=module, ranks=ranks, steps=steps, record=folder, deadline_s=deadline)
    else:
        if ranks is not None:
            raise UsageError(f"torchrun started {place.world_size} ranks; leave --ranks {ranks} out")
        seen = examine_here(command, place, is_module=module, steps=steps, record=folder)
        if seen is None:
            return  # rank 0 reports
    write_json(seen.report(), json)
    if "--sarif" in files:
        write_json(sarif_of(seen, __version__), str(files["--sarif"]))
    if "--html" in files:
        files["--html"].write_text(page(seen), encoding="utf-8")
    if json != "-":
        print_diagnosis(console(), seen, everything=everything)
    if seen.reading is not None:
        fail_on_hit(seen.reading, fail_on)
    if seen.ended.code or seen.ended.stood_still:
        raise typer.Exit(EXIT_PROGRAM_FAILED)
    if seen.ended.stopped:
        raise typer.Exit(EXIT_AT_DEADLINE)
