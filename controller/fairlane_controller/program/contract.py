# SPDX-License-Identifier: Apache-2.0
"""The contract of a queueing scheme: everything that the core, the lab and the launchers know of a P4 program.

A program is a folder with `program.py` (one subclass of `Program`), the compiled P4 program, and, where it has commands of its
own, `cli.py`. The smallest one gives `name`, `title`, `p4`, `Settings`,
`tables` and `entries`.

The life of a configuration: a `Config` (from a file, a topology, a command) is checked (`check`), becomes a `Plan` for all
switches (`plan`), which has what one switch is to have (`Plan.wanted`); the core compares, writes and takes back. `read_config`
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

from fairlane_controller.errors import bad_input
from fairlane_controller.problems import bad_config, describe
from fairlane_controller.program import settings
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.rows import Column, Kind, Reason, Row
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.state.store import STATE_FILE, Store
from fairlane_controller.switch.client import PipelineFiles
from fairlane_controller.switch.entities import Entries, entity_key
from fairlane_controller.switch.reading import BatchReading
from fairlane_controller.switch.shared import PACKET_REASONS

Place = tuple[str, int]
"""(switch, port)."""


def port_state(run: RunState | None, place: Place) -> PortState:
    """What a topology knows of a port.

    Args:
        run: The topology; None: there is none.
        place: The switch and the port.

    Returns:
        The port; with its number alone where the topology does not have it.
    """
    switches = run.switches if run is not None else ()
    found = (switch.port(place[1]) for switch in switches if switch.name == place[0])
    return next(found, None) or PortState(port=place[1])


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
    "The place of a port in its source, for errors: `ports[2]`."
    states: Mapping[Place, PortState] = field(default_factory=dict[Place, PortState])
    "What is known of a port's queue: by its source, else by the topology."
    notes: tuple[str, ...] = ()
    "What the switches have that no configuration can have, in words."
    given: Mapping[Place, frozenset[str]] = field(default_factory=dict[Place, frozenset[str]])
    "Keys that the source gives a port, those of the core too."

    @property
    def switches(self) -> set[str]:
        """The switches of the ports."""
        return {switch for switch, _ in self.ports or ()}

    def plain(self) -> dict[str, Any]:
        """The configuration as plain data: `ports`, and the sections by their names."""
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
    """A document that belongs to one switch beside its entries, and is to have another value."""

    document: str
    "Its name in the state file."
    place: str
    "In words: `port=3 class=0`."
    value: dict[str, Any]
    "The new value."
    wanted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "The keys that differ, for people, with their new values;"
    current: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "and with their current values."


class Plan(ABC):
    """A checked configuration, ready for all switches."""

    @abstractmethod
    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The expected state of a switch. Pure.

        Args:
            switch: Its name.
            current: Its entries in the program's tables.
        """

    @property
    def concerned(self) -> Collection[str] | None:
        """The switches that have, or had, something of the configuration; None: all may have. Only these are asked, and written."""
        return None

    def remembered(self, switch: str) -> Sequence[Remembered]:
        """The documents of a switch that differ from what is in the state file."""
        return ()

    @property
    def documents(self) -> Mapping[str, Any]:
        """New values of documents of the whole topology, by their names in the state file."""
        return {}

    @property
    def documents_back(self) -> Mapping[str, Any]:
        """The values that an undo puts into the state file where they are not those before the change."""
        return {}


