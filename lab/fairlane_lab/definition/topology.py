# SPDX-License-Identifier: Apache-2.0
"""A topology file with an experiment's changes: the final document of a scenario. Nothing is started; Mininet is not needed."""

from __future__ import annotations

import fnmatch
import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from fairlane_lab.definition.body import LinkChanges, PortChanges, TopologySpec, given
from fairlane_lab.definition.errors import Problem, place, unknown
from fairlane_lab.paths import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "mininet"))  # a folder of scripts, never a package: see docs/design.md

import fl_topology

FOLDER = REPOSITORY / "mininet" / "topologies"
Document = dict[str, Any]


@dataclass(frozen=True)
class Resolved:
    """A checked document and its names."""

    document: Document
    hosts: tuple[str, ...]
    links: tuple[str, ...]
    bottlenecks: tuple[str, ...]
    """Managed ports, as `s1-p3`."""


def resolve_topology(spec: TopologySpec) -> tuple[Resolved | None, list[Problem]]:
    """The document of `spec`, or what is wrong with it (paths below `topology`)."""
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    if spec.base not in names:
        return None, [Problem("topology.base", unknown("topology", spec.base, names))]
    try:
        base, link_names = _base(spec.base)
    except fl_topology.TopologyError as error:
        return None, [Problem("topology.base", str(error))]
    document: Document = json.loads(base)
    links: list[Document] = document["links"]
    problems: list[Problem] = []
    for pattern, changes in spec.links.items():
        found = [index for index, name in enumerate(link_names) if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            problems.append(Problem(place(("topology", "links", pattern)), unknown("link", pattern, link_names)))
        for index in found:
            _change_link(links[index], changes)
    ports = sorted(end for link in links for end in (link["a"], link["b"]) if "-p" in end)
    for name, changes in spec.ports.items():
        if name not in ports:
            problems.append(Problem(place(("topology", "ports", name)), unknown("switch port", name, ports)))
            continue
        _change_port(document["switches"], name, changes)
    if problems:
        return None, problems
    try:
        hosts, managed = _checked(json.dumps(document))
    except fl_topology.TopologyError as error:
        return None, [Problem("topology", str(error))]
    return Resolved(document, hosts, link_names, managed), []


@lru_cache(maxsize=64)
def _base(name: str) -> tuple[str, tuple[str, ...]]:
    path = FOLDER / f"{name}.json"
    document: Document = fl_topology.read_document(path, "topology")
    checked = fl_topology.check(document, str(path))
    document["links"] = [_as_object(link) for link in document["links"]]
    return json.dumps(document), tuple(link.name for link in checked.links)


@lru_cache(maxsize=4096)
def _checked(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    topology = fl_topology.check(json.loads(text))
    managed = [
        f"{switch}-p{port}"
        for switch, ports in topology.ports.items()
        for port, spec in ports.items()
        if spec.bottleneck
    ]
    return tuple(topology.hosts), tuple(managed)


def _as_object(link: Any) -> Document:
    if isinstance(link, dict):
        return cast(Document, link)
    names = ("a", "b", "delay", "bandwidth")
    entry: Document = dict(zip(names, link, strict=False))
    for name, unit in (("delay", "ms"), ("bandwidth", "Mbit")):  # the tutorials' bare numbers
        if isinstance(entry.get(name), int | float):
            entry[name] = f"{entry[name]}{unit}"
    return entry


def _change_link(link: Document, changes: LinkChanges) -> None:
    values = given(changes)
    if "rate_bps" in values:
        link["bandwidth"] = values["rate_bps"]
    for name in ("delay", "jitter"):
        if f"{name}_ms" in values:
            link[name] = round(values[f"{name}_ms"] * 1000)  # µs
    for name in ("loss", "ber"):
        if name in values:
            link[name] = values[name]


def _change_port(switches: Document, name: str, changes: PortChanges) -> None:
    switch, port = name.split("-p")
    spec = switches[switch].setdefault("ports", {}).setdefault(port, {})
    for key, value in given(changes).items():
        spec["rate" if key == "rate_bps" else key] = value
