"""Advice as somebody reads it who presses buttons: settings by their names, without the command line's options."""

from __future__ import annotations

import re

_SETTING = re.compile(r"--set ([A-Za-z]\w*)=(\S*?)(?=[\s),;:]|$)")
_OPTION = re.compile(r"--(ranks|hosts|link|latency|variant|seed|steps|epochs)[ =]([A-Z]+\b|[\w.…]+)")


def in_plain_terms(text: str) -> str:
    """The same advice without options.

    >>> in_plain_terms("time more steps (--set timed_steps=100), or set a slower link (--link 50mbit)")
    'time more steps (timed steps = 100), or set a slower link (link = 50mbit)'
    >>> in_plain_terms("measure with --ranks 2 or more; keep it with --record DIR")
    'measure with ranks = 2 or more; keep it with record_dir=…'
    """
    text = _SETTING.sub(lambda found: f"{found[1].replace('_', ' ')} = {found[2]}", text)
    text = _OPTION.sub(lambda found: f"{found[1]} = {found[2]}", text)
    return re.sub(r"--record(?: DIR)?", "record_dir=…", text)
