# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation site that are made from the code: commands, settings, links, metrics, Python API, YANG."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fairlane
import link_model
import typer
from docs_markdown import cell, code, default, fields, kind_of, table
from fairlane_controller.cli.main import make_app
from fairlane_controller.config.model import json_schema
from fairlane_controller.metrics.exporter import metrics_of
from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[str, str]:
    """Page of the site: its Markdown."""
    return {
        "reference/commands.md": "\n".join(commands()),
        "reference/settings.md": "\n".join(settings()),
        "reference/links.md": "\n".join(links()),
        "reference/metrics.md": "\n".join(metrics()),
        "reference/api.md": "\n".join(api()),
        "reference/yang.md": yang(),
    }


def commands() -> Iterator[str]:
    """Every command of `fairlane` with its arguments and options."""
    yield "# Commands\n\nEvery command of `fairlane`, made from the code. [The command `fairlane`](../cli.md) shows them at work.\n"
    root: Any = typer.main.get_command(make_app())
    yield from _command(root, root.make_context("fairlane", [], resilient_parsing=True), ["fairlane"])


def _command(command: Any, context: Any, path: list[str]) -> Iterator[str]:
    yield f"{'##' if len(path) <= 2 else '###'} {' '.join(path)}\n"
    yield _prose(command.help or "")
    rows = [
        command_line
        for one in command.params
        if not getattr(one, "hidden", False) and (command_line := one.get_help_record(context))
    ]
    rows = [row for row in rows if not row[0].endswith("--help")]
    if rows:
        yield from table(("argument or option", "meaning"), ((code(name), cell(meaning)) for name, meaning in rows))
    if hasattr(command, "list_commands"):
        below = [(name, command.resolve_command(context, [name])[1]) for name in command.list_commands(context)]
        for name, one in below:
            if one is not None and not one.hidden:
                yield from _command(one, context, [*path, name])


def _prose(text: str) -> str:
    """A help's paragraphs; its indented lines, which are examples, as code."""
    text = inspect.cleandoc(text).replace("\b", "")
    text = re.sub(
        r"(?:^ +\S.*\n?)+", lambda found: f"\n```text\n{inspect.cleandoc(found[0])}\n```\n", text, flags=re.MULTILINE
    )
    return text + "\n"


def settings() -> Iterator[str]:
    """What each program can be set to, and the tables of the configuration file."""
    yield "# Settings\n\nMade from the code: each program's settings of a port, then all tables of `fairlane.toml` ([how to use it](../configuration.md)).\n"
    for name in program_names():
        program = load_program(name)
        yield f"## {name}\n\n{program.title}\n"
        yield from _properties(program.Settings.model_json_schema())
        if program.reasons:
            yield from table(
                ("drop reason", "meaning"),
                ((code(reason.name), cell(reason.meaning)) for reason in program.reasons.values()),
            )
        if program.columns:
            columns = ((code(one.name), one.unit, cell(one.doc)) for one in program.columns)
            yield from table(("column", "unit", "meaning"), columns)
        for kind in program.kinds:
            columns = ((code(one.name), one.unit, cell(one.doc)) for one in kind.columns)
            yield from table((f"column of a {kind.name}", "unit", "meaning"), columns)
    schema = json_schema()
    yield "## The configuration file\n"
    yield from _properties(schema)
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            yield f"### {name}\n\n{cell(definition.get('description', ''))}\n"
            yield from _properties(definition)


def _properties(schema: dict[str, Any]) -> Iterator[str]:
    required = set(schema.get("required", ()))
    rows = [
        (code(name), kind_of(one), "required" if name in required else default(one), cell(one.get("description", "")))
        for name, one in schema.get("properties", {}).items()
    ]
    if rows:
        yield from table(("key", "is", "default", "meaning"), rows)


def links() -> Iterator[str]:
    """Every setting of one direction of a link."""
    yield "# Settings of a link\n\nThe settings of one direction, made from the code ([what they do](../links.md)). Topology files write `delay` and `jitter` with their units.\n"
    yield from _properties(link_model.schema())


def metrics() -> Iterator[str]:
    """Every metric of `fairlane watch metrics`, of all programs."""
    yield "# Metrics\n\nEvery metric for Prometheus, made from the code ([how to use them](../operate.md#metrics-and-alarms)). All have the label `topology` too: the name of the run state, `-` for switches without one.\n"
    found: dict[str, Any] = {**metrics_of(load_program(name) for name in program_names())}
    rows = (
        (code(name), metric.type, ", ".join(metric._labelnames[1:]) or "-", cell(metric.documentation))
        for name, metric in found.items()
    )
    yield from table(("metric", "type", "labels", "meaning"), rows)


def api() -> Iterator[str]:
    """What `import fairlane` has."""
    yield "# Python API\n\nEverything that `import fairlane` has, made from the code. [fairlane from Python](../python.md) shows it at work.\n"
    for name in sorted(fairlane.__all__, key=str.lower):
        thing: Any = getattr(fairlane, name)
        module = getattr(thing, "__module__", "") or ""
        if not module.startswith("fairlane") or not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        yield f"## {name}\n"
        yield from _documented(name, thing)
        if inspect.isclass(thing):
            for method, one in vars(thing).items():
                if not method.startswith("_") and inspect.isfunction(one) and one.__doc__:
                    yield f"### {name}.{method}\n"
                    yield from _documented(method, one)


def _documented(name: str, thing: Any) -> Iterator[str]:
    if inspect.isfunction(thing):
        yield f"```python\n{name}{_signature(thing)}\n```\n"
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^(Args|Returns|Raises|Yields):$", r"\n**\1**\n", text, flags=re.MULTILINE)
    yield re.sub(r"^ {4}(\S+?):", r"- `\1`:", text, flags=re.MULTILINE) + "\n"
    if inspect.isclass(thing):
        rows = list(fields(thing))
        if rows:
            yield from table(("field", "type", "meaning"), rows)


class _Written(str):
    """An annotation as it stands in the source, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    parameters = [
        one.replace(annotation=_Written(one.annotation)) if isinstance(one.annotation, str) else one
        for one in found.parameters.values()
    ]
    result = found.return_annotation
    return str(
        found.replace(parameters=parameters, return_annotation=_Written(result) if isinstance(result, str) else result)
    )


def yang() -> str:
    """The YANG module of what OpenConfig has no leaf for."""
    module = ROOT / "switch" / "yang" / "fairlane-port.yang"
    return (
        f"# YANG\n\n`{module.relative_to(ROOT)}`: what `fairlane-switch` serves over gNMI for which OpenConfig has no leaf. "
        "[Leaves of gNMI](gnmi.md) lists the paths, [the operator's guide](../operate.md#ports-and-queues) shows the commands.\n\n"
        f"```text\n{module.read_text(encoding='utf-8')}```\n"
    )
