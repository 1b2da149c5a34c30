"""What of a notebook a comparison needs: the cells that are compared, the runs that they rest on, and what is said of these.

Left out are other runs with all that rests on them, figures, and exercises: papermill executes these.
"""

import ast
from collections.abc import Iterator, Sequence

SHOWS = {"lab", "lesson", "prediction", "print"}
CHANGE_IN_PLACE = {"append", "extend", "update", "add"}


def sliced(sources: Sequence[str], whole: set[int]) -> list[str]:
    """Cells without what no cell that stays whole rests on; a cell may be left empty.

    Args:
        whole: the numbers of the cells that stay as they are.
    """
    cells = [ast.parse(source).body for source in sources]
    wanted = _rested_on(cells, whole)
    made_here = {name for statements in cells for statement in statements for name in _changed(statement)}
    there: set[str] = set()
    kept = []
    for number, statements in enumerate(cells):
        stay = []
        for statement in statements:
            if statement in wanted or (_is_quick(statement) and (_used(statement) - _own(statement)) & made_here <= there):
                there |= set(_changed(statement))
                stay.append(ast.unparse(statement))
        kept.append(sources[number] if number in whole else "\n".join(stay))
    return kept


def _rested_on(cells: Sequence[Sequence[ast.stmt]], whole: set[int]) -> set[ast.stmt]:
    """The statements that the whole cells rest on, found from the last to the first; parameters are always checked."""
    needed: set[str] = set()
    found = set()
    for number, statements in reversed(list(enumerate(cells))):
        for statement in reversed(statements):
            checks = "lesson.begin(" in ast.unparse(statement)
            if number in whole or checks or needed & set(_changed(statement)):
                needed -= _made_anew(statement)
                needed |= _used(statement)
                found.add(statement)
    return found


def _is_quick(statement: ast.stmt) -> bool:
    """Whether it makes no run, shows nothing, draws nothing and checks no exercise."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call) and _base(statement.value) not in SHOWS
    return not any(runs in ast.unparse(statement) for runs in ("lab.run(", "lab.mystery("))


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


def _own(statement: ast.stmt) -> set[str]:
    """Names to which a loop, or another statement with a body, gives its values itself."""
    return {name.id for name in ast.walk(statement) if _is_stored(name)} if hasattr(statement, "body") else set()  # type: ignore[attr-defined]


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
