"""What a script's source says before it is run."""

from __future__ import annotations

import ast
from pathlib import Path

_DISTRIBUTED = ("torch.distributed", "accelerate", "lightning", "pytorch_lightning", "deepspeed", "horovod")
_NAMES = ("DistributedDataParallel", "init_process_group", "fully_shard", "FullyShardedDataParallel", "DistributedSampler")


def is_distributed(script: Path) -> bool:
    """Whether the source of a script, or of a module beside it that it imports, has to do with several ranks."""
    seen: set[Path] = set()
    todo = [script]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or "", *(f"{node.module or ''}.{alias.name}" for alias in node.names)]
            if any(module.startswith(_DISTRIBUTED) for module in modules):
                return True
            if isinstance(node, (ast.Name, ast.Attribute)) and getattr(node, "id", getattr(node, "attr", "")) in _NAMES:
                return True
            todo += [script.parent / f"{module.replace('.', '/').lstrip('/')}.py" for module in modules if module]
    return False
