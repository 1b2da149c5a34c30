"""What of a notebook a comparison needs: what is compared, what is asserted, and all that these rest on.

The rest are figures, exercises, and runs that are shown and no more: papermill executes these.
"""

import ast
from collections.abc import Iterator, Sequence

CHANGE_IN_PLACE = {"append", "extend", "update", "add"}


def sliced(sources: Sequence[str], whole: set[int]) -> list[str]:
    """Cells without the statements that nothing compared or asserted rests on; a cell may be left empty.

    Args:
        whole: the numbers of the cells that stay as they are.
    """
    needed: set[str] = set()
    kept = []
    for number, source in reversed(list(enumerate(sources))):
        stay = []
        for statement in reversed(ast.parse(source).body):
            if number in whole or _demands(statement) or needed & set(_changed(statement)):
                needed -= _made_anew(statement)
                needed |= _used(statement)
                stay.append(ast.unparse(statement))
        kept.append(source if number in whole else "\n".join(reversed(stay)))
    return kept[::-1]


def _demands(statement: ast.stmt) -> bool:
    """Whether it can fail on purpose, or refuses parameters."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return False
    nodes = list(ast.walk(statement))
    return any(isinstance(node, (ast.Assert, ast.Raise)) for node in nodes) or "lesson.begin(" in ast.unparse(statement)


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Names that it gives a value, or whose value it changes in place."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield _base(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGE_IN_PLACE:
            yield _base(node.func)


def _base(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _made_anew(statement: ast.stmt) -> set[str]:
    """Names whose values of before play no part any more."""
    if not isinstance(statement, ast.Assign):
        return set()
    return {name.id for target in statement.targets for name in ast.walk(target) if _is_stored(name)}  # type: ignore[attr-defined]


def _used(statement: ast.stmt) -> set[str]:
    """Names that it reads, but for those of its own loops and parameters."""
    nodes = list(ast.walk(statement))
    targets = [node.target for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    own = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and not _is_stored(node)} - own


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
