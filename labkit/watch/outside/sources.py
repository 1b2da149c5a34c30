"""What is read of the source as a script ends: settings that nothing reads, calls that nothing comes to."""

from __future__ import annotations

from ...record.probe import Probe
from .own_parts_said import own_parts_said
from .patches import named
from .settings_declared import declared_and_unread
from .settings_read import unread
from .source_of import script_files
from .unreached import unreached
from .written import tree_of

MOST = 20
"""Places that are noted, at most."""


def note(probe: Probe) -> None:
    """Read the script's own modules, and note what was found in them. *Called on* each rank, as the script ends."""
    trees = {file: tree_of(file) for file in script_files()}
    probe.event("source_read", files=sum(bool(tree.body) for tree in trees.values()), own_parts=own_parts_said())
    for one in [*unread(trees), *declared_and_unread(trees)][:MOST]:
        probe.event(
            "unread",
            where=named(one.file, one.line),
            kind=one.kind,
            setting=one.name,
            function=one.function,
            alone=one.alone,
        )
    for one in unreached(trees)[:MOST]:
        where, after = named(one.file, one.line), named(one.file, one.after)
        probe.event("unreached", where=where, call=one.call, after=after, ends_with=one.ends_with)
