"""Settings of a training that a script is given and does not read: options of its command line, arguments of functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TRAINING = re.compile(
    r"^(lr|learning_rate|base_lr|max_lr|weight_decay|wd|momentum|grad_clip|clip|clip_grad|clip_norm|clip_grad_norm"
    r"|max_norm|max_grad_norm|gradient_clipping|grad_clip_norm|warmup|warmup_(steps|epochs|iters|ratio)"
    r"|(grad|gradient)_accum(ulation)?(_steps)?|accum(ulation)?_steps|accum(ulate)?|label_smoothing|ema_decay)$"
)
"""Names whose value changes what is trained."""

_GIVEN_UP = re.compile(r"unused|ignored|deprecat|compat|no effect|obsolete|reserved|hidden=True|expose_value=False", re.I)


@dataclass(frozen=True)
class Unread:
    """A setting that nothing reads: an "option", an "argument" or a "field".

    Attributes:
        function: whose argument it is, or the class whose field.
        alone: whether what it is given is used for nothing else.
    """

    file: str
    line: int
    kind: str
    name: str
    function: str = ""
    alone: bool = True


def unread(trees: Mapping[str, ast.Module]) -> list[Unread]:
    """All of a script's settings that nothing reads, by the sources of its own modules."""
    return [*_options(trees), *_arguments(trees)]


# Options


def _options(trees: Mapping[str, ast.Module]) -> Iterator[Unread]:
    walked = [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]
    own = owned(node for _, node in walked)
    if any(_hands_all_on(node, own) for _, node in walked):
        return
    read = {name for _, node in walked for name in reads(node)}
    for file, node in walked:
        option = _option(node)
        if option and TRAINING.match(option) and option not in read:
            yield Unread(file, node.lineno, "option", option)  # pyright: ignore[reportAttributeAccessIssue]


def owned(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of a script's own functions, and of classes that say themselves what they do with what they are given."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
            isinstance(node, ast.ClassDef) and "__init__" in (getattr(part, "name", "") for part in node.body)
        ):
            found.add(node.name)
    return found


def said_to_be_unread(text: str) -> bool:
    """Whether what is written of a setting says that it has no effect."""
    return bool(_GIVEN_UP.search(text))


def _option(node: ast.AST) -> str:
    """What `parser.add_argument` calls an option's value; empty for another node, and for one that is said to be unread."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
        return ""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    help_ = given.get("help")
    if isinstance(help_, ast.Attribute) or said_to_be_unread(str(getattr(help_, "value", ""))):
        return ""
    if "dest" in given:
        return str(getattr(given["dest"], "value", ""))
    names = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = next((name for name in names if name.startswith("--")), names[0] if names else "")
    return long.lstrip("-").replace("-", "_")


def reads(node: ast.AST) -> list[str]:
    """Names that a node takes out of something: as an attribute, or as any word in quotes that is no option itself."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return [node.attr]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.startswith("-"):
        return [node.value]
    return []


def _hands_all_on(node: ast.AST, own: set[str]) -> bool:
    """Whether options are handed on all together: `**vars(args)`, `args.__dict__`, all of them to a library."""
    if isinstance(node, ast.Call):
        called = name_of(node.func)
        if called in ("vars", "asdict", "_get_kwargs", "HfArgumentParser", "parse_args_into_dataclasses"):
            return True
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        of_super = called == "__init__"  # of a class that may be a library's
        return (called not in own | SHOWN or of_super) and any(getattr(one, "id", "") in SPACES for one in given)
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


SHOWN = {"print", "pprint", "str", "repr", "format", "info", "debug", "getattr", "hasattr", "setattr", "isinstance"}
"""Calls that only look at them."""

SPACES = ("args", "opt", "opts", "options", "cfg", "config", "hparams", "params", "flags")


# Arguments


def _arguments(trees: Mapping[str, ast.Module]) -> Iterator[Unread]:
    for file, tree in trees.items():
        for node, bases in _functions(tree):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            asked = [name for name in names if TRAINING.match(name)]
            if not asked or bases or node.decorator_list or _is_stub(node) or not _only_called(node.name, trees.values()):
                continue
            used = {one.id for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name)}
            if "locals" in used:
                continue
            for name in asked:
                if name not in used:
                    alone = _is_alone(node, names.index(name), name, list(trees.values()))
                    yield Unread(file, node.lineno, "argument", name, node.name, alone)


def _functions(tree: ast.Module) -> Iterator[tuple[Any, bool]]:
    """(function, whether it is a method of a class that has bases, which may want its arguments)."""
    methods = {id(part): bool(node.bases) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, methods.get(id(node), False)


def _is_stub(node: ast.FunctionDef) -> bool:
    """Whether a function does nothing, or only raises."""
    return all(
        isinstance(part, (ast.Pass, ast.Raise)) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )


def _only_called(name: str, trees: Iterable[ast.Module]) -> bool:
    """Whether a function is called, and given to nobody else, who would say which arguments it has."""
    called = mentioned = 0
    for tree in trees:
        for node in ast.walk(tree):
            called += isinstance(node, ast.Call) and name_of(node.func) == name
            mentioned += name_of(node) == name
    return (called > 0 and called == mentioned) or name == "__init__"


def _is_alone(function: Any, place: int, name: str, trees: list[ast.Module]) -> bool:
    """Whether each call gives an argument a number, or something that the script reads for this alone."""
    place -= bool(function.args.args) and function.args.args[0].arg == "self"
    walked = [node for tree in trees for node in ast.walk(tree)]
    calls = [node for node in walked if isinstance(node, ast.Call) and name_of(node.func) == function.name]
    given = [_given(call, place, name) for call in calls]
    return bool(given) and all(one is not None and _is_read_once(one, walked) for one in given)


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return named if named is not None else call.args[place] if place < len(call.args) else None


def _is_read_once(value: ast.expr, walked: list[ast.AST]) -> bool:
    if isinstance(value, ast.Constant):
        return True
    of = name_of(value)
    loads = (n for n in walked if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load))
    return bool(of) and sum(name_of(one) == of for one in loads) == 1


def name_of(node: ast.AST) -> str:
    """The last part of a name: of `a.b.c`, c; empty for what is no name."""
    return getattr(node, "attr", getattr(node, "id", ""))
