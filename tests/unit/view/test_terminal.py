"""What a terminal is told: names, paths and values as they are, whatever they look like to rich."""

import io

import msgspec
from rich.console import Console

from labkit.detect.verdict import Verdicts
from labkit.record.quantity import Quantity
from labkit.record.table import Table
from labkit.view.tables import in_terminal
from labkit.view.terminal import print_record

from ..builders import record_of, run_of

ODD = "[bold]a[/bold] [/x] b]"
"""Markup, and an end of markup that was never begun, which rich takes for an error."""


def printed(show) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(console)
    return console.file.getvalue()


def test_what_looks_like_markup_is_printed_as_it_is(tmp_path):
    record = msgspec.structs.replace(record_of(run_of([[[[0]]]])), variant=ODD, folder=tmp_path / ODD)
    said = printed(lambda console: print_record(console, record, {"measure": Quantity(ODD)}, Verdicts([])))
    assert said.count(ODD) == 3


def test_so_is_a_table_of_words():
    table = Table(title=f"title {ODD}", columns=(f"column {ODD}",), rows=((ODD,),), notes=(ODD,))
    assert printed(lambda console: console.print(*in_terminal(table), sep="\n")).count(ODD) == 4
