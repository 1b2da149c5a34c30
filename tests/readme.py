"""What the README and its pages show a reader to run."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("command-line", "many-machines", "your-own-script")}
"""By name, the pages to which the README sends a reader for more to run."""


def commands() -> list[str]:
    """The shell commands of the README and of its pages: indented lines, without their comments."""
    without_blocks = re.sub(r"(?s)```.*?```", "", "\n".join([README, *PAGES.values()]))
    lines = re.findall(r"(?m)^    (\S.*)$", without_blocks)
    return [line.split("  #")[0].strip() for line in lines if not line.startswith("config ──")]


def own_script() -> str:
    """The whole script with a probe that a page gives to begin with."""
    found = re.search(r"## With the probe\n.*?```python\n(.*?)```", PAGES["your-own-script"], re.DOTALL)
    assert found
    return found[1]
