# SPDX-License-Identifier: Apache-2.0
"""The topology file: what it may say, and a clear error when it says something else.

A superset of p4lang/tutorials' `topology.json` (hosts with ip, mac and commands; switches; links `["h1", "s1-p1", latency, bandwidth]`).
What we add: a link may be an object with emulated behaviour (`fl_link_spec.py`) that changes over time, a switch may set rate and queue per port.
Nothing is started here; `fl_net.py` builds what `Topology` describes.
"""

from __future__ import annotations

import ipaddress
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import short
from fairlane_switch.link_presets import PRESETS
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_topology.changes import change_problems
from fairlane_topology.links import Direction, LinkChange, LinkSpec, Mtu, Rate, Strict, with_trace_paths

CPU_PORT = 510
QUOTED = 120
"""Characters of a line that an error shows."""
DEFAULT_QUEUE_PACKETS = 1000
DEFAULT_MTU = 1500
GATEWAY_MAC = "08:00:00:00:ff:01"
"""What hosts send to: the switch rewrites it (the P4 programs route; they do not bridge)."""

_NODE = r"[hs][0-9]{1,4}"
_ENDPOINT = re.compile(rf"^({_NODE})(?:-p([0-9]{{1,3}}))?$")


class TopologyError(ValueError):
    """A topology that cannot be built; the text names the file, the place in it (a JSON pointer) and what is allowed."""


Scheduler = Literal["strict", "wrr", "drr", "calendar", "fq"]
Cells = Annotated[int, Field(ge=1, le=1_000_000_000)]


class PortSpec(Strict):
    """A switch port's traffic manager: rate in bit/s on the line (0: unlimited), scheduler, and what may wait."""

    rate_bps: Rate | None = Field(default=None, validation_alias="rate")
    link_layer: Literal["none", "ethernet", "atm"] = "none"
    """What a frame takes on the line: its bytes, an Ethernet frame with all around it, 53 bytes for each of its cells."""
    scheduler: Scheduler = "strict"
    queues: int = Field(default=8, ge=1, le=4096)
    queue_packets: int = Field(default=DEFAULT_QUEUE_PACKETS, ge=1, le=1_000_000)
    queue_cells: Cells | None = None
    """Cells that may wait in each queue; None: no limit."""
    port_cells: Cells | None = None
    """Cells that may wait in all queues together; None: no limit."""
    bottleneck: bool = False
    """The controller measures this port and sets its threshold."""
    far_side: bool = False
    """The far side of a satellite link, for a program that has some."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What the switch's program is to have set there (`Program.Settings`); see `check_settings`."""


class HostSpec(Strict):
    """A host: its address, and optionally the sender variant that its sockets use."""

    ip: str
    mac: str | None = None
    ipv6: str | None = None
    mtu: Mtu | None = None
    """Longest IP packet that it sends and takes, bytes; left out: its link's, else 1500."""
    commands: list[str] = Field(default_factory=list)
    variant: str | None = None


class SwitchSpec(Strict):
    """A switch: optionally its own program and entries, and its ports' traffic manager."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, populate_by_name=True
    )  # tutorials' files carry mac, … that need no action here
    runtime_json: str | None = None
    """p4lang/tutorials' file of entries (`fl_runtime.py`): the switch runs its program and is left alone by the controller."""
    program: str | None = None
    """The tutorials' compiled program; only beside `runtime_json`, whose `bmv2_json` says it too."""
    cli_input: str | None = None
    """The tutorials' commands for simple_switch_CLI: refused when the topology is started."""
    ports: dict[str, PortSpec] = Field(default_factory=dict)


class _File(Strict):
    hosts: dict[Annotated[str, Field(pattern=r"^h[0-9]{1,4}$")], HostSpec]
    switches: dict[Annotated[str, Field(pattern=r"^s[0-9]{1,4}$")], SwitchSpec]
    links: list[Any]
    changes: list[Any] = Field(default_factory=list)
    name: str = ""
    description: str = ""


@dataclass(frozen=True)
class Endpoint:
    """One end of a link: a node and its port (a host's port is 0)."""

    node: str
    port: int


@dataclass(frozen=True)
class Link:
    """A checked link; `a_to_b` and `b_to_a` are final."""

    a: Endpoint
    b: Endpoint
    a_to_b: Direction
    b_to_a: Direction
    bandwidth_bps: int
    mtu: int = DEFAULT_MTU
    """Longest IP packet, bytes: of the interfaces at both ends."""
    wanted: bool = False
    """The wire is there whatever it has to do: the file says so, or a change needs it."""
    preset: str | None = None

    @property
    def name(self) -> str:
        return f"{self.a.node}-{self.b.node}"

    @property
    def is_emulated(self) -> bool:
        return self.wanted or not (self.a_to_b.is_plain and self.b_to_a.is_plain)


