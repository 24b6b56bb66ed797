# SPDX-License-Identifier: Apache-2.0
"""References to parameters in an experiment file: `"$rate_bps"`, `"link of $rate_bps"`, and small sums: `"= $flows / 2"`.

`"$name"` alone keeps the parameter's type; inside other text it is written out. A text that starts with `=` is a sum of
numbers and parameters (+ - * /, brackets, `min`, `max` and `round`); a whole result is an integer. `$$` is a dollar.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from fairlane_lab.problems import Problem, place, unknown

_REFERENCE = re.compile(r"\$(\$|[a-z][a-z0-9_]*)")
_WHOLE = re.compile(r"^\$[a-z][a-z0-9_]*$")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
}


_FUNCTIONS: dict[tuple[str, int], Callable[..., float]] = {("min", 2): min, ("max", 2): max, ("round", 1): round}
"""By name and number of arguments."""


class _BadReferenceError(ValueError):
    pass


def resolve(
    value: Any, params: Mapping[str, Any], path: tuple[str | int, ...], problems: list[Problem], used: set[str]
) -> Any:
    """A copy of a TOML value with its references filled in; what cannot be is added to `problems`, what was used to `used`."""
    if isinstance(value, Mapping):
        table: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {name: resolve(item, params, (*path, name), problems, used) for name, item in table.items()}
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [resolve(item, params, (*path, index), problems, used) for index, item in enumerate(items)]
    if not isinstance(value, str):
        return value
    try:
        return _text(value, params, used)
    except _BadReferenceError as error:
        problems.append(Problem(place(path), f"got {value!r}; {error}"))
        return value


def _text(text: str, params: Mapping[str, Any], used: set[str]) -> Any:
    def look_up(name: str) -> Any:
        if name not in params:
            raise _BadReferenceError(unknown("parameter", name, params))
        used.add(name)
        return params[name]

    if _WHOLE.match(text):
        return look_up(text[1:])
    if text.startswith("="):
        return _sum(text[1:], look_up)
    return _REFERENCE.sub(lambda found: "$" if found[1] == "$" else str(look_up(found[1])), text)


def _sum(text: str, look_up: Callable[[str], Any]) -> float | int:
    try:
        tree = ast.parse(_REFERENCE.sub(r"\1", text).strip(), mode="eval").body
    except SyntaxError:
        raise _BadReferenceError(
            "not a sum of numbers and $parameters with + - * /, brackets, min, max and round"
        ) from None
    try:
        value = _evaluate(tree, look_up)
    except ZeroDivisionError:
        raise _BadReferenceError("divides by zero") from None
    rounded = round(value, 9)
    return int(rounded) if rounded == int(rounded) else rounded


def _evaluate(node: ast.expr, look_up: Callable[[str], Any]) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left, look_up), _evaluate(node.right, look_up))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, look_up)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get((node.func.id, len(node.args)))
        if function is not None:
            return function(*(_evaluate(argument, look_up) for argument in node.args))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name):
        value = look_up(node.id)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _BadReferenceError(f"parameter {node.id!r} is {value!r}, not a number")
        return value
    raise _BadReferenceError("not a sum of numbers and $parameters with + - * /, brackets, min, max and round")
