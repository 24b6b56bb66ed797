# SPDX-License-Identifier: Apache-2.0
"""The topology file: what it may say, and a clear error when it says something else.

A superset of p4lang/tutorials' `topology.json` (hosts with ip, mac and commands; switches; links `["h1", "s1-p1", latency, bandwidth]`).
What we add: a link may be an object with emulated behaviour (`links.py`) that changes over time, a switch may set rate and queue per port.
Nothing is started here; `network.py` builds what `Topology` describes.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import nearest_name, short
from fairlane_controller.gnmi.ports import LinkLayer, Scheduler
from fairlane_controller.problems import allowed_keys
from fairlane_controller.program.contract import Program
from fairlane_controller.state.run_state import Mac, RouteState
from fairlane_controller.switch.shared import QUEUES_MAX
from fairlane_switch.link_control import WAYS, effects
from fairlane_switch.link_presets import PRESETS
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fairlane_topology.changes import change_problems
from fairlane_topology.links import CPU_PORT as CPU_PORT
from fairlane_topology.links import Direction, LinkChange, Mtu, Rate, Strict, with_file_paths
from fairlane_topology.links import Link as Link
from fairlane_topology.links import LinkEnd as LinkEnd
from fairlane_topology.qdisc import parse_qdisc

TRAFFIC_MANAGER = ("link_layer", "scheduler", "queues", "queue_cells", "port_cells")
"""Settings of a port beside its rate and its packets; BMv2 has not them: it has 8 strict-priority queues, counted in packets."""
DEFAULT_QUEUE_PACKETS = 1000
DEFAULT_MTU = 1500
GATEWAY_MAC = "08:00:00:00:ff:01"
"""What hosts send to: the switch rewrites it (the P4 programs route; they do not bridge)."""


class TopologyError(ValueError):
    """A topology that cannot be built; the text names the file, the place in it (a JSON pointer) and what is allowed."""


def _address(kind: type[ipaddress.IPv4Interface | ipaddress.IPv6Interface], example: str) -> AfterValidator:
    def read(text: str) -> str:
        try:
            ip = kind(text).ip if re.fullmatch(r"[^/%]+/[0-9]+", text) else None
        except ValueError:
            ip = None
        if ip is None or ip.is_multicast or ip.is_unspecified or ip.is_loopback:
            raise ValueError(f"{short(repr(text))} is not a host's address with a prefix length, such as {example}")
        return text

    return AfterValidator(read)


def _qdisc(text: str) -> str:
    if text:
        parse_qdisc(text)
    return text


Qdisc = Annotated[str, AfterValidator(_qdisc)]
Cells = Annotated[int, Field(ge=1, le=1_000_000_000)]


class PortSpec(Strict):
    """A switch port's traffic manager: rate in bit/s on the line (0: unlimited), scheduler, and what may wait."""

    rate_bps: Rate | None = Field(default=None, validation_alias="rate")
    link_layer: LinkLayer = "none"
    """What a frame takes on the line: its bytes, an Ethernet frame with all around it, 53 bytes for each of its cells."""
    scheduler: Scheduler = "strict"
    queues: int = Field(default=8, ge=1, le=QUEUES_MAX)
    queue_packets: int = Field(default=DEFAULT_QUEUE_PACKETS, ge=1, le=1_000_000)
    queue_cells: Cells | None = None
    """Cells that may wait in each queue; None: no limit."""
    port_cells: Cells | None = None
    """Cells that may wait in all queues together; None: no limit."""
    qdisc: Qdisc = ""
    """A queueing discipline of Linux as tc(8) writes it, in place of the port's queues; `--runtime kernel` only. Empty: none."""
    bottleneck: bool = False
    """The controller measures this port and sets its threshold."""
    far_side: bool = False
    """The far side of a satellite link, for a program that has some."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What the switch's program is to have set there (`Program.Settings`); see `check_settings`."""


class HostSpec(Strict):
    """A host: its address, and optionally the sender variant that its sockets use."""

    ip: Annotated[str, _address(ipaddress.IPv4Interface, "10.0.1.1/24")]
    mac: Mac | None = None
    ipv6: Annotated[str, _address(ipaddress.IPv6Interface, "fd00::1/64")] | None = None
    mtu: Mtu | None = None
    """Longest IP packet that it sends and takes, bytes; left out: its link's, else 1500."""
    commands: list[str] = Field(default_factory=list)
    variant: str | None = None


