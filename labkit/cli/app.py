"""The commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from .bench import bench
from .capture import capture
from .compare import compare
from .doctor import doctor
from .explain import explain
from .list import list_labs
from .run import run
from .runs import runs
from .show import show

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


app.command("list")(list_labs)
for command in (run, bench, show, runs, compare, capture, explain):
    app.command()(command)
app.command(context_settings={"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": False})(
    doctor
)
