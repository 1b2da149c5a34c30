"""The glossary: its words are in order, and every link of a lesson to it leads to one of them."""

import re
from pathlib import Path

import lessons
import nbformat

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TEXT = (FOLDER / lessons.GLOSSARY).read_text(encoding="utf-8")
WORDS = re.findall(r"(?m)^### (.+)$", TEXT)


def anchor(word: str) -> str:
    """As GitHub and JupyterLab make it of a heading in small letters without an apostrophe."""
    return word.replace(" ", "-")


def linked(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"\]\(Glossary\.md#([^)]*)\)", text)


def test_words_are_in_order_each_once_in_small_letters():
    assert sorted(set(WORDS)) == WORDS and len(WORDS) > 40
    assert [word for word in WORDS if word != word.lower() or "'" in word] == []


def test_links_of_lessons_and_of_the_glossary_lead_somewhere():
    known = {anchor(word) for word in WORDS}
    for path in lessons.lessons():
        assert set(linked(path)) <= known, path.name
    assert set(re.findall(r"\]\(#([^)]*)\)", TEXT)) <= known
    for name in set(re.findall(r"\]\((\w+\.ipynb)\)", TEXT)):
        assert (FOLDER / name).is_file()


def test_a_lesson_links_a_word_once():
    for path in lessons.lessons():
        assert len(linked(path)) == len(set(linked(path))), path.name


def test_a_copy_of_the_lessons_has_it_beside_them(tmp_path):
    lessons.prepare(tmp_path)
    for folder in (tmp_path, tmp_path / lessons.EXECUTED):
        assert (folder / "Glossary.md").read_text(encoding="utf-8") == TEXT
    assert "](Glossary.md)" in (tmp_path / lessons.START).read_text(encoding="utf-8")
