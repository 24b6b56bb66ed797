# SPDX-License-Identifier: Apache-2.0
"""The contract of a queueing scheme: everything that the core, the lab and the launchers know of a P4 program.

A program is a folder with `program.py` (one subclass of `Program`), the compiled P4 program, and, where it has commands of its
own, `cli.py` (`app`, a `typer.Typer`: the group `fairlane NAME`). The smallest one gives `name`, `title`, `p4`, `Settings`,
`tables` and `entries`.

The life of a configuration: a `Config` (from a file, a topology, a command) is checked (`check`), becomes a `Plan` for all
switches (`plan`), which says what one switch is to have (`Plan.wanted`); the core compares, writes and takes back. `read_config`
is the inverse: what is in force, as a `Config`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from finsy import P4TableEntry
from pydantic import ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.problems import bad_config, describe
from fairlane_controller.program import settings
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.rows import Column, Kind, Reading, Reason, Row
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.state.store import STATE_FILE, Store
from fairlane_controller.switch.client import PipelineFiles
from fairlane_controller.switch.entities import Entries, entity_key

Place = tuple[str, int]
"""(switch, port)."""


@dataclass(frozen=True)
class Config:
    """What a program is set to in a topology; what is None, and a port that is not named, is left as it is."""

    ports: Mapping[Place, Any] | None = None
    "`Program.Settings` of each port."
    sections: Any = None
    "`Program.Sections`."
    exact: bool = False
    "Whether ports that are not named are to have nothing of the program."
    at: Mapping[Place, str] = field(default_factory=dict[Place, str])
    "Where a port stands in its source, for errors: `ports[2]`."
    states: Mapping[Place, PortState] = field(default_factory=dict[Place, PortState])
    "What is known of a port's queue: by its source, else by the topology."
    notes: tuple[str, ...] = ()
    "What the switches have that no configuration can say, in words."
    given: Mapping[Place, frozenset[str]] = field(default_factory=dict[Place, frozenset[str]])
    "Keys that the source gives a port, those of the core too."

    def plain(self) -> dict[str, Any]:
        """What it says, as plain data: `ports`, and the sections by their names."""
        ports = [{"switch": at[0], "port": at[1], **one.plain()} for at, one in (self.ports or {}).items()]
        return {"ports": ports, **(self.sections.plain() if self.sections is not None else {})}


@dataclass(frozen=True)
class Wanted:
    """The expected state of one switch: a program's entries and resets."""

    entries: Sequence[P4TableEntry] = ()
    "Exactly these, in the program's `tables`."
    resets: Sequence[Any] = ()
    "Updates that are written before them: counters that begin anew."


@dataclass(frozen=True)
class Remembered:
    """Something of one switch that is remembered beside its entries, and is to be another."""

    document: str
    "Its name in the state file."
    place: str
    "In words: `port=3 class=0`."
    value: dict[str, Any]
    "What is to be remembered."
    wanted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "What of it differs, for people;"
    current: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "and what that is now."


class Plan(ABC):
    """A checked configuration, ready for all switches."""

    @abstractmethod
    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The expected state of a switch whose current entries in the program's tables are `current`. Pure."""

    @property
    def concerned(self) -> Collection[str] | None:
        """The switches that have, or had, something of the configuration; None: all may have."""
        return None

    def remembered(self, switch: str) -> Sequence[Remembered]:
        """What is to be remembered of a switch, as far as it differs from what is."""
        del switch
        return ()

    @property
    def documents(self) -> Mapping[str, Any]:
        """What is to be remembered of the whole topology, by the documents' names in the state file."""
        return {}

    @property
    def documents_back(self) -> Mapping[str, Any]:
        """What an undo puts back where that is not what was remembered before."""
        return {}


