"""Where the package writes and asks for names of the vocabulary, read off its source."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .names import Parameter, bindings, given, keys, texts

METHODS = {
    "count": "count", "counted": "count", "scalar": "scalar", "series": "series", "event": "event", "span": "span",
    "add_span": "span", "digest": "digest", "array": "array", "samples": "samples", "seen": "samples",
    "add_samples": "samples", "add_seen": "samples",
}  # fmt: skip
"""Methods of the probe whose first argument is a name -> the sort of name."""

HOLDERS = {
    "facts": "fact", "counts": "count", "scalars": "scalar", "series": "series", "ids": "samples", "arrays": "array",
    "digests": "samples or digest", "fields": "field",
}  # fmt: skip
"""Attributes of a record that hold values by name -> the sort of name. What a `digests` holds depends on whose it is."""

NAMED = {"event": "event", "e": "event", "span": "span", "s": "span"}
"""Variables whose `.name` is compared -> the sort of name."""


@dataclass(frozen=True)
class Use:
    """A name at a place of the source.

    Attributes:
        sort: as in the vocabulary; "field" is one of some event; "samples or digest" may be either.
        name: "" where the source does not tell. A field that is written has its event before it and a dot.
        file: of the package, relative to it.
        writes: whether it is written, or asked for.
    """

    sort: str
    name: str
    file: str
    line: int
    writes: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {'writes' if self.writes else 'asks for'} {self.sort} {self.name or '?'}"


@dataclass(frozen=True)
class _Raw:
    """An expression that is used as a name."""

    sort: str
    node: ast.expr | None
    scope: tuple[ast.AST, ...]
    file: str
    line: int
    writes: bool


def uses_of(sources: dict[str, str]) -> list[Use]:
    """All uses in some files, by path: those that a function makes of its parameter count at its callers."""
    trees = {file: ast.parse(source) for file, source in sources.items()}
    for file, tree in trees.items():
        tree.elsewhere = _imported(file, tree, trees)  # pyright: ignore[reportAttributeAccessIssue]
    calls: dict[str, list[tuple]] = defaultdict(list)
    for file, tree in trees.items():
        for call, scope in _walk(tree, ast.Call):
            calls[_called(call)].append((file, call, scope))
    raw = [use for file, tree in trees.items() for use in _raw_uses(file, tree)]
    found: list[Use] = []
    seen: set[tuple] = set()
    while raw:
        use = raw.pop()
        for text in texts(use.node, list(use.scope)) or {""}:
            if not text and not use.writes and _is_store(use.file):
                continue
            if isinstance(text, str):
                found.append(Use(use.sort, text, use.file, use.line, use.writes))
            elif (key := (use.sort, use.writes, text)) not in seen:
                seen.add(key)
                raw += _at_callers(use, text, calls)
    return sorted(set(found), key=lambda use: (use.file, use.line, use.sort, use.name))


def package_uses(package: Path) -> list[Use]:
    """All uses in a package."""
    return uses_of({path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))})


def _is_store(file: str) -> bool:
    """Whether a file moves what was recorded, under whatever names, and asks for none by itself."""
    return file.startswith("record/")


def _imported(file: str, tree: ast.Module, trees: dict[str, ast.Module]) -> dict[str, tuple[ast.Module, str]]:
    """By the name that a file gives it: (module, name there) of what it imports from other files of the package."""
    found = {}
    for node, _ in _walk(tree, ast.ImportFrom):
        if node.level:
            folder = "/".join(file.split("/")[: -node.level])
            there = f"{folder}/{(node.module or '').replace('.', '/')}".strip("/")
            for alias in node.names:
                module = trees.get(f"{there}.py") or trees.get(f"{there}/__init__.py".lstrip("/"))
                if module is not None:
                    found[alias.asname or alias.name] = (module, alias.name)
    return found


def _walk(tree: ast.AST, kind: type) -> list[tuple]:
    """(node, scope) of each node of a kind; one pass over a tree finds those of all kinds."""
    if not hasattr(tree, "by_kind"):
        by_kind: dict[type, list[tuple]] = {}
        _sort_by_kind(tree, (), by_kind)
        tree.by_kind = by_kind  # pyright: ignore[reportAttributeAccessIssue]
    return tree.by_kind.get(kind, [])  # pyright: ignore[reportAttributeAccessIssue]


def _sort_by_kind(node: ast.AST, scope: tuple[ast.AST, ...], found: dict[type, list[tuple]]) -> None:
    found.setdefault(type(node), []).append((node, scope))
    if isinstance(node, (ast.FunctionDef, ast.Module)):
        scope = (*scope, node)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        scope = (*scope, *node.generators)
    for child in ast.iter_child_nodes(node):
        _sort_by_kind(child, scope, found)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _at_callers(use: _Raw, parameter: Parameter, calls: dict[str, list[tuple]]) -> Iterator[_Raw]:
    """The same use at each call of the function, of what the call gives. A private function is called in its own file."""
    function = parameter.function
    first = function.args.args[0].arg if function.args.args else ""
    is_method = first in ("self", "cls")
    for file, call, scope in calls.get(function.name, ()):
        if function.name.startswith("_") and file != use.file:
            continue
        if isinstance(call.func, ast.Attribute) == is_method:
            node = given(call, parameter, is_method)
            if node is not None:
                yield _Raw(use.sort, node, scope, file, call.lineno, use.writes)


def _raw_uses(file: str, tree: ast.AST) -> Iterator[_Raw]:
    for call, scope in _walk(tree, ast.Call):
        if _is_probe(call.func, file):
            yield from _written(file, call, scope)
        else:
            yield from _asked_by_call(file, call, scope)
    for node, scope in _walk(tree, ast.Subscript):
        sort = _held(node.value, scope)
        if sort and not isinstance(node.slice, ast.Slice):
            yield _Raw(sort, node.slice, scope, file, node.lineno, False)
    for node, scope in _walk(tree, ast.Compare):
        yield from _compared(file, node, scope)
    yield from _handed_on(file, tree)


def _handed_on(file: str, tree: ast.AST) -> Iterator[_Raw]:
    """Methods of the probe that are not called here: who is given one calls it with names that are not seen."""
    called = {id(call.func) for call, _ in _walk(tree, ast.Call)}
    for node, scope in _walk(tree, ast.Attribute):
        if id(node) not in called and node.attr in METHODS and _is_probe(node, file):
            yield _Raw(METHODS[node.attr], None, scope, file, node.lineno, True)


def _is_probe(function: ast.expr, file: str) -> bool:
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    called = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return called.lstrip("_") == "probe" or (file == "record/probe.py" and called == "self" and function.attr == "event")


def _written(file: str, call: ast.Call, scope: tuple) -> Iterator[_Raw]:
    method = call.func.attr  # pyright: ignore[reportAttributeAccessIssue] - _is_probe has looked

    def raw(sort: str, node: ast.expr | None) -> _Raw:
        return _Raw(sort, node, scope, file, call.lineno, True)

    if method == "declare":
        yield from (raw("fact", ast.Constant(name)) for name in _keywords(call, scope))
    elif method == "batches":
        yield raw("span", ast.Constant("fetch"))
        yield raw("samples", next((k.value for k in call.keywords if k.arg == "name"), ast.Constant("train")))
    elif method in METHODS:
        yield raw(METHODS[method], call.args[0])
        if method == "event":
            for event in texts(call.args[0], list(scope)) or ():
                yield from (raw("field", ast.Constant(f"{event}.{name}")) for name in _keywords(call, scope))


def _held(holder: ast.expr, scope: tuple) -> str:
    """The sort of the names by which a part of a record holds values; "" for anything else."""
    if isinstance(holder, ast.Attribute):
        return HOLDERS.get(holder.attr, "")
    found = bindings(holder.id, list(scope)) if isinstance(holder, ast.Name) else []
    parts = [each for value in found for each in (value, getattr(value, "elt", value))]  # what a comprehension lists too
    return next((HOLDERS[part.attr] for part in parts if isinstance(part, ast.Attribute) and part.attr in HOLDERS), "")


def _keywords(call: ast.Call, scope: tuple) -> set[str]:
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    return named.union(*(keys(keyword.value, list(scope)) for keyword in call.keywords if keyword.arg is None))


def _asked_by_call(file: str, call: ast.Call, scope: tuple) -> Iterator[_Raw]:
    function = call.func
    if not isinstance(function, ast.Attribute) or not call.args:
        return
    holder = function.value
    if function.attr in ("fact", "scalar") and len(call.args) <= 2:
        yield _Raw(function.attr, call.args[0], scope, file, call.lineno, False)
    elif function.attr == "get" and (sort := _held(holder, scope)):
        yield _Raw(sort, call.args[0], scope, file, call.lineno, False)


def _compared(file: str, node: ast.Compare, scope: tuple) -> Iterator[_Raw]:
    left, right = node.left, node.comparators[0]
    if isinstance(node.ops[0], (ast.In, ast.NotIn)) and (sort := _held(right, scope)):
        yield _Raw(sort, left, scope, file, node.lineno, False)
    elif isinstance(left, ast.Attribute) and left.attr == "name" and (sort := NAMED.get(getattr(left.value, "id", ""))):
        for each in right.elts if isinstance(right, ast.Tuple) else [right]:
            yield _Raw(sort, each, scope, file, node.lineno, False)
    elif isinstance(left, ast.Set):
        for holder in {n.attr for n in ast.walk(right) if isinstance(n, ast.Attribute) and n.attr in HOLDERS}:
            for each in left.elts:
                yield _Raw(HOLDERS[holder], each, scope, file, node.lineno, False)