class SwitchSpec(Strict):
    """A switch: optionally its own program and entries, and its ports' traffic manager."""

    model_config = ConfigDict(extra="ignore")  # tutorials' files carry mac, … that need no action here
    runtime_json: str | None = None
    """p4lang/tutorials' file of entries (`runtime_json.py`): the switch runs its program and is left alone by the controller."""
    program: str | None = None
    """The tutorials' compiled program; only beside `runtime_json`, whose `bmv2_json` says it too."""
    cli_input: str | None = None
    """The tutorials' commands for simple_switch_CLI: refused when the topology is started."""
    ports: dict[str, PortSpec] = Field(default_factory=dict)


class _File(Strict):
    hosts: dict[Annotated[str, Field(pattern=r"^h[0-9]{1,4}$")], HostSpec]
    switches: dict[Annotated[str, Field(pattern=r"^s[1-9][0-9]{0,3}$")], SwitchSpec]
    links: list[Link]
    changes: list[LinkChange] = Field(default_factory=list[LinkChange])
    name: str = ""
    description: str = ""


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

    def addresses(self, host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        """The host's IPv4 address, and its IPv6 address where it has one, without prefix length."""
        spec = self.hosts[host]
        return [ipaddress.ip_interface(address).ip for address in (spec.ip, spec.ipv6) if address]

    def address(self, host: str) -> str:
        """The host's IPv4 address."""
        return str(self.addresses(host)[0])

    def link(self, name: str) -> Link:
        """The link of that name."""
        return next(link for link in self.links if link.name == name)

    @property
    def kernel_only(self) -> str:
        """Why only the runtime `kernel` has this topology; empty: any has it."""
        found = [f"{name}-p{port}" for name, ports in self.ports.items() for port, spec in ports.items() if spec.qdisc]
        return f"port {found[0]} has a qdisc, which needs fairlane lab run --runtime kernel" if found else ""

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

    @cached_property
    def _mtus(self) -> dict[LinkEnd, int]:
        return {end: link.mtu for link in self.links for end in (link.a, link.b)}

    def port_state(self, switch: str, port: int) -> dict[str, Any]:
        """A port as a run state has it (`PortState`)."""
        spec = self.ports[switch][port]
        return {
            "port": port,
            "mtu": self._mtus[LinkEnd(switch, port)],
            **spec.model_dump(exclude={"settings", "qdisc", "rate_bps"}, exclude_none=True),
            "rate_bps": round(spec.rate_bps or 0),
            **self.settings(switch, port),
        }

    def routes(self, switch: str) -> list[RouteState]:
        """A route to every host by the fewest hops; ties go to the lower port."""
        routes: list[RouteState] = []
        for host in self.hosts:
            port = self.next_port(switch, host)
            for one in self.addresses(host) if port is not None else ():
                prefix = f"{one}/{one.max_prefixlen}"
                routes.append(RouteState.model_construct(prefix=prefix, port=port, mac=self.mac(host)))
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


def default_ipv6(ip: str) -> str:
    """The IPv6 address, with prefix length, of a host that has none of its own and needs one: `fd00::` and its IPv4 address."""
    address = ipaddress.IPv6Address("fd00::") + int(ipaddress.ip_interface(ip).ip)
    return f"{address}/64"


PortKey = tuple[str, int]
"""(switch, port)."""


def managed_ports(topology: Topology) -> dict[PortKey, PortSpec]:
    """The ports that the control plane manages: those marked as bottlenecks, else every port with a rate."""
    ports = {(name, number): spec for name, ports in topology.ports.items() for number, spec in ports.items()}
    marked = {key: spec for key, spec in ports.items() if spec.bottleneck}
    return marked or {key: spec for key, spec in ports.items() if spec.rate_bps}


def with_scheduler(topology: Topology, program: Program) -> Topology:
    """The topology with the program's scheduler at the managed ports that name none. Raises TopologyError at one that names another."""
    ports = {name: dict(own) for name, own in topology.ports.items()}
    for (switch, port), spec in managed_ports(topology).items():
        if program.scheduler in ("", spec.scheduler):
            continue
        if "scheduler" in spec.model_fields_set:
            place = f"{topology.path}: /switches/{switch}/ports/{port}/scheduler"
            raise TopologyError(f"{place}: {spec.scheduler}; {program.name} needs {program.scheduler}")
        queues = spec.queues if "queues" in spec.model_fields_set else program.queues or spec.queues
        ports[switch][port] = spec.model_copy(update={"scheduler": program.scheduler, "queues": queues})
    return replace(topology, ports=ports)


def load(path: Path) -> Topology:
    """Read and check a topology file.

    Raises TopologyError naming the file, the JSON pointer and what is allowed; nothing is built from a bad file.
    """
    return check(read(path), str(path))


def read(path: Path) -> Any:
    """The document of a topology file, the names of series' files made absolute. Raises TopologyError when it is no JSON."""
    return with_file_paths(read_document(path, "topology"), path.resolve().parent)


def read_document(path: Path, what: str) -> Any:
    """The JSON document in a file. Raises TopologyError with the file, or the place of what is not JSON."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TopologyError(f"{path}: cannot read the {what}: {reason}") from None
    try:
        return parse_json(text)
    except DocumentError as error:
        place = "" if error.line is None else f":{error.line}:{error.column}"
        raise TopologyError(f"{path}{place}: not JSON: {error.what}") from None


def check(document: Any, origin: str = "topology") -> Topology:
    """Check a topology given as the parsed JSON document; see `load`."""
    file: _File = validate(_File, document, origin)
    try:
        links = _with_mtus([_link(spec, f"/links/{index}", file) for index, spec in enumerate(file.links)], file)
        links = _numbered(links)
        ports = _ports(file, links)
        changes = _changes(file, links)
        done = [(change.link, change.change) for change in changes]
        links = [
            _with(
                link,
                emulated=link.emulated or any(effects(one, link).needs_wire for name, one in done if name == link.name),
            )
            for link in links
        ]
        topology = Topology(origin, file.hosts, file.switches, tuple(links), ports, changes)
        for name in file.hosts:
            count = sum(1 for _ in topology.neighbours(name))
            if count != 1:
                raise TopologyError(f"/hosts/{name}: a host has exactly one link, this one has {count}")
        _check_each_once(topology)
    except TopologyError as error:
        raise TopologyError(f"{origin}: {error}") from None
    return topology


def check_settings(topology: Topology, model: type[BaseModel]) -> None:
    """Check what the ports say for a program, whose settings of a port are a `model`. Raises TopologyError."""
    for switch, ports in topology.ports.items():
        for port, spec in ports.items():
            if spec.settings:
                validate(model, spec.settings, topology.path, f"/switches/{switch}/ports/{port}/settings")


def validate(model: type[Any], document: Any, origin: str, pointer: str = "") -> Any:
    """`document` as `model`. Raises TopologyError with the origin, the JSON pointer and, for an unknown key, the allowed ones."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = pointer + "".join(f"/{part}" for part in first["loc"] if part != "[key]")
        said = short(first["msg"].removeprefix("Value error, "), 800)
        if first["type"] == "extra_forbidden":
            keys = allowed_keys(model, first["loc"][:-1])
            said = f"unknown key{nearest_name(str(first['loc'][-1]), keys)}; allowed keys: {', '.join(keys)}"
        raise TopologyError(f"{origin}: {short(place) or '/'}: {said} (got {first['input']!r:.80})") from None


def _check_each_once(topology: Topology) -> None:
    """Raises TopologyError where two hosts have a MAC or an IP address in common."""
    taken: dict[str, str] = {}
    for name in topology.hosts:
        values = (topology.mac(name), *map(str, topology.addresses(name)))
        for key, value in zip(("mac", "ip", "ipv6"), values, strict=False):
            place = f"/hosts/{name}/{key}"
            if value in taken:
                raise TopologyError(f"{place}: {value} is that of {taken[value]} already; allowed: one of its own")
            taken[value] = place


def _numbered(links: Sequence[Link]) -> list[Link]:
    """The links, each with its number among those of its two nodes."""
    count = Counter[str]()
    found: list[Link] = []
    for link in links:
        count[link.name] += 1
        found.append(link.numbered(count[link.name]))
    return found


def _with(link: Link, **values: Any) -> Link:
    return link.model_copy(update=values)


def _link(given: Link, where: str, file: _File) -> Link:
    link = given.resolved()
    for key, end in (("a", link.a), ("b", link.b)):
        known = file.hosts if end.port == 0 else file.switches
        if end.node not in known:
            there = ", ".join(sorted(known)) or "none"
            raise TopologyError(f"{where}/{key}: there is no {end.node}; there are {there}")
    for way in WAYS:
        if problem := getattr(link, way).problem():
            key, message = problem
            own = f"/{way}" if way in given.model_fields_set else ""
            name = Direction.model_fields[key].validation_alias or key
            if key == "rate_bps" and key not in given.model_fields_set | getattr(given, way).model_fields_set:
                own, name = "", "bandwidth"  # a host's wire has it as its rate
            raise TopologyError(f"{where}{own}/{name}: {message}")
    return link


def _changes(file: _File, links: Sequence[Link]) -> tuple[LinkChange, ...]:
    """The changes of the links' presets and of the file, checked in the order in which they happen."""
    placed = [
        (f"preset {link.preset}", LinkChange.model_validate({"link": link.name, **rule}))
        for link in links
        if link.preset is not None
        for rule in PRESETS[link.preset].changes
    ]
    placed += [(f"/changes/{index}", change) for index, change in enumerate(file.changes)]
    changes = tuple(change for _, change in placed)
    for index, key, message in change_problems(changes, links):
        raise TopologyError(f"{placed[index][0]}/{key}: {message}")
    return changes


def _with_mtus(links: Sequence[Link], file: _File) -> list[Link]:
    """The links with their final MTUs; 0 is one that the file leaves out."""
    final: list[Link] = []
    for index, link in enumerate(links):
        for end in (link.a, link.b):
            own = file.hosts[end.node].mtu if end.port == 0 else None
            if own and link.mtu and own != link.mtu:
                raise TopologyError(
                    f"/links/{index}/mtu: {link.mtu}, but /hosts/{end.node}/mtu is {own}; one of them is enough"
                )
            link = _with(link, mtu=link.mtu or own or 0)
        final.append(_with(link, mtu=link.mtu or DEFAULT_MTU) if link.at_host else link)
    largest = max((link.mtu for link in final if link.at_host), default=DEFAULT_MTU)
    for index, link in enumerate(final):
        if not link.at_host and 0 < link.mtu < largest:
            raise TopologyError(
                f"/links/{index}/mtu: {link.mtu} is below a host's {largest}: longer packets would be lost; "
                f"allowed: {largest} to 9000, or leave it out"
            )
    return [_with(link, mtu=link.mtu or largest) for link in final]


def _ports(file: _File, links: Sequence[Link]) -> dict[str, dict[int, PortSpec]]:
    used: dict[str, dict[int, PortSpec]] = {name: {} for name in file.switches}
    for index, link in enumerate(links):
        for end in (link.a, link.b):
            if end.port and end.port in used[end.node]:
                raise TopologyError(f"/links/{index}: port {end.port} of {end.node} is used by another link already")
            if end.port:
                used[end.node][end.port] = PortSpec(rate_bps=link.bandwidth_bps)
    for name, switch in file.switches.items():
        for number, spec in switch.ports.items():
            if number not in map(str, used[name]):
                there = ", ".join(map(str, sorted(used[name]))) or "none"
                raise TopologyError(f"/switches/{name}/ports/{number}: no link uses that port; ports in use: {there}")
            rate_bps = used[name][int(number)].rate_bps if spec.rate_bps is None else spec.rate_bps
            if spec.qdisc and (not rate_bps or spec.link_layer != "none"):
                where = f"/switches/{name}/ports/{number}/qdisc"
                raise TopologyError(f"{where}: needs a rate, and no link_layer: the line carries a frame's bytes")
            used[name][int(number)] = spec.model_copy(update={"rate_bps": rate_bps})
    return {name: dict(sorted(ports.items())) for name, ports in used.items()}
