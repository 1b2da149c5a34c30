"""What `make lab` opens: lessons without answers, which stay as their reader leaves them, and the executed ones beside."""

import lessons
import nbformat
import pytest


@pytest.fixture
def folder(tmp_path):
    lessons.prepare(tmp_path / "lessons")
    return tmp_path / "lessons"


def test_a_copy_holds_no_output_and_is_the_same_lesson(folder):
    for path in lessons.lessons():
        stored, copy = nbformat.read(path, as_version=4), nbformat.read(folder / path.name, as_version=4)
        assert [cell.source for cell in copy.cells] == [cell.source for cell in stored.cells]
        code = [cell for cell in copy.cells if cell.cell_type == "code"]
        assert not [cell for cell in code if cell.outputs or cell.execution_count or "execution" in cell.metadata]
        assert not [cell for cell in code if "outputs_hidden" in cell.metadata.get("jupyter", {})]
        assert "widgets" not in copy.metadata and "widgets" not in str(copy.metadata)
        nbformat.validate(copy)
        assert (folder / lessons.EXECUTED / path.name).read_bytes() == path.read_bytes()


def test_what_a_reader_wrote_stays_and_a_reset_keeps_it_beside(folder, capsys):
    mine = folder / "03_duplicate_data.ipynb"
    mine.write_text(mine.read_text().replace("seed = 0", "seed = 7"))
    lessons.prepare(folder)
    assert "seed = 7" in mine.read_text()
    lessons.reset(folder, ["03"])
    assert "seed = 7" not in mine.read_text()
    (kept,) = (folder / lessons.KEPT).iterdir()
    assert "seed = 7" in kept.read_text() and kept.name.startswith("03_duplicate_data-")
    assert "03_duplicate_data.ipynb" in capsys.readouterr().out


def test_a_lesson_that_there_is_not_is_named_with_those_there_are(folder):
    with pytest.raises(SystemExit, match="no lesson 33; there are: 00, 01"):
        lessons.reset(folder, ["33"])
    assert not (folder / lessons.KEPT).exists()


def test_the_page_leads_to_every_lesson_and_to_its_executed_one(folder):
    text = (folder / lessons.START).read_text()
    for path in lessons.lessons():
        assert f"]({path.name})" in text and f"](executed/{path.name})" in text
    assert text.count(" minutes |") == len(lessons.lessons())
