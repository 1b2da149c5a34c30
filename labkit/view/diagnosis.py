"""What the doctor says, in a terminal, in a notebook and as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..words import duration, plural, printable
from .cards import chip, escape, sentence, verdict_card
from .terminal import verdict_in_terminal

if TYPE_CHECKING:
    from ..detect.verdict import Verdict
    from ..doctor.diagnosis import Diagnosis


def headline(diagnosis: Diagnosis) -> str:
    """One sentence: what was run, how it ended and how much was found."""
    ended, ranks = diagnosis.ended, len(diagnosis.ended.ranks)
    said = f"{printable(' '.join(diagnosis.command))} on {plural(ranks, 'rank')}, {duration(ended.seconds)}: "
    if ended.stood_still:
        return said + "it stood still and was ended"
    if ended.stopped:
        return said + "it was ended at its deadline"
    failed = [one for one in ended.ranks if one.end.startswith("raised") or one.code]
    if failed:
        return said + f"rank {failed[0].rank} {failed[0].end}"
    if not diagnosis.trained:
        return said + "no optimizer made a step, so there is no training to examine"
    enough = any(one.end == "enough" for one in ended.ranks)
    return said + ("ended after the steps that were asked for" if enough else "came to its end")


def counted(diagnosis: Diagnosis) -> str:
    """How many questions have which answer."""
    by = {status: sum(v.status == status for v in diagnosis.verdicts) for status in _SAID}
    return ", ".join(f"{number} {_SAID[status]}" for status, number in by.items() if number)


_SAID = {
    "found": "found",
    "inconclusive": "cannot be told yet",
    "clear": "clear",
    "not_applicable": "not seen in this run",
}


def print_diagnosis(console: Console, diagnosis: Diagnosis, *, everything: bool = False) -> None:
    """The findings, then what stays open, then what is clear; what was not seen is counted unless `everything`."""
    console.print(Text(headline(diagnosis), style="bold"))
    for verdict in diagnosis.verdicts:
        if verdict.status in ("found", "inconclusive"):
            console.print(verdict_in_terminal(verdict))
    clear = [verdict.detector for verdict in diagnosis.verdicts if verdict.status == "clear"]
    if clear:
        console.print(Text.assemble(("✓ CLEAR  ", "bold green"), ", ".join(clear)))
    if everything:
        for verdict in diagnosis.verdicts:
            if verdict.status == "not_applicable":
                console.print(verdict_in_terminal(verdict))
    if diagnosis.verdicts:
        more = "" if everything else "; --all says why not"
        console.print(Text(counted(diagnosis) + more, style="dim"))


def diagnosis_card(diagnosis: Diagnosis) -> str:
    """The same as a card."""
    parts = [f"<div><strong>{escape(headline(diagnosis))}</strong></div>"]
    parts += [verdict_card(verdict) for verdict in diagnosis.verdicts if verdict.status == "found"]
    parts += [_line(verdict) for verdict in diagnosis.verdicts if verdict.status in ("inconclusive", "clear")]
    unseen = [verdict for verdict in diagnosis.verdicts if verdict.status == "not_applicable"]
    if unseen:
        said = plural(len(unseen), "question") + " not seen in this run"
        parts.append(f"<details><summary>{said}</summary>{''.join(map(_line, unseen))}</details>")
    return f"<div style='max-width:62em'>{''.join(parts)}</div>"


def _line(verdict: Verdict) -> str:
    fix = f" To know: {escape(sentence(verdict.fix))}" if verdict.fix and verdict.status != "clear" else ""
    return (
        f"<div style='margin:.25em 0'>{chip(verdict.status)} {escape(verdict.question)} "
        f"<span style='font-size:85%;opacity:.8'>{escape(sentence(verdict.cause))}{fix}</span></div>"
    )


def page(diagnosis: Diagnosis) -> str:
    """One self-contained HTML file: no script, no address outside."""
    title = escape(f"labkit doctor: {' '.join(diagnosis.command)}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{font:16px/1.45 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em}</style></head>"
        f"<body><h1 style='font-size:1.3em'>{title}</h1>{diagnosis_card(diagnosis)}"
        f"<p style='font-size:85%;opacity:.8'>{escape(counted(diagnosis))}</p></body></html>\n"
    )
