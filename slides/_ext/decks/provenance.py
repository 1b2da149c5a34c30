"""Numbers in text, and the line at the foot of a slide that says where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from labkit.errors import LabkitError
from labkit.record.schema import Record

from .base import RecordsFailed, raw, records_of


class measured(nodes.General, nodes.Inline, nodes.TextElement):
    """A number in a line of text, with the records that it comes from."""


class Measure(SphinxRole):
    """`record.measure`, or a ratio of two."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            said, found = records_of(self.env).quantity(self.text)
        except RecordsFailed:
            return [], []
        except LabkitError as error:
            problem = self.inliner.reporter.error(f"measure: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, problem)], [problem]
        return [measured("", said, labels=[record.provenance.label() for record in found])], []


class provenance_line(nodes.General, nodes.Element):
    """Where what stands above comes from."""


def provenance(records: Iterable[Record], *, printed: bool = False) -> nodes.Node:
    """Asks for the records' labels at the foot of the slide, unless they are `printed` in a figure already."""
    return provenance_line("", labels=[record.provenance.label() for record in records], printed=printed)


def say_where_numbers_come_from(app: Sphinx, tree: nodes.document) -> None:
    """One line at the foot of each slide that has numbers of a record: labels of all of them, each once."""
    for section in list(tree.findall(nodes.section)):
        own = [node for kind in (measured, provenance_line) for node in section.findall(kind) if _slide(node) is section]
        printed = {label for node in own if node.get("printed") for label in node["labels"]}
        labels = [
            label for label in dict.fromkeys(label for node in own for label in node["labels"]) if label not in printed
        ]
        for node in own:
            if isinstance(node, provenance_line):
                node.parent.remove(node)
        if labels:
            line = raw(f'<p class="provenance">{"<br>".join(map(escape, labels))}</p>')
            at = next((i for i, child in enumerate(section.children) if isinstance(child, nodes.section)), len(section))
            section.insert(at, line)


def _slide(node: nodes.Node) -> nodes.Node:
    while not isinstance(node, nodes.section):
        node = node.parent
    return node


def _plainly(tag: str) -> tuple[Callable, Callable]:
    return (lambda self, node: self.body.append(f"<{tag}>"), lambda self, node: self.body.append(f"</{tag.split()[0]}>"))


def setup(app: Sphinx) -> None:
    app.add_role("measure", Measure())
    app.add_node(measured, html=_plainly('span class="measured"'), revealjs=_plainly('span class="measured"'))
    app.add_node(provenance_line)
    app.connect("doctree-read", say_where_numbers_come_from)
