"""What the README shows a reader to run."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """The README's shell commands: indented lines, without their comments."""
    without_blocks = re.sub(r"(?s)```.*?```", "", README)
    lines = re.findall(r"(?m)^    (\S.*)$", without_blocks)
    return [line.split("  #")[0].strip() for line in lines if not line.startswith("config ──")]


def own_script() -> str:
    """The whole script that the README gives to begin with."""
    found = re.search(r"### Your own script\n.*?```python\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]
