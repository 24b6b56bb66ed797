# SPDX-License-Identifier: Apache-2.0
"""Markdown of the pages that are made from the code: tables, cells, fields of classes, keys of JSON schemas."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any


def kind_of(schema: dict[str, Any]) -> str:
    """What the value of a key is.

    Args:
        schema: The JSON schema of the value.

    Returns:
        Its type with its bounds, its words or examples.
    """
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return ", ".join(code(one) for one in schema["enum"])
    if "anyOf" in schema:
        kinds = [kind_of(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    examples = schema.get("examples")
    if examples:
        return f"such as {', '.join(code(one) for one in examples)}"
    bounds = [f"{word} {schema[key]}" for word, key in (("from", "minimum"), ("to", "maximum")) if key in schema]
    kind = str(schema.get("type", "any"))
    return " ".join([{"string": "text"}.get(kind, kind), *bounds])


def default(schema: dict[str, Any]) -> str:
    """The default of a key; empty where it has none.

    Args:
        schema: The JSON schema of the value.
    """
    default = schema.get("default")
    return (
        ""
        if default is None or default in ([], {})
        else code(str(default).lower() if isinstance(default, bool) else default)
    )


def fields(thing: type) -> Iterator[tuple[str, str, str]]:
    """Annotated attributes of a class with the strings below them.

    Args:
        thing: The class.

    Returns:
        Name, type and meaning of each.
    """
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    assert isinstance(tree, ast.ClassDef)
    for field, below in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and not field.target.id.startswith("_")
        ):
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            yield code(field.target.id), code(ast.unparse(field.annotation)), cell(str(text))


def table(heads: tuple[str, ...], rows: Any) -> Iterator[str]:
    """The lines of a table.

    Args:
        heads: The heads of its columns.
        rows: The cells of each row.
    """
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def code(text: object) -> str:
    """A text as code, in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """A text in one line, in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
