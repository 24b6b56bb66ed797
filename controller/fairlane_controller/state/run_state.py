# SPDX-License-Identifier: Apache-2.0
"""What the launcher of a topology has started (document `topology` of the state file): found, read, validated, written."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, AliasPath, BaseModel, ConfigDict, Field, ValidationError, field_validator

from fairlane_controller.documents import is_file, is_table
from fairlane_controller.errors import ErrorCode, bad_file, find_by_name, unknown_name
from fairlane_controller.problems import bad_config, describe
from fairlane_controller.state.processes import OwnedProcess
from fairlane_controller.state.store import STATE_FILE, Store

STATE_ROOT = Path("/run/fairlane")
STATE_ROOT_VARIABLE = "FAIRLANE_STATE_DIR"
TOPOLOGY = "topology"
"""The document of the state file."""
PORTS = "port/"
"""Documents `port/SWITCH/PORT`: what was set of a port by hand since, over what the launcher wrote."""
_MAC = re.compile(r"(?!00(:00){5})[0-9a-f][02468ace](:[0-9a-f]{2}){5}")


def _mac(text: str) -> str:
    if not _MAC.fullmatch(text.lower()):
        raise ValueError("must be a unicast MAC address such as 08:00:00:00:01:11")
    return text.lower()


Mac = Annotated[str, AfterValidator(_mac)]
"""A unicast MAC address, in small letters."""

_Count = Annotated[int, Field(ge=0)]
_Port = Annotated[int, Field(ge=1, le=511)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PortState(_Model):
    """One port of a switch; what else it says is for its program (`Program.Settings`)."""

    model_config = ConfigDict(extra="allow")

    port: _Port
    "P4Runtime port number."
    interface: str = ""
    "Linux interface, for people only."
    rate_bps: float = Field(default=0, ge=0)
    "Rate of the port's shaper; 0 is unlimited."
    rate_follows: dict[str, Any] | None = None
    "What a rate that was set since follows, of which `rate_bps` is the mean; None: it is a number, or the topology file's."
    queue_packets: _Count = 0
    "Packets that may wait in the port's queue; 0 is unknown."
    queue_bytes: _Count = 0
    queue_cells: _Count = 0
    "Cells that may wait in one queue of the port; 0 is no limit, or unknown."
    port_cells: _Count = 0
    "Cells that may wait in all queues of the port; 0 is no limit, or unknown."
    port_packets: _Count = 0
    "As `port_cells`, in packets …"
    port_bytes: _Count = 0
    "… and in bytes."
    queues: _Count = 0
    "Queues of the port; 0 is unknown."
    scheduler: str = ""
    "strict, wrr, drr, calendar or fq; empty is unknown."
    link_layer: str = ""
    "none, ethernet or atm; empty is unknown."
    mtu: _Count = 0
    "Longest IP packet of the link behind the port; 0 is unknown."
    bottleneck: bool = False
    "The control plane manages these ports; every port with a rate when the topology marks none."


class RouteState(_Model):
    """One prefix and where it goes."""

    prefix: str
    port: _Port
    mac: Mac

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        ipaddress.ip_network(value, strict=False)
        return value

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The prefix without host bits."""
        return ipaddress.ip_network(self.prefix, strict=False)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of one side: whom it trusts, and who it is."""

    ca: Path
    "The CA that signed the switch's certificate."
    cert: Path | None = None
    "This client's certificate; None where the switch asks for none."
    key: Path | None = None
    "The certificate's private key; None as above."


class SwitchState(_Model):
    """One switch and what it should hold."""

    name: str = Field(min_length=1)
    device_id: _Count = 1
    grpc: str
    "HOST:PORT of its P4Runtime server."
    tls: TlsFiles | None = None
    "None: it speaks plain text."
    thrift: int | None = Field(default=None, ge=1, le=65_535)
    "Port of BMv2's Thrift server on the same host; None elsewhere."
    frame_bytes: _Count = 1514
    "Length of the frames for which BMv2, whose queues have rates in packets, gets a rate."
    json_file: Path | None = Field(default=None, alias="json")
    "The compiled program (BMv2 JSON)."
    p4info: Path | None = None
    control: Path = Path()
    "Control socket of the embedded switch."
    ports: tuple[PortState, ...] = ()
    routes: tuple[RouteState, ...] = ()

    def port(self, number: int) -> PortState | None:
        """The port of that number, or None."""
        return next((p for p in self.ports if p.port == number), None)


DEFAULT_PROGRAM: str = import_module("fairlane_controller.programs").DEFAULT
"""What switches run when nothing says another: the folder of the programs says which."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: a node and its port; 0 at a host."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}-p{self.port}" if self.port else self.node


