"""Arithmetic that is written down as text and computed: numbers, operators, comparisons and a few functions."""

import ast
import math
import operator
from collections.abc import Callable

FUNCTIONS: dict[str, Callable] = {
    **{name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "sin", "log2", "log10", "exp", "factorial")},
    **{"round": round, "abs": abs, "min": min, "max": max},
    "approx": lambda one, other, relative=0.01: math.isclose(one, other, rel_tol=relative),
}
CONSTANTS = {"pi": math.pi}
OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _compare(node: ast.Compare) -> bool:
    values = [_value(part) for part in (node.left, *node.comparators)]
    steps = zip(values, node.ops, values[1:], strict=False)
    return all(OPERATORS[type(sign)](left, right) for left, sign, right in steps)


READ: dict[type, Callable] = {
    ast.Expression: lambda node: _value(node.body),
    ast.Constant: lambda node: node.value,
    ast.Name: lambda node: CONSTANTS[node.id],
    ast.UnaryOp: lambda node: OPERATORS[type(node.op)](_value(node.operand)),
    ast.BinOp: lambda node: OPERATORS[type(node.op)](_value(node.left), _value(node.right)),
    ast.BoolOp: lambda node: isinstance(node.op, ast.And) and all(_value(part) for part in node.values),
    ast.Compare: _compare,
    ast.Call: lambda node: FUNCTIONS[node.func.id](*map(_value, node.args)),
}


def _value(node: ast.AST):
    try:
        return READ[type(node)](node)
    except KeyError as error:
        raise ValueError(f"{ast.unparse(node)}: only {', '.join([*FUNCTIONS, *CONSTANTS])} and arithmetic") from error


def holds(expression: str) -> bool:
    """Whether a comparison of numbers is true. Raises ValueError or SyntaxError for anything else."""
    tree = ast.parse(expression, mode="eval")
    asks = ast.Compare | ast.BoolOp | ast.Call
    if not isinstance(tree.body, asks):
        raise ValueError("no comparison")
    return _value(tree) is True


def constants(expression: str) -> set[float]:
    """The numbers that are written in an expression."""
    nodes = ast.walk(ast.parse(expression, mode="eval"))
    return {float(node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, int | float)}