@dataclass(frozen=True)
class PortPlan(Plan):
    """The plan of a program whose ports are independent: `Program.entries` of each port that is named; others keep theirs."""

    program: Program
    config: Config
    run: RunState | None = None
    keeps: tuple[str, ...] = ()
    "Keys of settings that stay as a port has them: a running loop decides them."

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of the switch's ports."""
        held = self.program.ports_of(switch, current)
        known = {} if self.config.exact else dict(held)
        for place, chosen in (self.config.ports or {}).items():
            if place[0] == switch:
                kept = {key: getattr(held[place[1]], key) for key in self.keeps if place[1] in held}
                known[place[1]] = chosen.model_copy(update=kept)
        states = {one.name: one for one in self.run.switches} if self.run is not None else {}
        state = states.get(switch)
        entries: list[P4TableEntry] = []
        for number, chosen in sorted(known.items()):
            port = state.port(number) if state is not None else None
            entries += self.program.entries(port or PortState(port=number), chosen)
        return Wanted(entries)


@dataclass(frozen=True)
class RememberedPlan(Plan):
    """The plan of a program whose configuration is a document: what it leaves out stays as it is remembered."""

    program: Program
    config: Config
    run: RunState | None = None

    @property
    def documents(self) -> Mapping[str, Any]:
        """The whole configuration."""
        old = self.program.remembered(self.run).plain()
        new = {**old, **self.config.plain(), **({"ports": old["ports"]} if self.config.ports is None else {})}
        return {self.program.document: new} if new != old else {}

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of the switch's ports, and of all objects there."""
        whole = self.program.config_of(
            self.documents.get(self.program.document) or self.program.remembered(self.run).plain()
        )
        ports = PortPlan(self.program, replace(whole, exact=True), self.run).wanted(switch, current)
        return Wanted([*ports.entries, *self.program.object_entries(whole.sections, switch)])


