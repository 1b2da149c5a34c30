"""What a terminal is told: names, paths and values as they are, whatever they look like to rich."""

import io

import msgspec
from rich.console import Console

from labkit.detect.meanings import meaning_of
from labkit.detect.verdict import Verdict, Verdicts
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
    said = printed(lambda console: print_record(console, record, Verdicts([]), {"measure": Quantity(ODD)}))
    assert said.count(ODD) == 3


def verdict(status: str) -> Verdict:
    return Verdict(detector=f"d-{status}", question=f"Is it {status}?", status=status)


def test_verdicts_come_first_and_the_measures_that_matter_after_them_each_with_its_meaning():
    record = record_of(run_of([[[[0]]]]))
    verdicts = Verdicts(map(verdict, ("clear", "not_applicable", "found")))
    measures = {"coverage": Quantity(0.5, "of the data set"), "padding": Quantity(3, "samples")}
    said = printed(lambda console: print_record(console, record, verdicts, measures, shown=["padding"]))
    order = ["Is it found?", "Is it clear?", "1 question does not apply to this run; --all says why", meaning_of("padding")]
    assert sorted(map(said.index, order)) == list(map(said.index, order))
    assert "3 samples" in said and "50.0%" not in said and "1 more measure: --all shows them" in said
    assert "not_applicable?" not in said


def test_all_lists_every_measure_and_the_questions_that_do_not_apply():
    record = record_of(run_of([[[[0]]]]))
    measures = {"coverage": Quantity(0.5, "of the data set"), "padding": Quantity(3, "samples")}
    verdicts = Verdicts([verdict("not_applicable")])
    said = printed(lambda console: print_record(console, record, verdicts, measures, lacking=True))
    assert "Is it not_applicable?" in said and "50.0% of the data set" in said
    assert "--all" not in said


def test_so_is_a_table_of_words():
    table = Table(title=f"title {ODD}", columns=(f"column {ODD}",), rows=((ODD,),), notes=(ODD,))
    assert printed(lambda console: console.print(*in_terminal(table), sep="\n")).count(ODD) == 4