@dataclass(frozen=True)
class PortPlan(Plan):
    """The plan of a program whose ports are independent: `Program.entries` of each port that is named; others stay as they are.

    Of a program with a `document` it has the whole configuration: what `config` leaves out is as in the document.
    """

    program: Program
    config: Config
    run: RunState | None = None
    keeps: tuple[str, ...] = ()
    "Keys of settings that stay as a port has them: a running loop decides them."

    @property
    def concerned(self) -> Collection[str] | None:
        """Those of the ports that are named, where it says nothing else."""
        is_part = not (self.program.document or self.config.exact or self.config.sections is not None)
        return self.config.switches if is_part else None

    @property
    def documents(self) -> Mapping[str, Any]:
        """The whole configuration, where it differs from the document."""
        if not self.program.document:
            return {}
        old = self.program.remembered(self.run).plain()
        new = {**old, **self.config.plain(), **({"ports": old["ports"]} if self.config.ports is None else {})}
        return {self.program.document: new} if new != old else {}

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of the switch's ports, and of its objects."""
        program, config = self.program, self.config
        if program.document:
            stored = self.documents.get(program.document)
            config = program.config_of(stored) if stored else program.remembered(self.run)
            config = replace(config, exact=True)
        before = program.ports_of(switch, current)
        ports = {} if config.exact else dict(before)
        for (name, port), chosen in (config.ports or {}).items():
            if name == switch:
                kept = {key: getattr(before[port], key) for key in self.keeps if port in before}
                ports[port] = chosen.model_copy(update=kept)
        entries = [
            entry for port, one in sorted(ports.items()) for entry in program.entries(port_state(self.run, (switch, port)), one)
        ]  # fmt: skip
        return Wanted([*entries, *(program.object_entries(config.sections, switch) if program.document else ())])