@dataclass(frozen=True)
class Route:
    """One forwarding entry of a switch: destination prefix, next port, and the MAC address to write."""

    prefix: str
    port: int
    mac: str


@dataclass(frozen=True)
class Topology:
    """A checked topology. `ports[switch][port]` holds every port that a link uses."""

    path: str
    hosts: dict[str, HostSpec]
    switches: dict[str, SwitchSpec]
    links: tuple[Link, ...]
    ports: dict[str, dict[int, PortSpec]]
    changes: tuple[LinkChange, ...] = ()
    """What happens to links over time: those of the file, and those of the links' presets."""

    def mac(self, host: str) -> str:
        """The host's MAC address: its own, or `08:00:00:00:NN:NN` from its number."""
        number = int(host[1:])
        return self.hosts[host].mac or f"08:00:00:00:{number >> 8:02x}:{number & 255:02x}"

    def neighbours(self, node: str) -> Iterator[tuple[int, str]]:
        """(own port, other node) of each link at `node`."""
        for link in self.links:
            if link.a.node == node:
                yield link.a.port, link.b.node
            if link.b.node == node:
                yield link.b.port, link.a.node

    def far_side_ports(self, switch: str) -> frozenset[int]:
        """The switch's ports that are the far side of a satellite link: those marked so; where the whole topology marks
        none, those that lead to another switch."""
        if any(spec.far_side for ports in self.ports.values() for spec in ports.values()):
            return frozenset(port for port, spec in self.ports[switch].items() if spec.far_side)
        return frozenset(port for port, other in self.neighbours(switch) if other in self.switches)

    def settings(self, switch: str, port: int) -> dict[str, Any]:
        """What a port says for the program of its switch."""
        return {"far_side": port in self.far_side_ports(switch), **self.ports[switch][port].settings}

    def routes(self, switch: str) -> list[Route]:
        """A route to every host by the fewest hops; ties go to the lower port."""
        routes: list[Route] = []
        for host, spec in self.hosts.items():
            port = self.next_port(switch, host)
            if port is None:
                continue
            address = ipaddress.ip_interface(spec.ip).ip
            routes.append(Route(f"{address}/32", port, self.mac(host)))
            if spec.ipv6:
                routes.append(Route(f"{ipaddress.ip_interface(spec.ipv6).ip}/128", port, self.mac(host)))
        return routes

    def next_port(self, switch: str, host: str) -> int | None:
        """The port of the switch by which the host is fewest hops away; None where there is no way."""
        reached: dict[str, int] = {}
        queue = deque((node, port) for port, node in sorted(self.neighbours(switch)))
        while queue:
            node, first = queue.popleft()
            if node in reached or node == switch:
                continue
            reached[node] = first
            if node == host:
                return first
            if node in self.switches:
                queue.extend((other, first) for _, other in sorted(self.neighbours(node)))
        return None


PortKey = tuple[str, int]
"""(switch, port)."""


def managed_ports(topology: Topology) -> dict[PortKey, PortSpec]:
    """The ports that the control plane manages: those marked as bottlenecks, else every port with a rate."""
    ports = {(name, number): spec for name, ports in topology.ports.items() for number, spec in ports.items()}
    marked = {key: spec for key, spec in ports.items() if spec.bottleneck}
    return marked or {key: spec for key, spec in ports.items() if spec.rate_bps}


def load(path: Path) -> Topology:
    """Read and check a topology file.

    Raises TopologyError naming the file, the JSON pointer and what is allowed; nothing is built from a bad file.
    """
    return check(read(path), str(path))


def read(path: Path) -> Any:
    """The document of a topology file, the names of traces made absolute. Raises TopologyError when it is no JSON."""
    return with_trace_paths(read_document(path, "topology"), path.resolve().parent)


