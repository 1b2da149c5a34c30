"""The lessons as a learner opens them: copies without answers, a page to start from, and the executed ones beside.

python scripts/lessons.py prepare FOLDER     what is not there yet; what you changed stays
python scripts/lessons.py reset FOLDER 03    a fresh copy of lesson 03, without a number of all; yours is kept
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
EXECUTED, KEPT, START, GLOSSARY = "executed", "yours", "Course.md", "Glossary.md"


def lessons() -> list[Path]:
    """The notebooks of the repository, in order."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def without_outputs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same notebook as if nobody had run it: nothing in it says what will come out."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
            cell.metadata.get("jupyter", {}).pop("outputs_hidden", None)  # else JupyterLab shows its place
    notebook.metadata.pop("widgets", None)
    return notebook


def put(path: Path, folder: Path) -> None:
    """Copy one lesson into the folder, without its outputs."""
    nbformat.write(without_outputs(nbformat.read(path, as_version=4)), folder / path.name)


def prepare(folder: Path) -> None:
    """Make what is missing; the executed lessons and the page are made anew each time."""
    (folder / EXECUTED).mkdir(parents=True, exist_ok=True)
    for path in lessons():
        if not (folder / path.name).exists():
            put(path, folder)
        shutil.copyfile(path, folder / EXECUTED / path.name)
    for place in (folder, folder / EXECUTED):  # lessons link to it as to a neighbour
        shutil.copyfile(ROOT / "notebooks" / GLOSSARY, place / GLOSSARY)
    (folder / START).write_text(page(), encoding="utf-8")


def reset(folder: Path, numbers: list[str]) -> None:
    """Put fresh copies in the place of those that were worked in, which are kept."""
    chosen = [path for path in lessons() if not numbers or path.name.split("_")[0] in numbers]
    known = [path.name.split("_")[0] for path in lessons()]
    if unknown := [number for number in numbers if number not in known]:
        sys.exit(f"there is no lesson {unknown[0]}; there are: {', '.join(known)}")
    (folder / KEPT).mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    for path in chosen:
        if (folder / path.name).exists():
            (folder / path.name).replace(folder / KEPT / f"{path.stem}-{stamp}.ipynb")
        put(path, folder)
    print(f"fresh: {', '.join(path.name for path in chosen)}; what was there is in {folder.name}/{KEPT}")


def page() -> str:
    """The page to start from: every lesson with its question, its minutes, and where it is executed already."""
    rows = []
    for path in lessons():
        first = nbformat.read(path, as_version=4).cells[0].source.splitlines()
        title = first[0].removeprefix("# ")
        question = next(line.strip("* ") for line in first[1:] if line.startswith("**"))
        minutes = next(line for line in first if "minutes" in line).strip("* ").split(" · ")[0]
        rows.append(f"| [{title}]({path.name}) | {question} | {minutes} | [executed]({EXECUTED}/{path.name}) |")
    return "\n".join(
        [
            "# The course",
            "",
            "Open a lesson, guess before you run, and press Shift+Enter from cell to cell. These are copies of your own: "
            "write in them as you like. The executed ones show what came out on another machine; look there afterwards.",
            "",
            "| lesson | question | time | |",
            "|---|---|---|---|",
            *rows,
            "",
            "Each lesson stands alone. Begin with 00, which measures your machine. 18 is the end: bring a script. "
            f"The [glossary]({GLOSSARY}) explains words.",
            "",
            "To begin a lesson again: `make reset LESSONS=03`. What you wrote is kept.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "reset"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("numbers", nargs="*", metavar="NN")
    args = parser.parse_args()
    prepare(args.folder)
    if args.what == "reset":
        reset(args.folder, args.numbers)


if __name__ == "__main__":
    main()
