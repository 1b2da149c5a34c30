"""Whether the source of a script says that each rank keeps a part of the model for itself, as a head for its data."""

from __future__ import annotations

import re

from .patches import named
from .source_of import script_files, text_of

_PART = r"(?:head|model|expert|adapter|classifier|decoder|encoder|layer|module|embedding|temperature)"
_OWN = r"(?:personal|private|local|client|site|per[-_ ]rank|rank[-_ ]specific)"
_SAID = re.compile(
    rf"\b_*{_OWN}[-_ ]?(?:[a-z]+[-_ ])?{_PART}s?\b"  # local_head, a private output layer
    rf"|\b{_PART}s?_{_OWN}\b|\bown_{_PART}s?\b|\brank's own\b"
    rf"|\b{_PART}s?\[\s*(?:str\()?(?:self\.)?(?:local_)?(?:rank\b|dist\.get_rank\(\))"  # heads[rank]
    rf"|\b{_PART}s?_?\{{rank\}}"  # f"head_{{rank}}"
    r"|\b(?:each|every|per)[- ]rank\b[^.\n]{0,40}\bown\b|\bpersonali[sz]|\bfederated\b",
    re.IGNORECASE,
)
"""Names and words by which people say it. Comments count: they are what the author meant."""


def own_parts_said() -> str:
    """The first line that says so, as file:line; empty without one."""
    for file in script_files():
        text = text_of(file)
        found = _SAID.search(text)
        if found:
            return named(file, text.count("\n", 0, found.start()) + 1)
    return ""