class LinkState(_Model):
    """A link."""

    name: str
    "The nodes at its ends: `s1-s2`."
    a: LinkEnd
    b: LinkEnd
    emulated: bool = False
    "Whether the wire is on it; else it is a bare veth pair."
    preset: str | None = None
    "The kind of link that it is by the topology's file."


class HostState(_Model):
    """A host."""

    name: str = ""
    ip: str = ""
    pid: int = 0
    "Of its shell, whose network namespace is the host's; 0: unknown."


class RunState(_Model):
    """A running topology as far as the control plane needs to know it."""

    name: str = Field(min_length=1)
    topology: str = ""
    "Its file, for people."
    hosts: tuple[HostState, ...] = ()
    target: str = "embedded"
    program: str = DEFAULT_PROGRAM
    switches: tuple[SwitchState, ...] = ()
    links: tuple[LinkState, ...] = ()
    wire: Path = Field(default=Path(), validation_alias=AliasPath("wire", "control"))
    "Control socket of the process that has the links."
    processes: tuple[OwnedProcess, ...] = Field(default=(), alias="pids")
    folder: Path = Path()
    "The folder of the state file."

    @property
    def title(self) -> str:
        """What its file calls it: `dumbbell`; empty where none is known, or it is the name."""
        title = Path(self.topology).stem
        return "" if title == self.name else title

    def switch(self, name: str) -> SwitchState:
        """The switch of that name; UNKNOWN_NAME with the nearest valid one otherwise."""
        return find_by_name("switch", name, {switch.name: switch for switch in self.switches})

    def unknown_switch(self, at: str, name: str) -> list[str]:
        """The problem `at: unknown switch …`, with the nearest name; none when it is there."""
        names = [switch.name for switch in self.switches]
        return [] if name in names else [f"{at}: {unknown_name('switch', name, names).message}"]

    def unknown_place(self, at: str, switch: str, port: int | None, key: str = "port") -> list[str]:
        """The problem of a configuration's table `at` that names a switch or a port that is not there; none when both are."""
        problems = self.unknown_switch(f"{at}.switch", switch)
        ports = [] if problems else [str(one.port) for one in self.switch(switch).ports]
        if ports and port is not None and str(port) not in ports:
            problems.append(f"{at}.{key}: switch {switch} has no port {port}; valid: {', '.join(ports)}")
        return problems

    def managed_ports(self, switch: SwitchState) -> tuple[PortState, ...]:
        """The ports of a switch whose queues the control plane manages: the bottlenecks.

        Those marked so; where the whole topology marks none, every port with a rate.
        """
        if any(port.bottleneck for other in self.switches for port in other.ports):
            return tuple(port for port in switch.ports if port.bottleneck)
        return tuple(port for port in switch.ports if port.rate_bps > 0)


def state_root() -> Path:
    """`$FAIRLANE_STATE_DIR`, or /run/fairlane."""
    return Path(os.environ.get(STATE_ROOT_VARIABLE) or STATE_ROOT)


def run_folders() -> list[Path]:
    """The folders of all topologies that run, by name."""
    return sorted(path.parent for path in state_root().glob(f"*/{STATE_FILE}"))


