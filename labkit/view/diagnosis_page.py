"""What the doctor says, as a card in a notebook and as one self-contained page.

Both are the same HTML: headings, lists and tables that read in order without any style, one block of style, no script, and
no address outside. The page forbids itself to load anything. What the script wrote (names, paths, its source) is escaped
wherever it stands.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..detect.explained import explanation
from ..detect.verdict import Verdict
from ..doctor.checklist import WORDS, Item, checklist, counted
from ..doctor.excerpts import Excerpt
from ..words import plural, printable
from .cards import escape, sentence
from .diagnosis import command_said, evidence_of, headline, open_said, waste_said
from .page_style import STYLE
from .palette import STATUS_MARK

if TYPE_CHECKING:
    from ..doctor.diagnosis import Diagnosis

AROUND = 2
"""Lines of the script that are shown before and after the one that a finding names."""


def diagnosis_card(diagnosis: Diagnosis) -> str:
    """The whole report as one piece of HTML."""
    return f"<div class='lkd'><style>{STYLE}</style>{_report(diagnosis, level=3)}</div>"


def page(diagnosis: Diagnosis) -> str:
    """One file that needs nothing beside it, and loads nothing."""
    title = escape(f"labkit doctor: {command_said(diagnosis)}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}html,body{{margin:0;padding:0}}body.lkd{{max-width:none}}main{{margin:0 auto;max-width:58rem;"
        "padding:1.5rem 1.25rem 3rem}</style></head>"
        f"<body class='lkd'><main>{_report(diagnosis, level=1)}</main></body></html>\n"
    )


def _report(diagnosis: Diagnosis, level: int) -> str:
    """The report, with headings from a level on."""
    parts = [_head(diagnosis, level)]
    if diagnosis.found:
        cards = "".join(_finding(diagnosis, number, one, level + 1) for number, one in enumerate(diagnosis.found, 1))
        parts.append(f"<section><h{level + 1}>Found</h{level + 1}>{cards}</section>")
    undecided = [verdict for verdict in diagnosis.verdicts if verdict.status == "inconclusive"]
    if undecided:
        items = "".join(
            f"<li><strong>{escape(one.question)}</strong> <span class=soft>{escape(open_said(one))}</span></li>"
            for one in undecided
        )
        parts.append(f"<section><h{level + 1}>Undecided</h{level + 1}><ul class=open>{items}</ul></section>")
    if diagnosis.trained or diagnosis.found:
        parts.append(_checklist(diagnosis, level + 1))
    return "".join(parts) + _foot(diagnosis)


def _head(diagnosis: Diagnosis, level: int) -> str:
    counts = [(status, number) for status, number in counted(diagnosis.verdicts).items() if number]
    chips = "".join(
        f"<li class='chip {status}'>{STATUS_MARK[status]} <b>{number}</b> {WORDS[status]}</li>" for status, number in counts
    )
    script, *arguments = [escape(printable(word)) for word in diagnosis.command]
    given = f" <span class=soft>{' '.join(arguments)}</span>" if arguments else ""
    return (
        f"<header><p class=kicker>labkit doctor</p><h{level} class=title><code>{script}</code>{given}</h{level}>"
        f"<p class=facts>{escape(sentence(headline(diagnosis)))}</p><ul class=tally>{chips}</ul></header>"
    )


def _finding(diagnosis: Diagnosis, number: int, verdict: Verdict, level: int) -> str:
    waste = waste_said(verdict)
    cost = f"<span class=waste>{escape(waste)}</span>" if waste else ""
    asked = f"<span class=number>{number}</span><span>{escape(verdict.question)}</span>"
    parts = [f"<h{level} class=question>{asked}{cost}</h{level}>"]
    if verdict.waste is not None:
        share = 100 * min(1.0, max(0.0, verdict.waste))
        parts.append(f"<div class=bar aria-hidden=true><i style='width:{share:.1f}%'></i></div>")
    parts.append(f"<p>{escape(sentence(verdict.cause))}</p>")
    if verdict.where:
        parts.append(_source(verdict.where, diagnosis.excerpt(verdict, AROUND)))
    if verdict.fix:
        parts.append(f"<p class=fix><b>Fix.</b> {escape(sentence(verdict.fix))}</p>")
    parts.append(_more(verdict))
    return f"<article class=finding>{''.join(parts)}</article>"


def _source(where: str, lines: Excerpt | None) -> str:
    if lines is None:
        return f"<p class=place><code>{escape(where)}</code></p>"
    width = len(str(lines.lines[-1][0]))
    texts = textwrap.dedent("\n".join(text for _, text in lines.lines)).split("\n")
    shown = "".join(
        f"<span class='line{' here' if number == lines.line else ''}'><span class=no>{number:>{width}}</span>{escape(text)}"
        f"{'<span class=aside> ◀ here</span>' if number == lines.line else ''}\n</span>"
        for (number, _), text in zip(lines.lines, texts, strict=True)
    )
    return f"<figure><figcaption><code>{escape(where)}</code></figcaption><pre>{shown}</pre></figure>"


def _more(verdict: Verdict) -> str:
    """What stands behind a finding: its numbers, and the fix as a diff."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in evidence_of(verdict).items()
    )
    numbers = f"<dl class=evidence>{rows}</dl>" if rows else ""
    told = explanation(f"{verdict.detector}/{verdict.reason}")
    diff = "".join(
        f"<span class='line {'minus' if line[:1] == '-' else 'plus' if line[:1] == '+' else ''}'>{escape(line)}\n</span>"
        for line in told.fix.splitlines()
    )
    why = f"<p>{escape(told.told.mechanism)}</p>" if told.told is not None else ""
    body = f"{why}{f'<pre class=diff>{diff}</pre>' if diff else ''}"
    command = f"<p class=soft><code>labkit explain {escape(verdict.detector)}/{escape(verdict.reason)}</code> says more.</p>"
    return f"{numbers}<details><summary>What goes wrong, and the change in code</summary>{body}{command}</details>"


