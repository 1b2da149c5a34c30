"""Settings that are declared and not parsed by hand: parameters of a command (click, typer, fire), fields of a dataclass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .settings_read import SHOWN, SPACES, TRAINING, Unread, name_of, owned, reads, said_to_be_unread

_COMMAND = ("command", "callback", "option", "argument", "group")
_RUNS = ("run", "Fire")
_WHOLE = {"vars", "asdict", "astuple", "fields", "replace", "dumps", "dump", "save", "append", "OmegaConf", "structured"}
"""Calls that take a settings object as a whole: which of its fields they read is not seen."""


def declared_and_unread(trees: Mapping[str, ast.Module]) -> list[Unread]:
    """All declared settings of a training that nothing reads, by the sources of a script's own modules."""
    walked = [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]
    return [*_of_commands(walked), *_of_dataclasses(walked)]


# Commands


def _of_commands(walked: list[tuple[str, ast.AST]]) -> Iterator[Unread]:
    run = {one for _, node in walked for one in _given_to_run(node)}
    for file, node in walked:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        options = [one for one in node.decorator_list if name_of(getattr(one, "func", one)) in _COMMAND]
        if len(options) < len(node.decorator_list) or not (options or node.name in run):
            continue  # what another decorator does with the arguments is not known
        used = {one.id for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name)}
        if used & {"locals", "get_current_context", "ctx"}:
            continue
        for name, line, text in _parameters(node, options):
            if TRAINING.match(name) and name not in used and not said_to_be_unread(text):
                yield Unread(file, line, "option", name)


def _given_to_run(node: ast.AST) -> list[str]:
    """Functions that `typer.run(main)` or `fire.Fire(main)` is given."""
    if not isinstance(node, ast.Call) or name_of(node.func) not in _RUNS or not isinstance(node.func, ast.Attribute):
        return []
    return [name_of(one) for one in node.args] if name_of(node.func.value) in ("typer", "fire") else []


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, options: list[ast.expr]) -> Iterator[tuple[str, int, str]]:
    """(name, line, all that is written of it) of each parameter of a command."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = dict(zip(reversed([one.arg for one in plain]), reversed(given.defaults), strict=False))
    defaults |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is not None}
    for one in [*plain, *given.kwonlyargs]:
        option = next((option for option in options if one.arg in _names(option)), None)
        parts = [part for part in (option, one.annotation, defaults.get(one.arg)) if part is not None]
        yield one.arg, (option or one).lineno, " ".join(map(ast.unparse, parts))


def _names(option: ast.expr) -> list[str]:
    """What a decorator of click may call its parameter."""
    words = [one.value for one in getattr(option, "args", []) if isinstance(one, ast.Constant)]
    return [word.lstrip("-").partition("/")[0].replace("-", "_").lower() for word in words if isinstance(word, str)]


# Dataclasses


@dataclass(frozen=True)
class _Settings:
    """A dataclass of the script, and its fields that set a training: (name, line)."""

    file: str
    name: str
    fields: tuple[tuple[str, int], ...]
    all_fields: frozenset[str]


def _of_dataclasses(walked: list[tuple[str, ast.AST]]) -> Iterator[Unread]:
    found = [one for file, node in walked for one in _settings(file, node)]
    if not found:
        return
    own = owned(node for _, node in walked)
    read = {name for _, node in walked for name in reads(node)}
    for settings in found:
        unread = [(name, line) for name, line in settings.fields if name not in read]
        if not unread or not _is_made(settings, walked) or _goes_whole(settings, walked, own):
            continue
        here = {name for file, node in walked if file == settings.file for name in reads(node)}
        alone = bool(here & settings.all_fields)  # else a module of settings, which other scripts may share
        for name, line in unread:
            yield Unread(settings.file, line, "field", name, settings.name, alone)


def _settings(file: str, node: ast.AST) -> Iterator[_Settings]:
    if not isinstance(node, ast.ClassDef) or node.bases or node.keywords:
        return
    if not any(name_of(getattr(one, "func", one)) == "dataclass" for one in node.decorator_list):
        return
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    asked = tuple(
        (name_of(one.target), one.lineno)
        for one in fields
        if one.value is not None and TRAINING.match(name_of(one.target)) and not said_to_be_unread(ast.unparse(one))
    )
    if asked:
        yield _Settings(file, node.name, asked, frozenset(name_of(one.target) for one in fields))


def _is_made(settings: _Settings, walked: list[tuple[str, ast.AST]]) -> bool:
    """Whether the script makes one, or has a parser make one."""
    return any(
        isinstance(node, ast.Call) and (name_of(node.func) == settings.name or settings.name in _mentioned(node.args))
        for _, node in walked
    ) or any(
        isinstance(node, ast.Call) and settings.name in _mentioned(keyword.value for keyword in node.keywords)
        for _, node in walked
    )


def _mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    return {name_of(one) for node in nodes for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))}


def _goes_whole(settings: _Settings, walked: list[tuple[str, ast.AST]], own: set[str]) -> bool:
    """Whether an object of the class is given to what may read any of its fields: a library, a function that lists them."""
    names = _held_as(settings, walked)
    for _, node in walked:
        if isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__dataclass_fields__"):
            return True
        if isinstance(node, ast.Call) and _is_given(node, names, settings.name, own):
            return True
    return False


def _is_given(call: ast.Call, names: set[str], name: str, own: set[str]) -> bool:
    called, of_super = name_of(call.func), "super()" in ast.unparse(call.func)
    if called in own | SHOWN and called not in _WHOLE and not of_super:
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    given = [one.value if isinstance(one, ast.Starred) else one for one in given]
    made = any(isinstance(one, ast.Call) and name_of(one.func) == name for one in given)
    return made or any(isinstance(one, (ast.Name, ast.Attribute)) and name_of(one) in names for one in given)


def _held_as(settings: _Settings, walked: list[tuple[str, ast.AST]]) -> set[str]:
    """Names under which objects of the class go: usual ones, what is assigned, parameters with it as their annotation."""
    held = {*SPACES}
    order = _order(settings.name, walked)
    for _, node in walked:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = _mentioned([node.value])
            parsed = any("into_dataclasses" in one or re.match("parse_(json|yaml|dict)", one) for one in called)
            for target in node.targets:
                if parsed and isinstance(target, ast.Tuple):
                    known = order if order is not None and order < len(target.elts) else None
                    held |= {name_of(one) for at, one in enumerate(target.elts) if known is None or at == known}
                elif parsed or settings.name in called:
                    held.add(name_of(target))
        elif isinstance(node, ast.arg) and settings.name in _mentioned([node.annotation or node]):
            held.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and settings.name in _mentioned([node.annotation]):
            held.add(name_of(node.target))
    return held - {""}


def _order(name: str, walked: list[tuple[str, ast.AST]]) -> int | None:
    """The place of a class among those that HfArgumentParser is given; None where that is not seen."""
    for _, node in walked:
        if isinstance(node, ast.Call) and name_of(node.func) == "HfArgumentParser" and node.args:
            first = node.args[0]
            classes = [name_of(one) for one in first.elts] if isinstance(first, (ast.Tuple, ast.List)) else [name_of(first)]
            return classes.index(name) if name in classes else None
    return None