def find_folder(name_or_path: str | None) -> Path:
    """The folder of a running topology: a path, an instance name, or the only one that runs. Raises NO_TOPOLOGY."""
    root = state_root()
    if name_or_path:
        for candidate in (root / name_or_path, Path(name_or_path)):
            if is_file(candidate / STATE_FILE):
                return candidate
        if Path(name_or_path).name == STATE_FILE and is_file(name_or_path):
            return Path(name_or_path).parent
        raise ErrorCode.NO_TOPOLOGY(
            f"no running topology {name_or_path!r}: there is no {STATE_FILE} in it nor under {root}",
        )
    found = run_folders()
    if len(found) == 1:
        return found[0]
    text = f"several topologies are running ({', '.join(p.name for p in found)}): choose one with --state"
    if not found:
        text = (
            f"no topology is running: there is no */{STATE_FILE} under {root}; "
            "`make run` starts one (commands of the controller also take --switch s1=HOST:PORT)"
        )
    raise ErrorCode.NO_TOPOLOGY(text)


def read_topology(folder: Path) -> dict[str, Any]:
    """What the launcher wrote, as plain data; NO_TOPOLOGY where there is none, BAD_FILE where it is no JSON object."""
    with Store(folder) as store:
        data = store.get(TOPOLOGY)
    if data is None:
        raise ErrorCode.NO_TOPOLOGY(f"no topology runs in {folder}: there is no {STATE_FILE} of one")
    if not is_table(data):
        raise bad_file(f"{folder / STATE_FILE}: {TOPOLOGY}: must be a JSON object")
    return data


def write_topology(folder: Path, data: dict[str, Any]) -> None:
    """Replace what the launcher wrote, and what was set of its ports since. Raises BAD_FILE."""
    with Store(folder) as store:
        store.put({TOPOLOGY: data, **{f"{PORTS}{name}": None for name in store.all(PORTS)}})


def port_document(store: Store, switch: str, port: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """New values of a port over what the launcher wrote, as far as `PortState` names them: a document by its name; empty where it names none."""
    name = f"{PORTS}{switch}/{port}"
    new = {key: value for key, value in values.items() if key in PortState.model_fields}
    if "rate_bps" in new:
        new = {"rate_follows": None, **new}
    return {name: {**(store.get(name) or {}), **new}} if new else {}


def changed_ports(folder: Path, switch: str) -> dict[int, dict[str, Any]]:
    """What was set of a switch's ports since the launcher wrote them, by port: names of `PortState`. Raises BAD_FILE."""
    with Store(folder) as store:
        found = store.all(f"{PORTS}{switch}/")
    return {int(port): values for port, values in found.items()}


def remember_port(folder: Path, switch: str, port: int, values: Mapping[str, Any]) -> None:
    """Put new values of a port over what the launcher wrote. Raises BAD_FILE."""
    with Store(folder) as store:
        store.put(port_document(store, switch, port, values))


def _with_ports(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the launcher wrote, with what was set of its ports since."""
    with Store(folder) as store:
        newer = store.all(PORTS)
    for one in cast("list[dict[str, Any]]", data.get("switches") or []) if newer else ():
        for port in cast("list[dict[str, Any]]", one.get("ports") or []):
            port.update(newer.get(f"{one.get('name')}/{port.get('port')}") or {})
    return data


def read_run_state(folder: Path) -> RunState:
    """The topology of a folder, validated; NO_TOPOLOGY, or BAD_FILE with the key of what is wrong."""
    path = f"{folder / STATE_FILE}: {TOPOLOGY}"
    data = _with_ports(read_topology(folder), folder)
    try:
        state = RunState.model_validate({**data, "folder": folder})
    except ValidationError as ex:
        raise bad_config(path, describe(ex, RunState)) from None
    names = [s.name for s in state.switches]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise bad_file(f"{path}: /switches: the name {twice[0]!r} occurs twice")
    return state