def _checklist(diagnosis: Diagnosis, level: int) -> str:
    """All questions by subject. What one run cannot answer is folded away."""
    subjects = checklist(diagnosis.verdicts)
    rows = "".join(_subject(subject, [item for item in items if not item.needs]) for subject, items in subjects.items())
    folded = [item for items in subjects.values() for item in items if item.needs]
    rest = ""
    if folded:
        needs = "".join(
            f"<tr><td><code>{item.verdict.detector}</code></td><td>{escape(item.verdict.question)}</td>"
            f"<td>{escape(item.needs)}</td></tr>"
            for item in folded
        )
        rest = (
            f"<details><summary>{plural(len(folded), 'question')} that one run of a script cannot answer</summary>"
            f"<table><thead><tr><th scope=col>Name</th><th scope=col>Question</th><th scope=col>It takes</th></tr></thead>"
            f"<tbody>{needs}</tbody></table></details>"
        )
    head = "<thead><tr><th scope=col>Answer</th><th scope=col>Question</th><th scope=col>In a few words</th></tr></thead>"
    return f"<section><h{level}>Check-list</h{level}><table class=list>{head}{rows}</table>{rest}</section>"


def _subject(subject: str, items: list[Item]) -> str:
    if not items:
        return ""
    return f"<tbody><tr><th colspan=3 scope=rowgroup>{escape(subject)}</th></tr>{''.join(map(_item, items))}</tbody>"


def _item(item: Item) -> str:
    verdict = item.verdict
    number = f" <span class=number>{item.number}</span>" if item.number else ""
    why = "see above" if verdict.status in ("found", "inconclusive") else item.why
    chip = f"<span class='chip {verdict.status}'>{STATUS_MARK[verdict.status]} {WORDS[verdict.status]}</span>"
    asked = f"{escape(verdict.question)} <code>{escape(verdict.detector)}</code>"
    return f"<tr><td>{chip}{number}</td><td>{asked}</td><td>{escape(why)}</td></tr>"


def _foot(diagnosis: Diagnosis) -> str:
    reading = diagnosis.reading
    said = [reading.provenance.label()] if reading is not None else []
    said += ["Nothing was sent anywhere; this page loads nothing."]
    return f"<footer>{'<br>'.join(escape(one) for one in said)}</footer>"