def read_document(path: Path, what: str) -> Any:
    """The JSON document in a file. Raises TopologyError with the file, or the line and a caret under what is not JSON."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TopologyError(f"{path}: cannot read the {what}: {reason}") from None
    try:
        return parse_json(text)
    except DocumentError as error:
        if error.line is None or error.column is None:
            raise TopologyError(f"{path}: not JSON: {error}") from None
        lines = text.split("\n")  # as the parser counts them
        line = lines[error.line - 1] if error.line <= len(lines) else ""
        begin = max(0, error.column - 1 - QUOTED // 2)
        line, caret = line[begin : begin + QUOTED], " " * (error.column - 1 - begin) + "^"
        raise TopologyError(
            f"{path}:{error.line}:{error.column}: not JSON: {error.what}\n  {line}\n  {caret}"
        ) from None


def check(document: Any, origin: str = "topology") -> Topology:
    """Check a topology given as the parsed JSON document; see `load`."""
    file = validate(_File, document, origin, "")
    links = _with_mtus([_link(entry, index, file, origin) for index, entry in enumerate(file.links)], file, origin)
    ports = _ports(file, links, origin)
    changes = _changes(file, links, origin)
    links = tuple(replace(link, wanted=link.wanted or _needs_wire(link, changes)) for link in links)
    topology = Topology(origin, file.hosts, file.switches, links, ports, changes)
    for name, host in file.hosts.items():
        _address(host.ip, f"{origin}: /hosts/{name}/ip")
        if host.ipv6:
            _address(host.ipv6, f"{origin}: /hosts/{name}/ipv6")
        count = sum(1 for _ in topology.neighbours(name))
        if count != 1:
            raise TopologyError(f"{origin}: /hosts/{name}: a host has exactly one link, this one has {count}")
    return topology


def check_settings(topology: Topology, model: type[BaseModel]) -> None:
    """Check what the ports say for a program, whose settings of a port are a `model`. Raises TopologyError."""
    for switch, ports in topology.ports.items():
        for port, spec in ports.items():
            if spec.settings:
                validate(model, spec.settings, topology.path, f"/switches/{switch}/ports/{port}/settings")


def validate(model: type[Any], document: Any, origin: str, pointer: str) -> Any:
    """`document` as `model`. Raises TopologyError with the origin, the JSON pointer and, for an unknown key, the allowed ones."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = pointer + "".join(f"/{part}" for part in first["loc"] if part != "[key]")
        allowed = ""
        if first["type"] == "extra_forbidden":
            allowed = f"; allowed keys: {', '.join(_keys(model, first['loc']))}"
        text = f"{short(place) or '/'}: {short(first['msg'], 800)}{allowed} (got {first['input']!r:.80})"
        raise TopologyError(f"{origin}: {text}") from None


