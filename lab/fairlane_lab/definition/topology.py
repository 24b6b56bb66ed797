# SPDX-License-Identifier: Apache-2.0
"""A topology file with an experiment's changes: the final document of a scenario. Nothing is started; Mininet is not needed."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import is_file
from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import TOPOLOGIES

from fairlane_lab.definition.body import PortChanges, TopologySpec, explicit_values
from fairlane_lab.definition.links import ChangeSpec
from fairlane_lab.problems import Problem, place, unknown

Document = dict[str, Any]


@dataclass(frozen=True)
class Resolved:
    """A checked document and its names."""

    document: Document
    checked: fl_topology.Topology
    """The document, read."""
    links: tuple[str, ...]
    file: Path

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.checked.hosts)

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """Managed ports, as `s1-p3`."""
        ports = self.checked.ports.items()
        return tuple(f"{switch}-p{port}" for switch, own in ports for port, spec in own.items() if spec.bottleneck)


def resolve_topology(spec: TopologySpec, folder: Path) -> tuple[Resolved | None, list[Problem]]:
    """The document of `spec`, or what is wrong with it (paths below `topology`). A path is relative to `folder`."""
    is_path = "/" in spec.base or spec.base.endswith(".json")
    path = folder / spec.base if is_path else TOPOLOGIES / f"{spec.base}.json"
    if not is_file(path):
        names = sorted(path.stem for path in TOPOLOGIES.glob("*.json"))
        text = f"there is no file {path}" if is_path else unknown("topology", spec.base, names)
        return None, [Problem("topology.base", text)]
    try:
        base, link_names = _base(path)
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
            changes.apply_to(links[index])
    ports = sorted(end for link in links for end in (link["a"], link["b"]) if "-p" in end)
    for name, changes in spec.ports.items():
        if name not in ports:
            problems.append(Problem(place(("topology", "ports", name)), unknown("switch port", name, ports)))
            continue
        _change_port(document["switches"], name, changes)
    if problems:
        return None, problems
    try:
        checked = checked_topology(json.dumps(document))
    except fl_topology.TopologyError as error:
        return None, [Problem("topology", str(error))]
    return Resolved(document, checked, link_names, path), []


def change_problems(topology: Resolved, changes: Sequence[ChangeSpec]) -> list[Problem]:
    """Changes whose settings do not fit those in force by then, the topology file's own changes among them."""
    if not changes or any(change.link not in topology.links for change in changes):
        return []
    first = len(topology.checked.changes)
    found = fl_changes.change_problems([*topology.checked.changes, *changes], topology.checked.links)
    return [
        Problem(place(("changes", index - first, key)) if index >= first else "topology.base", message)
        for index, key, message in found
    ]


def with_wire(topology: Resolved, changes: Sequence[ChangeSpec]) -> Document:
    """The document, with the wire on links that only changes need it for."""
    document = topology.document
    needed = [
        not link.is_emulated and any(change.link == link.name and _needs_wire(change, link) for change in changes)
        for link in topology.checked.links
    ]
    if not any(needed):
        return document
    links = [{**link, "emulated": True} if need else link for link, need in zip(document["links"], needed, strict=True)]
    return {**document, "links": links}


def _needs_wire(change: ChangeSpec, link: fl_topology.Link) -> bool:
    return change.needs_wire or 0 in (link.a.port, link.b.port)


@lru_cache(maxsize=64)
def _base(path: Path) -> tuple[str, tuple[str, ...]]:
    document: Document = fl_topology.read(path)
    checked = fl_topology.check(document, str(path))
    document["links"] = [_as_object(link) for link in document["links"]]
    return json.dumps(document), tuple(link.name for link in checked.links)


@lru_cache(maxsize=4096)
def checked_topology(text: str) -> fl_topology.Topology:
    """A document in JSON, read: the cells of a sweep have few different ones. Raises TopologyError."""
    return fl_topology.check(json.loads(text))


def _as_object(link: Any) -> Document:
    if isinstance(link, dict):
        return cast(Document, link)
    names = ("a", "b", "delay", "bandwidth")
    entry: Document = dict(zip(names, link, strict=False))
    for name, unit in (("delay", "ms"), ("bandwidth", "Mbit")):  # the tutorials' bare numbers
        if isinstance(entry.get(name), int | float):
            entry[name] = f"{entry[name]}{unit}"
    return entry


def _change_port(switches: Document, name: str, changes: PortChanges) -> None:
    switch, port = name.split("-p")
    spec = switches[switch].setdefault("ports", {}).setdefault(port, {})
    for key, value in explicit_values(changes).items():
        spec["rate" if key == "rate_bps" else key] = value
