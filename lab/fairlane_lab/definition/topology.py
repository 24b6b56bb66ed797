# SPDX-License-Identifier: Apache-2.0
"""A topology file with an experiment's changes: the final document of a scenario. Nothing is started; Mininet is not needed."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import is_file
from fairlane_controller.program.contract import Program
from fairlane_switch.link_control import effects
from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import TOPOLOGIES

from fairlane_lab.definition.schema import Body, ChangeSpec, PortChanges
from fairlane_lab.problems import Problem, place, unknown
from fairlane_lab.scenario import with_given

Document = dict[str, Any]


@dataclass(frozen=True)
class Resolved:
    """A checked document and its names."""

    document: Document
    checked: fl_topology.Topology
    """The document, read."""
    file: Path

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.checked.links)

    def with_scheduler(self, program: Program) -> Resolved:
        """The same with the scheduler that a program needs; see `fl_topology.with_scheduler`. Raises TopologyError."""
        checked = fl_topology.with_scheduler(self.checked, program)
        if checked == self.checked:
            return self
        document: Document = json.loads(json.dumps(self.document))
        for (switch, port), spec in fl_topology.managed_ports(checked).items():
            own = document["switches"][switch].setdefault("ports", {}).setdefault(str(port), {})
            own.update(scheduler=spec.scheduler, queues=spec.queues)
        return replace(self, document=document, checked=checked)


def topology_path(base: str, beside: Path) -> Path:
    """The file of `topology.base`, a name or a path; `beside` is that path as seen from the experiment's file."""
    return beside if "/" in base or base.endswith(".json") else TOPOLOGIES / f"{base}.json"


def resolve_topology(body: Body, path: Path) -> tuple[Resolved | None, list[Problem]]:
    """The document of a point's `[topology]`, whose file is `path`; or what is wrong with it (paths below `topology`)."""
    spec = body.topology
    if not is_file(path):
        names = sorted(each.stem for each in TOPOLOGIES.glob("*.json"))
        named = path.parent == TOPOLOGIES
        text = unknown("topology", spec.base, names) if named else f"there is no file {path}"
        return None, [Problem("topology.base", text)]
    try:
        base, link_names = _base(path)
    except fl_topology.TopologyError as error:
        return None, [Problem("topology.base", str(error))]
    document: Document = json.loads(base)
    if any(with_given(body.tcp, flow).ipv6 for flow in body.flows):
        for host in document["hosts"].values():
            host.setdefault("ipv6", fl_topology.default_ipv6(host["ip"]))
    links: list[Document] = document["links"]
    ports = sorted(end for link in links for end in (link["a"], link["b"]) if "-p" in end)
    chosen = {pattern: fnmatch.filter(link_names, pattern) for pattern in spec.links}
    unknown_names = [(("links", each), unknown("link", each, link_names)) for each in chosen if not chosen[each]]
    unknown_names += [
        (("ports", each), unknown("switch port", each, ports)) for each in spec.ports if each not in ports
    ]
    if unknown_names:
        return None, [Problem(place(("topology", *path)), message) for path, message in unknown_names]
    for pattern, names in chosen.items():
        for name, link in zip(link_names, links, strict=True):
            if name in names:
                spec.links[pattern].apply_to(link)
    try:
        checked = checked_topology(json.dumps(document))
        for name, changes in spec.ports.items():
            link = next(link for link, ends in zip(checked.links, links, strict=True) if name in (ends["a"], ends["b"]))
            _change_port(document["switches"], name, changes, link, sum(flow.connections for flow in body.flows))
        return Resolved(document, checked_topology(json.dumps(document)), path), []
    except fl_topology.TopologyError as error:
        return None, [Problem("", str(error))]


def change_problems(topology: Resolved, changes: Sequence[ChangeSpec]) -> Iterator[Problem]:
    """Changes whose settings do not fit those in force by then, the topology file's own changes among them."""
    if not changes or any(change.link not in topology.links for change in changes):
        return
    first = len(topology.checked.changes)
    found = fl_changes.change_problems([*topology.checked.changes, *changes], topology.checked.links)
    for index, key, message in found:
        yield Problem(f"changes[{index - first}].{key}" if index >= first else "topology.base", message)


def with_wire(topology: Resolved, changes: Sequence[ChangeSpec]) -> Document:
    """The document, with the wire on links that only changes need it for."""
    links = [
        {**link, "emulated": True}
        if not read.is_emulated
        and any(change.link == read.name and effects(change.change, read).needs_wire for change in changes)
        else link
        for link, read in zip(topology.document["links"], topology.checked.links, strict=True)
    ]
    return {**topology.document, "links": links}


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


def _change_port(switches: Document, name: str, changes: PortChanges, link: fl_topology.Link, connections: int) -> None:
    switch, port = name.split("-p")
    spec = switches[switch].setdefault("ports", {}).setdefault(port, {})
    values = changes.model_dump(exclude={"buffer", "calendar_packets"}, exclude_none=True)
    if "rate_bps" in values:
        values["rate"] = values.pop("rate_bps")
    spec.update(values)
    if changes.buffer is not None:
        spec["queue_packets"] = changes.buffer.queue_packets(link, connections)
    if changes.calendar_packets is not None and spec.get("scheduler") == "calendar":
        spec["queue_packets"] = changes.calendar_packets