class Program:
    """A queueing scheme: a P4 program, what it can be set to, and what it shows. Subclass it; one instance serves everything."""

    name: ClassVar[str]
    "Lower case; of commands, files and `program = …`."
    title: ClassVar[str]
    "One sentence for lists."
    p4: ClassVar[str]
    "The compiled program without its endings, relative to the file of the class: `mine` for mine.json and mine.p4info.txtpb."
    Settings: ClassVar[type[settings.Settings]] = settings.Settings
    "What one managed port can be set to."
    Sections: ClassVar[type[settings.Section]] = settings.Section
    "Further sections at the top of `fairlane.toml`; each field has a default that means: left as it is."
    LoopSettings: ClassVar[type[settings.Section]] = settings.Section
    "Further keys of `[loop]`."
    document: ClassVar[str] = ""
    "The document of state.db that has its whole configuration: what is in force is remembered, and no switch is asked; empty: the switches have it."
    tables: ClassVar[tuple[str, ...]] = ()
    "Tables that the program owns, in the order in which entries are inserted: an entry that is not wanted is deleted."
    dynamic_tables: ClassVar[tuple[str, ...]] = ()
    "Tables whose entries `Control` makes and deletes by itself (flows)."
    loop_tables: ClassVar[Mapping[str, str]] = {}
    "Tables that a running loop reconciles and that no other client may write, each with the command to use instead."
    frequent_events: ClassVar[tuple[str, ...]] = ()
    "Events of its run time that come often: lines for debugging."
    reasons: ClassVar[Mapping[int, Reason]] = {}
    "Drop reasons of its own, beside those of packets that all programs share."
    units: ClassVar[Mapping[str, str]] = {}
    "Units of parameters of its actions whose names do not end in one (`max_packets`, `period_us`): packets, cells, bit/s; 1/256 of a fraction."
    meanings: ClassVar[Mapping[str, str]] = {}
    "Further words of its rows (verdicts), each with a short sentence."
    columns: ClassVar[tuple[Column, ...]] = ()
    "What it shows of each managed port."
    kinds: ClassVar[tuple[Kind, ...]] = ()
    "Kinds of objects that a port has."
    measured: ClassVar[tuple[Column, ...]] = ()
    "What its loop measures at each managed port, with age and uncertainty; the first two also in `status`, `wide` ones where they are known."
    measuring_needs: ClassVar[str] = ""
    "What must be there before these are known, in one sentence."
    ports_title: ClassVar[str] = "managed ports"
    "What its ports are called."
    control: ClassVar[str] = ""
    "What it does at run time: `module:class` of its `TopologyControl`, the module relative to the program's own; empty: it needs no loop."
    decided: ClassVar[tuple[str, ...]] = ()
    "Keys of `Settings` that a running loop decides by `decide`: what a configuration gives is where the loop begins, and no difference later."
    decide_every_s: ClassVar[float] = 1.0
    "Seconds between two decisions."
    first_commands: ClassVar[tuple[str, ...]] = ()
    "Commands that a launcher names to people who begin: `mine show`."

    # ---- what it is --------------------------------------------------------------------------------------------------

    def pipeline(self) -> PipelineFiles:
        """The compiled program."""
        base = Path(inspect.getfile(type(self))).parent / self.p4
        return PipelineFiles(base.with_name(f"{base.name}.json"), base.with_name(f"{base.name}.p4info.txtpb"))

    def missing_table(self, names: Iterable[str]) -> str | None:
        """The first of its tables that a switch with tables `names` lacks; None: the switch runs this program."""
        there = set(names)
        return next((table for table in (*self.tables, *self.dynamic_tables) if table not in there), None)

    def topology_control(self) -> type[TopologyControl] | None:
        """The class of what it does at run time, imported only when it is needed; None: it needs no loop."""
        if self.control:
            return self.load(self.control)
        from fairlane_controller.program.decide import DecidingTopology  # which imports this module

        return DecidingTopology if self.decided else None

    def decide(self, port: PortState, settings: Any, seen: Mapping[str, Any], loop: Any) -> Any:
        """What a managed port is to have from now on: the law of a program of one's own. Pure.

        Args:
            port: the port, as the topology says it.
            settings: what it has, as `ports_of` says it.
            seen: its row now: the values of `columns`, `sent_packets`, `sent_bytes`, and of each total how fast it grew since the reading
                before (`sent_packets_per_s`); what is not known is left out or None.
            loop: `LoopSettings`, as `[loop]` of the configuration gives them.

        Returns:
            `Settings`; only the keys that `decided` names may differ from `settings`, and nothing is written where none does.
        """
        del port, seen, loop
        return settings

    def load(self, target: str) -> Any:
        """`module:name`, the module relative to the program's own."""
        module, _, name = target.partition(":")
        package = type(self).__module__.rpartition(".")[0]
        return getattr(importlib.import_module(f".{module}", package), name)

    # ---- wanted state ------------------------------------------------------------------------------------------------

    def entries(self, port: PortState, settings: Any) -> Iterable[P4TableEntry]:
        """The entries of one port with these settings. Pure."""
        del port, settings
        return ()

    def object_entries(self, sections: Any, switch: str) -> Iterable[P4TableEntry]:
        """The entries of the objects of a program that has a `document`, at one switch. Pure."""
        del sections, switch
        return ()

    def settings_for_queue(self, settings: Any, packets: int | None, size: int | None) -> Any:
        """What a port with these settings is to have when its queue gets room for other packets or bytes.

        Args:
            settings: what the port has, as `ports_of` says it.
            packets: packets that may wait from now on; None: as before.
            size: bytes that may wait from now on, 0 without a limit; None: as before.

        Returns:
            The same where the program does not depend on it; `entries` of both say what is written.
        """
        del packets, size
        return settings

    def entries_for_queues(self, port: PortState, current: Entries) -> Iterable[P4TableEntry]:
        """What is to be of a port's entries where its number of queues or its scheduler becomes that of `port`; those that stay may be left out.

        Args:
            port: as it will be.
            current: the entries that the switch has in the program's `tables`.
        """
        del port, current
        return ()

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """Problems that one value alone cannot show, each `key: what is wrong, and what is allowed`."""
        del config, run
        return ()

    def plan(self, config: Config, run: RunState | None) -> Plan:
        """A checked configuration for all switches. Raises FairlaneError when the topology cannot have it."""
        return RememberedPlan(self, config, run) if self.document else PortPlan(self, config, run)

    def plan_beside_loop(self, config: Config, run: RunState, status: Mapping[str, Any]) -> Plan:
        """As `plan`, with what a running loop has decided meanwhile; `status` is what it knows, by switch (`SwitchControl.status`)."""
        del status
        plan = self.plan(config, run)
        return replace(plan, keeps=self.decided) if isinstance(plan, PortPlan) else plan

    def initial_config(self, run: RunState) -> Config:
        """What a topology is set up with: what is remembered, else what its ports say (keys of `Settings` in the run state)."""
        if self.document:
            return self.remembered(run)
        ports = {(one.name, port.port): self.settings_of(port) for one in run.switches for port in one.ports}
        return Config({place: chosen for place, chosen in ports.items() if chosen is not None}, exact=True)

    def initial_plan(self, run: RunState, scheme: str | None = None) -> Plan:
        """The plan of `initial_config`; `scheme`: of all managed ports, for programs that have schemes, BAD_INPUT for others."""
        if scheme is not None:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"--scheme: the program {self.name} has no schemes")
        return self.plan(self.initial_config(run), run)

    def settings_of(self, port: PortState) -> settings.Settings | None:
        """The settings that a port of a topology has; None when it has none. Raises BAD_FILE."""
        given = {key: value for key, value in (port.model_extra or {}).items() if key in self.Settings.model_fields}
        try:
            return self.Settings.model_validate(given) if given else None
        except ValidationError as ex:
            problem = ex.errors()[0]
            key = ".".join(map(str, problem["loc"]))
            raise FairlaneError(ErrorCode.BAD_FILE, f"port {port.port}: {key}: {problem['msg']}") from None

    # ---- what is in force --------------------------------------------------------------------------------------------

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The inverse of `entries`: the settings of each port that a switch with these entries has set."""
        del switch, current
        return {}

    def read_config(self, current: Mapping[str, Entries], run: RunState) -> Config:
        """The configuration in force, by the entries of each switch and what is remembered."""
        if self.document:
            return self.remembered(run)
        return Config(
            {(name, port): one for name, found in current.items() for port, one in self.ports_of(name, found).items()}
        )

    def remembered(self, run: RunState | None) -> Config:
        """The configuration of its `document`."""
        store = Store(run.folder if run is not None else None)
        return self.config_of(store.get(self.document) or {})

    def config_of(self, plain: Mapping[str, Any]) -> Config:
        """The inverse of `Config.plain`. Raises BAD_FILE."""
        sections = {name: value for name, value in plain.items() if name != "ports"}
        ports: list[dict[str, Any]] = [dict(row) for row in plain.get("ports", ())]
        try:
            found = {(row.pop("switch"), row.pop("port")): self.Settings.model_validate(row) for row in ports}
            return Config(found, self.Sections.model_validate(sections))
        except ValidationError as ex:
            raise bad_config(f"{STATE_FILE}: {self.document}", describe(ex, self.Sections)) from None

    # ---- what it shows -----------------------------------------------------------------------------------------------

    def object_names(self, kind: str, folder: Path) -> Iterable[str]:
        """Names of its objects of a kind (`Kind.name`) that are remembered in a run-state folder: a shell completes them, no switch is asked."""
        del kind, folder
        return ()

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """The values of ports and objects of a switch: by default of each port the settings that `columns` name (`Column.setting`). Those with a `counter`, a
        `register` or a `reason` are filled by the core."""
        del switch
        tables = await asyncio.gather(*map(reading.table, self.tables))
        current = {entity_key(entry): entry for table in tables for entry in table}
        shown = {column.name: column.setting for column in self.columns if column.setting}
        ports = self.ports_of(reading.switch, current)
        return [
            Row(port, {name: getattr(one, field) for name, field in shown.items()})
            for port, one in sorted(ports.items())
        ]