def _keys(model: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """The keys that the object around `place` may have, as the file writes them."""
    nested: dict[str, type[BaseModel]] = {
        "hosts": HostSpec,
        "switches": SwitchSpec,
        "ports": PortSpec,
        "a_to_b": Direction,
        "b_to_a": Direction,
    }
    for part in place[:-1]:
        model = nested.get(str(part), model)
    return sorted(str(info.validation_alias or name) for name, info in model.model_fields.items())


def _address(text: str, where: str) -> None:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        raise TopologyError(
            f"{where}: {short(repr(text))} is not an address with a prefix length, such as 10.0.1.1/24"
        ) from None


def _endpoint(text: object, file: _File, where: str) -> Endpoint:
    match = _ENDPOINT.match(text) if isinstance(text, str) else None
    if match is None:
        raise TopologyError(
            f"{where}: {short(repr(text))} is not an endpoint; write a host (h1) or a switch port (s1-p3)"
        )
    node, port = match.group(1), match.group(2)
    known = file.hosts if node.startswith("h") else file.switches
    if node not in known:
        raise TopologyError(f"{where}: there is no {node}; there are {', '.join(sorted(known)) or 'none'}")
    if node.startswith("h"):
        return Endpoint(node, 0)
    if port is None:
        raise TopologyError(f"{where}: a switch endpoint names its port: {node}-p1")
    if not 1 <= int(port) < CPU_PORT:
        raise TopologyError(f"{where}: port {port} is out of range; allowed: 1 to {CPU_PORT - 1}")
    return Endpoint(node, int(port))


def _link(entry: Any, index: int, file: _File, origin: str) -> Link:
    where = f"{origin}: /links/{index}"
    if isinstance(entry, list):
        items: list[Any] = list(entry)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        if not 2 <= len(items) <= 4:
            raise TopologyError(
                f"{where}: a link is [node, node], [node, node, latency] or [node, node, latency, bandwidth]"
            )
        entry = {"a": items[0], "b": items[1]}
        if len(items) > 2:
            # The tutorials write bare numbers: milliseconds and Mbit/s.
            entry["delay"] = _tutorial(items[2], 1_000)
        if len(items) > 3:
            entry["bandwidth"] = _tutorial(items[3], 1_000_000)
    spec: LinkSpec = validate(LinkSpec, entry, origin, f"/links/{index}")
    if spec.preset is not None:
        preset = LinkSpec.model_validate({"a": "", "b": "", **PRESETS[spec.preset].link})
        left = preset.model_fields_set - spec.model_fields_set
        spec = spec.model_copy(update={name: getattr(preset, name) for name in left})
    a = _endpoint(spec.a, file, f"{where}/a")
    b = _endpoint(spec.b, file, f"{where}/b")
    shared = Direction(**{name: getattr(spec, name) for name in Direction.model_fields})
    forward, back = _override(shared, spec.a_to_b), _override(shared, spec.b_to_a)
    if spec.bandwidth_bps and a.port == 0 and not forward.rate_bps:
        forward = forward.model_copy(update={"rate_bps": spec.bandwidth_bps})
    if spec.bandwidth_bps and b.port == 0 and not back.rate_bps:
        back = back.model_copy(update={"rate_bps": spec.bandwidth_bps})
    for way, direction, own in (("a_to_b", forward, spec.a_to_b), ("b_to_a", back, spec.b_to_a)):
        if problem := direction.problem():
            place = where if own is None else f"{where}/{way}"
            raise TopologyError(f"{place}/{problem[0]}: {problem[1]}")
    return Link(a, b, forward, back, spec.bandwidth_bps, spec.mtu or 0, spec.emulated, spec.preset)


def _changes(file: _File, links: tuple[Link, ...], origin: str) -> tuple[LinkChange, ...]:
    """The changes of the links' presets and of the file, checked in the order in which they happen."""
    changes: list[LinkChange] = []
    for link in links:
        if link.preset is not None:
            changes += [LinkChange.model_validate({"link": link.name, **rule}) for rule in PRESETS[link.preset].changes]
    places = [f"preset {next(link.preset for link in links if link.name == change.link)}" for change in changes]
    for index, entry in enumerate(file.changes):
        changes.append(validate(LinkChange, entry, origin, f"/changes/{index}"))
        places.append(f"/changes/{index}")
    for index, key, message in change_problems(changes, links):
        raise TopologyError(f"{origin}: {places[index]}/{key}: {message}")
    return tuple(changes)


def _needs_wire(link: Link, changes: tuple[LinkChange, ...]) -> bool:
    at_host = 0 in (link.a.port, link.b.port)
    return any(change.link == link.name and (change.needs_wire or at_host) for change in changes)


def _with_mtus(links: list[Link], file: _File, origin: str) -> tuple[Link, ...]:
    """The links with their final MTUs; 0 is one that the file leaves out."""
    final: list[Link] = []
    for index, link in enumerate(links):
        own = {end.node: file.hosts[end.node].mtu for end in (link.a, link.b) if end.port == 0}
        for host, mtu in own.items():
            if mtu and link.mtu and mtu != link.mtu:
                raise TopologyError(
                    f"{origin}: /links/{index}/mtu: {link.mtu}, but /hosts/{host}/mtu is {mtu}; one of them is enough"
                )
        asked = link.mtu or next((mtu for mtu in own.values() if mtu), 0)
        final.append(replace(link, mtu=asked or (DEFAULT_MTU if own else 0)))
    of_hosts = [link.mtu for link in final if 0 in (link.a.port, link.b.port)]
    largest = max(of_hosts, default=DEFAULT_MTU)
    for index, link in enumerate(final):
        if 0 not in (link.a.port, link.b.port) and 0 < link.mtu < largest:
            raise TopologyError(
                f"{origin}: /links/{index}/mtu: {link.mtu} is below a host's {largest}: longer packets would be lost; "
                f"allowed: {largest} to 9000, or leave it out"
            )
    return tuple(replace(link, mtu=link.mtu or largest) for link in final)


def _override(shared: Direction, own: Direction | None) -> Direction:
    """The link's values, with those that the direction says itself instead."""
    return (
        shared if own is None else shared.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})
    )


def _tutorial(value: Any, unit: int) -> Any:
    if isinstance(value, str) and re.fullmatch(r"[0-9.]+", value):
        value = float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return round(value * unit)
    return value


def _ports(file: _File, links: tuple[Link, ...], origin: str) -> dict[str, dict[int, PortSpec]]:
    used: dict[str, dict[int, PortSpec]] = {name: {} for name in file.switches}
    for index, link in enumerate(links):
        for end in (link.a, link.b):
            if end.port == 0:
                continue
            if end.port in used[end.node]:
                raise TopologyError(
                    f"{origin}: /links/{index}: port {end.port} of {end.node} is used by another link already"
                )
            used[end.node][end.port] = PortSpec(rate_bps=link.bandwidth_bps)
    for name, switch in file.switches.items():
        for number, spec in switch.ports.items():
            where = f"{origin}: /switches/{name}/ports/{number}"
            if not number.isdigit() or int(number) not in used[name]:
                there = ", ".join(map(str, sorted(used[name]))) or "none"
                raise TopologyError(f"{where}: no link uses that port; ports in use: {there}")
            rate = used[name][int(number)].rate_bps if spec.rate_bps is None else spec.rate_bps
            used[name][int(number)] = spec.model_copy(update={"rate_bps": rate})
    return {name: dict(sorted(ports.items())) for name, ports in used.items()}
