"""What the doctor says, in a terminal: the findings, what stays undecided, and a check-list of all questions.

No frames and no tables of lines: the text reads the same aloud, in a file and in a terminal of 60 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..detect.verdict import Verdict
from ..doctor.checklist import ORDER, WORDS, Item, checklist, counted
from ..words import duration, plural, printable
from .cards import sentence
from .lines import code, paragraph
from .palette import STATUS_MARK

if TYPE_CHECKING:
    from ..doctor.diagnosis import Diagnosis

_STYLE = {"found": "bold red", "clear": "green", "inconclusive": "yellow", "not_applicable": "dim"}
_LEFT = 3
_EVIDENCE = 6
"""Numbers that are shown of one finding."""


def command_said(diagnosis: Diagnosis) -> str:
    """The script and its arguments, fit to be shown."""
    return printable(" ".join(diagnosis.command))


def headline(diagnosis: Diagnosis) -> str:
    """One sentence: on what it ran, for how long, and how it ended."""
    ended, ranks = diagnosis.ended, len(diagnosis.ended.ranks)
    updates = f", {plural(diagnosis.updates, 'update')}" if diagnosis.trained else ""
    return f"{plural(ranks, 'rank')}{updates}, {duration(ended.seconds)}: {_end(diagnosis)}"


def _end(diagnosis: Diagnosis) -> str:
    ended = diagnosis.ended
    if ended.stood_still:
        return "it stood still and was ended"
    if ended.unseen:
        where = "ran on another machine, and what it" if len(ended.unseen) == 1 else "ran on other machines, and what they"
        said = f"{plural(len(ended.unseen), 'rank')} {where} wrote is not here, so nothing is judged"
        return f"{said}; give --record a new folder that all machines share"
    if ended.stopped:
        return "it was ended at its deadline"
    failed = [one for one in ended.ranks if one.end.startswith("raised") or one.code]
    if failed:
        return f"rank {failed[0].rank} {failed[0].end}"
    if ended.alone:
        return _alone_said(diagnosis)
    if not diagnosis.trained:
        return "no optimizer made a step, so there is no training to examine"
    enough = any(one.end == "enough" for one in ended.ranks)
    return "ended after the steps that were asked for" if enough else "it came to its end"


def _alone_said(diagnosis: Diagnosis) -> str:
    several = diagnosis.ended.alone > 1
    said = f"{plural(diagnosis.ended.alone, 'process', 'processes')} of the script's own {'train' if several else 'trains'}"
    said += " without a process group, as in hogwild or in runs side by side"
    what = f"{'they' if several else 'it'} cannot be compared and {'are' if several else 'is'} not judged"
    return f"{said}; {what}: run one of them by itself under the doctor"


def tally(diagnosis: Diagnosis) -> str:
    """How many questions have which answer: "2 found, 1 undecided, 14 clear, 30 not seen"."""
    return ", ".join(f"{number} {WORDS[status]}" for status, number in counted(diagnosis.verdicts).items() if number)


def waste_said(verdict: Verdict) -> str:
    """What a finding costs: "wastes 50 % of device time"; empty where that has no figure."""
    return "" if verdict.waste is None else f"wastes {100 * verdict.waste:.3g} % of device time"


def open_said(verdict: Verdict) -> str:
    """Why a question stays undecided, and what to do to know."""
    known = verdict.fix if verdict.fix.endswith((".", "?", "!")) else f"{verdict.fix}."
    return sentence(verdict.cause) + (f" To know: {known}" if verdict.fix else "")


def evidence_of(verdict: Verdict) -> dict[str, str]:
    """Its numbers, by what they are called, as a person reads them."""
    return {name.replace("_", " "): quantity.said for name, quantity in list(verdict.evidence.items())[:_EVIDENCE]}


def print_diagnosis(console: Console, diagnosis: Diagnosis, *, everything: bool = False) -> None:
    """The findings, then what stays undecided, then the check-list, where each question has a line with `everything`."""
    paragraph(console, Text.assemble(("labkit doctor: ", "dim"), (command_said(diagnosis), "bold")))
    paragraph(console, sentence(headline(diagnosis)))
    if not diagnosis.verdicts or not (diagnosis.trained or diagnosis.found):
        return
    paragraph(console, Text(sentence(tally(diagnosis)), style="bold"))
    for number, verdict in enumerate(diagnosis.found, 1):
        console.print()
        _print_finding(console, diagnosis, number, verdict)
    undecided = [verdict for verdict in diagnosis.verdicts if verdict.status == "inconclusive"]
    if undecided:
        _heading(console, "Undecided")
    for verdict in undecided:
        paragraph(console, verdict.question, left=_LEFT, first=_mark(verdict))
        paragraph(console, Text(open_said(verdict), style="dim"), left=_LEFT)
    _heading(console, "Check-list")
    for subject, items in checklist(diagnosis.verdicts).items():
        _print_subject(console, subject, items, everything)
    console.print()
    _print_rest(console, diagnosis, everything)


def _print_finding(console: Console, diagnosis: Diagnosis, number: int, verdict: Verdict) -> None:
    head = Text.assemble(("found", _STYLE["found"]), f"  {verdict.question}")
    if waste := waste_said(verdict):
        head.append(f"  ({waste})", style="bold")
    paragraph(console, head, left=_LEFT, first=Text(f"{number}.", style=_STYLE["found"]))
    paragraph(console, sentence(verdict.cause), left=_LEFT)
    if verdict.where:
        code(console, Text(f"{printable(verdict.where)}", style="bold"), left=_LEFT)
        line = diagnosis.excerpt(verdict)
        if line is not None:
            code(console, Text(f"    {line.text}", style="cyan"), left=_LEFT)
    if verdict.fix:
        paragraph(console, sentence(verdict.fix), left=_LEFT + 10, first=Text(f"{' ' * _LEFT}Fix", style="bold"))
    if verdict.evidence:
        said = "; ".join(f"{name}: {value}" for name, value in evidence_of(verdict).items())
        paragraph(console, printable(said), left=_LEFT + 10, first=f"{' ' * _LEFT}Evidence")
    more = f"labkit explain {verdict.detector}/{verdict.reason}"
    paragraph(console, Text(more), left=_LEFT + 10, first=f"{' ' * _LEFT}More")


def _print_subject(console: Console, subject: str, items: list[Item], everything: bool) -> None:
    shown = [item for item in items if everything or not item.needs]
    if not shown:
        return
    paragraph(console, Text(subject, style="bold"), left=_LEFT, first=" " * _LEFT)
    for said, text in _lines(shown, everything):
        paragraph(console, text, left=_LEFT + 15, first=Text.assemble(" " * (_LEFT + 2), said))


def _lines(items: list[Item], everything: bool) -> Iterator[tuple[Text, Text]]:
    """(answer, questions) line by line: equal answers in one line, but for what was not seen, which says why."""
    apart = [item for item in items if everything or item.verdict.status == "not_applicable"]
    for status in ORDER:
        together = [item for item in items if item.verdict.status == status and item not in apart]
        if together:
            yield _said(together[0].verdict), Text(", ".join(map(_name, together)))
    for item in apart:
        yield _said(item.verdict), Text.assemble(_name(item), (f": {printable(item.why)}", "dim"))


def _name(item: Item) -> str:
    return item.verdict.detector + (f" ({item.number})" if item.number else "")


def _print_rest(console: Console, diagnosis: Diagnosis, everything: bool) -> None:
    """What was left out, and where more is said."""
    asked = [item for items in checklist(diagnosis.verdicts).values() for item in items if item.needs]
    if asked and not everything:
        names = ", ".join(item.verdict.detector for item in asked)
        said = (
            f"{plural(len(asked), 'question')} that one run of a script cannot answer: {names}. --all says what each needs."
        )
        paragraph(console, Text(said, style="dim"))
    paragraph(console, Text("Nothing was sent anywhere.", style="dim"))


def _said(verdict: Verdict) -> Text:
    return Text.assemble((f"{STATUS_MARK[verdict.status]} {WORDS[verdict.status]}", _STYLE[verdict.status]), "  ")


def _mark(verdict: Verdict) -> Text:
    return Text(f"{STATUS_MARK[verdict.status]} ", style=_STYLE[verdict.status])


def _heading(console: Console, heading: str) -> None:
    console.print()
    console.print(Text(heading, style="bold"))