class Program:
    """A queueing scheme: a P4 program, what it can be set to, and what it shows. Subclass it; one instance serves everything."""

    name: ClassVar[str]
    "Lower case; of commands, files and `program = …`."
    title: ClassVar[str]
    "One sentence for lists; default: the first line of the class's docstring."
    p4: ClassVar[str] = ""
    """The compiled program without its endings, relative to the file of the class: `mine` for mine.json and mine.p4info.txtpb. Empty, in
    programs that come with fairlane: that of its name in `p4src/compiled`."""
    Settings: ClassVar[type[settings.Settings]] = settings.Settings
    "What one managed port can be set to."
    Sections: ClassVar[type[settings.Section]] = settings.Section
    "Further sections at the top of `fairlane.toml`; each field has a default that means: left as it is."
    LoopSettings: ClassVar[type[settings.Section]] = settings.Section
    "Further keys of `[loop]`."
    document: ClassVar[str] = ""
    "The document of state.db that has its whole configuration, so no switch is asked for it; empty: the switches have it."
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
    scheduler: ClassVar[str] = ""
    "The scheduler that its ports must have; a topology's managed ports that name none get it. Empty: any."
    queues: ClassVar[int] = 0
    "How many queues they get with it; 0: the topology's default."
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
    "Commands that a launcher suggests to people who begin: `mine show`."

    # ---- what it is --------------------------------------------------------------------------------------------------

    def __init_subclass__(cls) -> None:
        """Take the title from the docstring where there is no other one."""
        if "title" not in vars(cls):
            cls.title = (cls.__doc__ or "").partition("\n")[0]

    def pipeline(self) -> PipelineFiles:
        """The files of the compiled program."""
        p4 = self.p4 or f"../../../../p4src/compiled/{self.name}"
        base = Path(inspect.getfile(type(self))).parent / p4
        return PipelineFiles(base.with_name(f"{base.name}.json"), base.with_name(f"{base.name}.p4info.txtpb"))

    def missing_table(self, names: Iterable[str]) -> str | None:
        """The first of its tables that a switch does not have.

        Args:
            names: The switch's tables.

        Returns:
            The table; None: the switch runs this program.
        """
        there = set(names)
        return next((table for table in (*self.tables, *self.dynamic_tables) if table not in there), None)

    def topology_control(self) -> type[TopologyControl] | None:
        """The class of what it does at run time, imported only when it is needed; None: it needs no loop."""
        if self.control:
            return self.load(self.control)
        from fairlane_controller.program.decide import DecidingTopology  # which imports this module

        return DecidingTopology if self.decided else None

    def decide(self, port: PortState, settings: Any, seen: Mapping[str, Any], loop: Any) -> Any:
        """The settings that a managed port is to have from now on: the law of a program of one's own. Pure.

        Args:
            port: What the topology knows of the port.
            settings: The port's `Settings`, as `ports_of` reads them.
            seen: The port's current row: the values of `columns`, `sent_packets`, `sent_bytes`, and the rate of each total in 1/s
                since the reading before (`sent_packets_per_s`); what is not known is left out or None.
            loop: `LoopSettings`, as `[loop]` of the configuration gives them.

        Returns:
            `Settings`, of which only the keys that `decided` names count; nothing is written where none of them differs.
        """
        return settings

    def load(self, target: str) -> Any:
        """Import something of the program's package.

        Args:
            target: `module:name`, the module relative to the program's own.
        """
        module, _, name = target.partition(":")
        package = type(self).__module__.rpartition(".")[0]
        return getattr(importlib.import_module(f".{module}", package), name)

    # ---- wanted state ------------------------------------------------------------------------------------------------

    def entries(self, port: PortState, settings: Any) -> Iterable[P4TableEntry]:
        """The entries of one port. Pure.

        Args:
            port: What the topology knows of the port.
            settings: What the port is set to (`Settings`).
        """
        return ()

    def object_entries(self, sections: Any, switch: str) -> Iterable[P4TableEntry]:
        """The entries of the objects of a program that has a `document`, at one switch. Pure.

        Args:
            sections: The configuration's `Sections`.
            switch: The name of the switch.
        """
        return ()

    def settings_for_queue(self, settings: Any, packets: int | None, size: int | None) -> Any:
        """The settings of a port whose queue gets another capacity.

        Args:
            settings: What the port has, as `ports_of` reads it.
            packets: Packets that may wait from now on; None: as before.
            size: Bytes that may wait from now on, 0 without a limit; None: as before.

        Returns:
            The same where the program does not depend on it; `entries` of both are compared.
        """
        return settings

    def entries_for_queues(self, port: PortState, current: Entries) -> Iterable[P4TableEntry]:
        """New entries of a port whose number of queues or whose scheduler changes; those that stay may be left out.

        Args:
            port: The port after the change.
            current: The switch's entries in the program's `tables`.
        """
        return ()

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """Problems that one value alone cannot show.

        Args:
            config: The configuration; its values are in range.
            run: The topology; None: not known.

        Returns:
            Each problem as `key: what is wrong, and what is allowed`.
        """
        return ()

    def plan(self, config: Config, run: RunState | None) -> Plan:
        """A checked configuration for all switches.

        Args:
            config: The configuration.
            run: The topology; None: not known.

        Raises:
            FairlaneError: The topology cannot have it.
        """
        return PortPlan(self, config, run)

    def plan_beside_loop(self, config: Config, run: RunState, status: Mapping[str, Any]) -> Plan:
        """As `plan`, with what a running loop has decided meanwhile.

        Args:
            config: The configuration.
            run: The topology.
            status: The loop's status, by switch (`SwitchControl.status`).
        """
        plan = self.plan(config, run)
        return replace(plan, keeps=self.decided) if isinstance(plan, PortPlan) else plan

    def initial_config(self, run: RunState) -> Config:
        """The configuration that a topology is set up with: its document, else the settings of its ports in the run state.

        Raises:
            FairlaneError: BAD_FILE, a port has a value that `Settings` does not allow.
        """
        if self.document:
            return self.remembered(run)
        names, found = self.Settings.model_fields.keys(), dict[Place, Any]()
        for switch, port in ((one, port) for one in run.switches for port in one.ports):
            given = {key: value for key, value in (port.model_extra or {}).items() if key in names}
            try:
                if given:
                    found[switch.name, port.port] = self.Settings.model_validate(given)
            except ValidationError as ex:
                raise bad_config(f"port {port.port}", describe(ex, self.Settings)) from None
        return Config(found, exact=True)

    def initial_plan(self, run: RunState, scheme: str | None = None) -> Plan:
        """The plan of `initial_config`.

        Args:
            run: The topology.
            scheme: The scheme of all managed ports, for programs that have schemes.

        Raises:
            FairlaneError: BAD_INPUT, the program has no schemes; as `initial_config` and `plan`.
        """
        if scheme is not None:
            raise bad_input(f"--scheme: the program {self.name} has no schemes")
        return self.plan(self.initial_config(run), run)

    # ---- what is in force --------------------------------------------------------------------------------------------

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The inverse of `entries`.

        Args:
            switch: The name of a switch.
            current: Its entries in the program's tables.

        Returns:
            The `Settings` of each port that has something of the program.
        """
        return {}

    def read_config(self, current: Mapping[str, Entries], run: RunState) -> Config:
        """The configuration in force.

        Args:
            current: The entries of each switch.
            run: The topology, whose state file may have documents.
        """
        if self.document:
            return self.remembered(run)
        return Config(
            {(name, port): one for name, found in current.items() for port, one in self.ports_of(name, found).items()}
        )

    def remembered(self, run: RunState | None) -> Config:
        """The configuration of its `document`, in the state file of a topology."""
        store = Store(run.folder if run is not None else None)
        return self.config_of(store.get(self.document) or {})

    def config_of(self, plain: Mapping[str, Any]) -> Config:
        """The inverse of `Config.plain`.

        Raises:
            FairlaneError: BAD_FILE.
        """
        sections = {name: value for name, value in plain.items() if name != "ports"}
        ports: list[dict[str, Any]] = [dict(row) for row in plain.get("ports", ())]
        try:
            found = {(row.pop("switch"), row.pop("port")): self.Settings.model_validate(row) for row in ports}
            return Config(found, self.Sections.model_validate(sections))
        except ValidationError as ex:
            raise bad_config(f"{STATE_FILE}: {self.document}", describe(ex, self.Sections)) from None

    # ---- what it shows -----------------------------------------------------------------------------------------------

    async def rows(self, reading: BatchReading, switch: SwitchState | None) -> Sequence[Row]:
        """The values of ports and objects of a switch: by default of each port the settings that `columns` name (`Column.setting`).

        Args:
            reading: The reading of the switch.
            switch: The switch in the run state, where it is known.

        Returns:
            The rows; columns with a `counter`, a `register` or a `reason` are filled by the core.
        """
        tables = await asyncio.gather(*map(reading.table, self.tables))
        ports = self.ports_of(reading.switch, {entity_key(entry): entry for table in tables for entry in table})
        shown = {column.name: column.setting for column in self.columns if column.setting}
        return [
            Row(port, {name: getattr(one, setting) for name, setting in shown.items()})
            for port, one in sorted(ports.items())
        ]


# ---- what drop reasons mean (docs/p4.md, docs/switch.md) --------------------------------------------------------------

_ELSEWHERE = {
    "queue": "the queue had no room (packets, bytes, cells, or the shared buffer)",
    "link": "lost at the interface",
    "not_received": "lost at reception (as when offloads are on), or no program was there yet",
}


NO_PROGRAM = Program()
"""What a switch runs that has none of a known contract: it shows nothing."""


def reasons_of(program: Program | None) -> dict[int, Reason]:
    """Every drop reason of a program by its number, those that all share first."""
    shared = {number: Reason(name, meaning) for number, (name, meaning) in PACKET_REASONS.items()}
    return {**shared, **(program or NO_PROGRAM).reasons}


def meaning(program: Program | None, reason: str, by: str = "program") -> str:
    """What a drop reason means.

    Args:
        program: The program of the switch.
        reason: The name of the reason.
        by: What dropped the packet: `program`, or `queue` or `link`, whose reasons are the target's own.

    Returns:
        One short sentence.
    """
    own = {one.name: one.meaning for one in reasons_of(program).values()} | dict((program or NO_PROGRAM).meanings)
    return own.get(reason) or _ELSEWHERE.get(reason) or _ELSEWHERE.get(by, "a reason of the program's own")
