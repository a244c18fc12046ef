"""Settings that benchmark scripts work out from a run's lengths, concurrency and split: a small language of formulas.

Names, numbers, + - * //, comparisons, and, or, "A if CONDITION else B", min and max; nothing else.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import cache
from typing import Any

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
}
_FUNCTIONS: dict[str, Any] = {"min": min, "max": max}


@cache
def parsed(text: str, names: frozenset[str]) -> ast.expr | None:
    """Read a formula that uses at least one of the names.

    Parameters
    ----------
    text : str
        As in `accuracy/data/harness_settings.csv`.
    names : frozenset of str
        What a formula may refer to.

    Returns
    -------
    ast.expr or None
        None for what is no such formula: a number, a flag, a word.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tree if used & names and used <= names | set(_FUNCTIONS) else None


def value_of(tree: ast.expr, values: Mapping[str, float]) -> Any:
    """Work out a formula.

    Parameters
    ----------
    tree : ast.expr
        From `parsed`.
    values : mapping
        Name to number.

    Returns
    -------
    int, float or bool

    Raises
    ------
    ValueError
        When the formula holds something that the language lacks.
    """
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](value_of(left, values), value_of(right, values))
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [value_of(side, values) for side in (left, *others)]
            return all(_OPERATORS[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(value_of(part, values) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(value_of(part, values) for part in parts)
        case ast.IfExp(test=test, body=body, orelse=other):
            return value_of(body if value_of(test, values) else other, values)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(value_of(argument, values) for argument in arguments))
    raise ValueError(f"a formula of a benchmark script cannot hold {ast.unparse(tree)}")
