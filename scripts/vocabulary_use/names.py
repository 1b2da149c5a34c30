"""What an expression of Python source can be, where it is a text: read off the syntax tree, without running anything."""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

Scope = list[ast.AST]
"""The functions and comprehensions around a place, from the module inwards."""


@dataclass(frozen=True)
class Parameter:
    """A text that the caller gives."""

    function: ast.FunctionDef
    name: str


def texts(node: ast.expr | None, scope: Scope) -> set[str | Parameter] | None:
    """All texts that an expression can be; None where it cannot be told, "" for one of several of which it cannot.

    A star stands for a part of a text that cannot be told.
    """
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp():
            return _union([texts(node.body, scope), texts(node.orelse, scope)])
        case ast.JoinedStr():
            return _joined(node, scope)
        case ast.Name(id=name):
            return _bound(name, scope)
        case ast.Subscript(slice=ast.Constant(value=int())):
            return _items(node.value, -1, scope)
    return None


def keys(node: ast.expr | None, scope: Scope) -> set[str]:
    """The keys of a mapping that is written out, or held by a name that was bound to such; those that can be told."""
    match node:
        case ast.Dict():
            inner = [keys(value, scope) for key, value in zip(node.keys, node.values, strict=True) if key is None]
            own = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            return own.union(*inner)
        case ast.Call(func=ast.Name(id="dict")):
            return {keyword.arg for keyword in node.keywords if keyword.arg}
        case ast.IfExp():
            return keys(node.body, scope) | keys(node.orelse, scope)
        case ast.BinOp(op=ast.BitOr()):
            return keys(node.left, scope) | keys(node.right, scope)
        case ast.Name(id=name):
            values = [value for part in scope for value in _assigned(name, part)]
            return set().union(*(keys(value, scope) for value in values if not _mentions(value, name)))
    return set()


def _union(found: list[set | None]) -> set:
    """All of them; "" for those that cannot be told."""
    return set().union(*({""} if each is None else each for each in found))


def _joined(node: ast.JoinedStr, scope: Scope) -> set[str | Parameter] | None:
    parts = []
    for part in node.values:
        can_be = texts(part.value if isinstance(part, ast.FormattedValue) else part, scope)
        parts.append({"*"} if can_be is None or any(isinstance(text, Parameter) or not text for text in can_be) else can_be)
    return {"".join(map(str, each)) for each in itertools.product(*parts)}


def _bound(name: str, scope: Scope) -> set[str | Parameter] | None:
    """What a name is bound to, innermost first: a loop over texts, an assignment, a parameter."""
    for part in reversed(scope):
        loops = [part] if isinstance(part, ast.comprehension) else _own(part, (ast.For,))
        found: list[set | None] = []
        for loop in loops:
            at = _place(loop.target, name)
            if at is not None:
                found.append(_items(loop.iter, at, scope))
        found += [texts(value, scope) for value in _assigned(name, part)]
        if found:
            return _union(found)
        if isinstance(part, ast.FunctionDef) and any(arg.arg == name for arg in _arguments(part)):
            return {Parameter(part, name)}
    where = _elsewhere(name, scope)
    return None if where is None else texts(*where)


def _elsewhere(name: str, scope: Scope) -> tuple[ast.Name, Scope] | None:
    """A name that the module imports from another file of the package, as it is bound there."""
    found = getattr(scope[0], "elsewhere", {}).get(name) if scope else None
    return None if found is None else (ast.Name(found[1]), [found[0]])


def _place(target: ast.expr, name: str) -> int | None:
    """Which part of what a loop goes over a name is; -1 for the whole."""
    if isinstance(target, ast.Name):
        return -1 if target.id == name else None
    if isinstance(target, ast.Tuple):
        return next((at for at, e in enumerate(target.elts) if isinstance(e, ast.Name) and e.id == name), None)
    return None


def _items(over: ast.expr, at: int, scope: Scope) -> set | None:
    match over:
        case ast.Tuple() | ast.List() | ast.Set():
            parts = [e.elts[at] if at >= 0 and isinstance(e, ast.Tuple) else e for e in over.elts]
            return _union([texts(part, scope) for part in parts])
        case ast.IfExp():
            return _union([_items(over.body, at, scope), _items(over.orelse, at, scope)])
        case ast.Subscript():
            return _items(over.value, at, scope)
        case ast.Call(func=ast.Name(id="enumerate")) if at == 1:
            return _items(over.args[0], -1, scope)
        case ast.Call(func=ast.Attribute(value=mapping, attr="items")) if at == 0:
            return keys(mapping, scope) or None
        case ast.Name(id=name):
            values = [value for part in scope for value in _assigned(name, part)]
            where = _elsewhere(name, scope)
            if not values and where is not None:
                return _items(where[0], at, where[1])
            return _union([_items(value, at, scope) for value in values]) if values else None
    return None


def _assigned(name: str, part: ast.AST) -> list[ast.expr]:
    found = []
    for node in _own(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            at = _place(target, name)
            if at is not None and node.value is not None:
                found += [node.value] if at < 0 else _elements(node.value, at)
    return found


def _elements(value: ast.expr, at: int) -> list[ast.expr]:
    """The part of a tuple that is unpacked."""
    if isinstance(value, ast.IfExp):
        return _elements(value.body, at) + _elements(value.orelse, at)
    return [value.elts[at]] if isinstance(value, ast.Tuple) and at < len(value.elts) else [value]


def bindings(name: str, scope: Scope) -> list[ast.expr]:
    """What a name is assigned, and what the lists are made of that it goes over, in the innermost place that says so."""
    for part in reversed(scope):
        found = _assigned(name, part)
        for loop in [part] if isinstance(part, ast.comprehension) else _own(part, (ast.For,)):
            if _place(loop.target, name) == -1:
                found += bindings(loop.iter.id, scope) if isinstance(loop.iter, ast.Name) else [loop.iter]
        if found:
            return found
    return []


def _own(part: ast.AST, kinds: tuple[type, ...]) -> list:
    """Nodes that give names a value, of some kinds, in a function's own body, or a module's; not in functions inside it."""
    if not isinstance(part, (ast.FunctionDef, ast.Module)):
        return []
    if not hasattr(part, "own"):
        part.own = list(_that_give(part))  # pyright: ignore[reportAttributeAccessIssue]
    return [node for node in part.own if isinstance(node, kinds)]  # pyright: ignore[reportAttributeAccessIssue]


def _that_give(part: ast.AST) -> Iterator[ast.AST]:
    left = list(ast.iter_child_nodes(part))
    while left:
        node = left.pop()
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            left += ast.iter_child_nodes(node)


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def given(call: ast.Call, parameter: Parameter, is_method: bool) -> ast.expr | None:
    """What a call gives for a parameter; its default where the call gives nothing."""
    for keyword in call.keywords:
        if keyword.arg == parameter.name:
            return keyword.value
    arguments = parameter.function.args
    positional = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)][is_method:]
    if parameter.name in positional and positional.index(parameter.name) < len(call.args):
        return call.args[positional.index(parameter.name)]
    return default(parameter)


def default(parameter: Parameter) -> ast.expr | None:
    """What a parameter is where nothing is given."""
    arguments = parameter.function.args
    positional = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    of = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    of |= {arg.arg: value for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value}
    return of.get(parameter.name)
