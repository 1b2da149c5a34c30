"""Every name under which the package records or reads is in the vocabulary, and what is written about it is made from it."""

import re

import pytest
from records import DOCUMENT, OWN_SCRIPT, document, own_script
from vocabulary_use.judged import Uses, package
from vocabulary_use.questions import ROWS, Row, unasked
from vocabulary_use.uses import uses_of

from labkit.record.vocabulary import TABLES


@pytest.fixture(scope="module")
def uses():
    return package()


def test_every_name_that_the_package_writes_or_asks_for_is_in_the_vocabulary(uses):
    assert uses.strange == []
    assert len(uses.all) > 500


def test_the_vocabulary_has_no_name_that_nobody_writes_and_no_gap_that_is_closed(uses):
    assert uses.idle == []
    assert uses.closed == []


def test_the_page_of_what_can_be_recorded_is_made_from_the_vocabulary(uses):
    assert DOCUMENT.read_text() == document(uses), "run python scripts/records.py"


def test_the_table_of_what_to_record_is_made_from_the_questions_and_each_name_in_it_is_asked_for_there(uses, monkeypatch):
    assert OWN_SCRIPT.read_text() == own_script(OWN_SCRIPT.read_text()), "run python scripts/records.py"
    assert unasked(uses) == []
    wrong = (Row("Wrong?", ("order",), "{count:updates}, {fact:no_such_name}, {fact:dataset_size}"),)
    monkeypatch.setattr("vocabulary_use.questions.ROWS", wrong)
    assert unasked(uses) == ["order: count updates", "order: fact no_such_name"]
    assert len(ROWS) > 10


def test_what_watch_ddp_says_that_it_writes_is_what_it_writes(uses):
    from labkit.watch import ddp

    headings = {"spans": "span", "series": "series", "counts": "count", "events": "event"}
    blocks = re.findall(r"(?m)^    ([a-z]+) +((?:.+\n)(?:^ {5,}.+\n)*)", ddp.__doc__ or "")
    assert [heading for heading, _ in blocks] == list(headings)
    for heading, text in blocks:
        sort = headings[heading]
        said = set(re.findall(r"[a-z_]+", re.sub(r"\([^)]*\)", "", text))) & set(TABLES[sort])
        written = {use.name for use in uses.all if use.writes and use.file == "watch/ddp.py" and use.sort == sort}
        assert said == written | ({"updates"} if sort == "count" else set()), "its optimizer's watch counts these"


def strange(source: str, file: str = "a.py") -> list[str]:
    return Uses(uses_of({file: source})).strange


WRITTEN = [
    "probe.declare(NAME=1)",
    "facts = dict(NAME=1)\nprobe.declare(**facts)",
    "probe.declare(**({'NAME': 1} if clips else {}))",
    "context.probe.count('NAME')",
    "self._probe.scalar('NAME', 1.0)",
    "probe.series('NAME', [1])",
    "probe.event('NAME')",
    "probe.event('save', of_step=1, NAME=2)",
    "with probe.span('NAME'):\n    pass",
    "probe.digest('NAME', tensors)",
    "probe.array('NAME', values)",
    "probe.seen('NAME', 0, batch)",
    "for each in probe.batches(loader, name='NAME'):\n    pass",
    "for name, value in {'NAME': 1}.items():\n    probe.count(name, value)",
    "values = {'bytes': 1}\nvalues |= {'NAME': 2}\nfor name, value in values.items():\n    probe.count(name, value)",
    "for at, name in enumerate(('bytes', 'NAME')):\n    probe.count(name)",
    "probe.count('bytes' if one else 'NAME')",
    "probe.count(f'NAME_{dtype}')",
    "def tell(probe, name='bytes'):\n    probe.count(name)\ntell(probe)\ntell(probe, 'NAME')",
    "class Watch:\n    def tell(self, name):\n        self.probe.count(name)\nwatch.tell(name='NAME')",
]

ASKED = [
    "run.fact('NAME', 0)",
    "log.head.facts.get('NAME')",
    "step.counts['NAME']",
    "'NAME' in step.scalars",
    "step.scalar('NAME')",
    "{'scale', 'NAME'} <= step.scalars.keys()",
    "step.series.get('NAME', [])",
    "run.arrays.get('NAME')",
    "log.digests.get('NAME')",
    "event.name == 'NAME'",
    "counts = step.counts\ncounts['NAME']",
    "finite = [step.counts for step in steps]\n[counts.get('NAME') for counts in finite]",
    "for fields in [event.fields for event in events]:\n    fields['NAME']",
    "event.name in ('save', 'NAME')",
    "event.fields['NAME']",
    "span.name == 'NAME'",
    "[step.counts.get(name) for name in ('bytes', 'NAME')]",
    "total = [step.counts.get(what) for what in (name, 'NAME')]",
    "fact = 'cores' if cpu else 'NAME'\nlog.head.facts.get(fact)",
    "NAMES = ('cores', 'NAME')\nlog.head.facts.get(NAMES[0])",
    "def counted(run, name, *, later=None):\n    return run.counts.get(name)\ncounted(run, 'NAME')",
]


@pytest.mark.parametrize("source", [*WRITTEN, *ASKED])
def test_a_name_that_the_vocabulary_does_not_have_is_seen_however_it_is_given(source):
    found = strange(source.replace("NAME", "no_such_name"))
    assert found and any("no_such_name" in said for said in found), found


@pytest.mark.parametrize(
    "source",
    [
        "probe.count('updates')",
        "probe.count(f'forwards_{dtype}')",
        "probe.event('state', when='saved', of_step=1, my_own_state='')",
        "np.array('NAME')",
        "itertools.count('NAME')",
        "step.counts.get('updates')",
    ],
)
def test_what_is_in_the_vocabulary_or_no_name_at_all_is_not(source):
    assert strange(source) == []


def test_a_name_that_the_source_does_not_tell_is_told_from_one_that_is_known():
    assert strange("probe.count(operation.name)") == ["a.py:1 writes count ?"]
    assert strange("Counted(loader, probe.count)") == ["a.py:1 writes count ?"], "who is given the method calls it"


def test_a_name_that_is_imported_is_looked_up_where_it_is_bound():
    sources = {"detect/names.py": "WHAT = ('cores', 'no_such_name')", "detect/sums/one.py": ""}
    sources["detect/sums/one.py"] = "from ..names import WHAT\nfor name in WHAT:\n    run.fact(name)"
    assert Uses(uses_of(sources)).strange == ["detect/sums/one.py:3 asks for fact no_such_name"]
