# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation site that are made from other things than the commands: P4Info, experiment files, senders, gNMI's leaves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from docs_markdown import cell, code, default, fields, kind_of, table
from fairlane_hosts.simulator import SIMULATOR_VARIANTS
from fairlane_hosts.variants import VARIANTS
from fairlane_lab import scenario
from fairlane_lab.definition import judging, points, schema
from fairlane_lab.definition.names import FLOW_METRICS, OBJECT_METRICS, PARAMETERS, RUN_METRICS
from fairlane_lab.programs.part import Name
from finsy.proto import p4i
from google.protobuf import text_format
from pydantic import BaseModel, TypeAdapter

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[str, str]:
    """Page of the site: its Markdown."""
    return {
        "reference/p4.md": "\n".join(programs()),
        "reference/experiments.md": "\n".join(experiments()),
        "reference/senders.md": "\n".join(senders()),
        "reference/gnmi.md": "\n".join(gnmi()),
    }


def programs() -> Iterator[str]:
    """Tables, digests and counters of each P4 program, from its P4Info."""
    yield "# P4Info of the programs\n\nMade from `p4src/compiled`. [The P4 programs](../p4.md) says what they do. Numbers are bits.\n"
    for path in sorted((ROOT / "p4src" / "compiled").glob("*.p4info.txtpb")):
        info = text_format.Parse(path.read_text(encoding="utf-8"), p4i.P4Info())
        yield f"## {path.name.partition('.')[0]}\n"
        yield from table(("table", "key", "actions", "entries"), (_p4_table(one, info) for one in info.tables))
        counters = [(code(one.preamble.alias), str(one.size)) for one in info.counters]
        yield from table(("counter", "cells"), counters)
        registers = [(code(one.preamble.alias), str(one.size)) for one in info.registers]
        if registers:
            yield from table(("register", "cells"), registers)
        digests = [(code(name), code(_members(one))) for name, one in info.type_info.structs.items()]
        if info.digests:
            yield from table(("digest", "fields"), digests)


def _p4_table(table: p4i.Table, info: p4i.P4Info) -> tuple[str, ...]:
    actions = {one.preamble.id: one for one in info.actions}
    keys = [
        f"`{one.name}` {p4i.MatchField.MatchType.Name(one.match_type).lower()} {one.bitwidth}"
        for one in table.match_fields
    ]
    called = [actions[one.id] for one in table.action_refs]
    texts = [
        code(f"{one.preamble.alias}({', '.join(f'{param.name}: {param.bitwidth}' for param in one.params)})")
        for one in called
        if one.preamble.alias != "NoAction"
    ]
    return code(table.preamble.alias), ", ".join(keys), ", ".join(texts), str(table.size)


def _members(struct: object) -> str:
    found = getattr(struct, "members", ())
    return ", ".join(f"{one.name}: {one.type_spec.bitstring.bit.bitwidth}" for one in found)


def experiments() -> Iterator[str]:
    """The keys of an experiment file, and the names of parameters and metrics."""
    yield "# Keys of an experiment file\n\nMade from the code. [Experiments](../experiments.md) shows them at work.\n"
    models = (
        schema.Experiment, schema.TopologySpec, schema.PortChanges, schema.Buffer, schema.LinkChanges, scenario.Flow, scenario.App, scenario.TcpOptions, scenario.Vc,
        schema.ChangeSpec, schema.RunSpec, schema.Starts, points.Draws, points.Spread, schema.Overrides, schema.SimOverrides, schema.MininetOverrides,
        judging.Expectation, judging.Relative, judging.PaperNumbers, judging.PaperFigure, judging.Note,
        judging.Bars, judging.Lines, judging.Series, judging.Cdf, judging.Heat,
    )  # fmt: skip
    for model in models:
        yield f"## {model.__name__}\n\n{cell(inspect.getdoc(model) or '')}\n"
        yield from _keys(model)
    for title, names in (
        ("Parameters", PARAMETERS),
        ("Metrics of a run", RUN_METRICS),
        ("Metrics of a group of flows", FLOW_METRICS),
        ("Metrics of an object of a program", OBJECT_METRICS),
    ):
        yield f"## {title}\n"
        yield from table(("name", "meaning", "shown in"), (_named(name, about) for name, about in names.items()))


def _keys(model: type) -> Iterator[str]:
    """Keys with type, range and default from a model or a dataclass, and meaning from the strings below its fields."""
    found = TypeAdapter(model).json_schema()
    meanings: dict[str, str] = {}
    written = schema.ChangeSpec if model is schema.LinkChanges else model  # a link's settings are those of a change
    for one in reversed(written.__mro__):
        if one is written or (issubclass(one, BaseModel) and one is not BaseModel):
            meanings |= {name: meaning for name, _, meaning in fields(one) if meaning}
    required = set(found.get("required", ()))
    rows = (
        (code(name), cell(kind_of(one)), "required" if name in required else "" if isinstance(one.get("default"), dict) else default(one), meanings.get(code(name), ""))
        for name, one in found.get("properties", {}).items()
    )  # fmt: skip
    yield from table(("key", "is", "default", "meaning"), rows)


def _named(name: str, about: Name) -> tuple[str, str, str]:
    return code(name), cell(about.label), about.unit


def senders() -> Iterator[str]:
    """What each TCP sender is and is not."""
    yield "# TCP senders\n\nMade from `hosts/fairlane_hosts/variants.py`; `fairlane hosts list` prints the same. [hosts](../rooms/hosts.md) says how they are built.\n"
    rows = (
        (code(one.name), code(one.congestion_control), cell(one.paper), cell(one.is_not), ".".join(map(str, one.kernel)), ", ".join((*one.programs, *one.receiver_programs)))
        for one in VARIANTS.values()
    )  # fmt: skip
    yield from table(
        ("sender", "name in the kernel", "defined in", "is not", "needs Linux", "host programs (its host's, its receivers')"), rows
    )  # fmt: skip
    yield f"In the simulator only: {', '.join(code(name) for name in SIMULATOR_VARIANTS)}.\n"


def gnmi() -> Iterator[str]:
    """The leaves that the switch serves, from the list that a test of the crate compares with its rows."""
    listed = ROOT / "switch" / "crates" / "gnmi" / "leaves.tsv"
    yield "# Leaves of gNMI\n\nMade from the rows of `switch/crates/gnmi/src/leaf.rs`. `{}` is `config` or `state`. [The switch](../switch.md#gnmi) says what Get, Set and Subscribe do.\n"
    found = (line.split("\t") for line in listed.read_text(encoding="utf-8").splitlines())
    rows = ((code(path), *more) for path, *more in found)
    yield from table(("path", "parts", "set", "on change"), rows)
