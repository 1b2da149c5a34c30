"""What a script's source says before it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_DISTRIBUTED = ("torch.distributed", "accelerate", "lightning", "pytorch_lightning", "deepspeed", "horovod")
_NAMES = ("DistributedDataParallel", "init_process_group", "fully_shard", "FullyShardedDataParallel", "DistributedSampler")


_SPAWNS = ("spawn", "start_processes", "notebook_launcher", "debug_launcher", "elastic_launch", "launch_agent")
_JOINS = ("init_process_group", "init_device_mesh", "notebook_launcher", "debug_launcher", "Accelerator")
_FROM_A_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID")


def is_distributed(script: Path) -> bool:
    """Whether the source of a script, or of a module beside it that it imports, has to do with several ranks."""
    return any(_has_to_do_with_ranks(node) for node in _nodes(script))


def starts_ranks(script: Path) -> bool:
    """Whether the source starts its ranks by itself, and reads nothing of a launcher's that would have started them."""
    starts = joins = False
    for node in _nodes(script):
        if _reads_a_launcher(node):
            return False
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            starts = starts or called in _SPAWNS or (called == "Process" and any(k.arg == "target" for k in node.keywords))
            joins = joins or called in _JOINS
    return starts and joins


def _has_to_do_with_ranks(node: ast.AST) -> bool:
    if any(module.startswith(_DISTRIBUTED) for module in _imported(node)):
        return True
    return isinstance(node, (ast.Name, ast.Attribute)) and getattr(node, "id", getattr(node, "attr", "")) in _NAMES


def _reads_a_launcher(node: ast.AST) -> bool:
    """os.environ["RANK"], os.environ.get("RANK"), os.getenv("RANK"), "RANK" in os.environ; not a value that is set."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and _names_a_launcher(node.slice)
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", "") in ("get", "getenv") and any(map(_names_a_launcher, node.args[:1]))
    return isinstance(node, ast.Compare) and _names_a_launcher(node.left)


def _names_a_launcher(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in _FROM_A_LAUNCHER


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module or ''}.{alias.name}" for alias in node.names)]
    return []


def _nodes(script: Path) -> Iterator[ast.AST]:
    """All of the source of a script, and of the modules beside it that it imports."""
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
            yield node
            todo += [script.parent / f"{module.replace('.', '/').lstrip('/')}.py" for module in _imported(node) if module]
