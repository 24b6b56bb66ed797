# SPDX-License-Identifier: Apache-2.0
"""The contract of a program: found by name and by folder, its settings, its plan, its rows, its hooks at run time."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fairlane import (
    Config,
    FairlaneError,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    SwitchControl,
    every,
    load_program,
    on_digest,
)
from fairlane_controller.config.model import config_model
from fairlane_controller.program.contract import meaning, reasons_of
from fairlane_controller.program.names import command_groups, program_names
from fairlane_controller.program.port_program import Param
from fairlane_controller.program.registry import find_program, wrong_program
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.switch.entities import entity_key
from finsy import P4CounterData

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "droptail" / "program.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program of a user's own."""
    made = tmp_path / "mine"
    made.mkdir()
    shutil.copy(EXAMPLE, made)
    return made


def limit(port: int, packets: int) -> P4TableEntry:
    action = P4TableAction("set_limit", packets=packets)
    return P4TableEntry("droptail_limit", match=P4TableMatch(egress_port=port), action=action)


def run_of(**ports: int) -> RunState:
    states = tuple(PortState.model_validate({"port": int(name[1:]), "limit": value}) for name, value in ports.items())
    return RunState(name="t", program="droptail", switches=(SwitchState(name="s1", grpc="x:1", ports=states),))


def limits(entries: Iterable[P4TableEntry]) -> dict[int, int]:
    found: dict[int, int] = {}
    for entry in entries:
        assert isinstance(entry.action, P4TableAction)
        found[int(entry["egress_port"])] = entry.action.args["packets"]
    return found


def test_a_folder_is_a_program_with_all_that_follows_from_it(folder: Path) -> None:
    program = load_program(f"{folder}/")
    assert load_program(f"{folder}/") is program
    assert program.pipeline().json == folder / "droptail.json"
    assert reasons_of(program)[14].meaning == "the limit was reached"
    assert reasons_of(program)[6].name == "ttl", "those that all programs share are there too"
    model = config_model(program)
    config = model.model_validate({"ports": [{"switch": "s1", "port": 3, "limit": "12packets", "rate": "2Mbit"}]})
    part = config.part_of(program)
    assert part.ports is not None
    assert part.ports[("s1", 3)].limit == 12
    schema = model.model_json_schema()["$defs"]["PortConfig"]["properties"]["limit"]
    assert schema["description"] == "Packets that may wait."


def test_a_plan_keeps_ports_that_are_not_named_and_an_exact_one_does_not(folder: Path) -> None:
    program = load_program(f"{folder}/")
    current = {entity_key(entry): entry for entry in (limit(1, 5), limit(2, 6))}
    config = Config({("s1", 2): program.Settings.model_validate({"limit": 7}), ("s2", 9): program.Settings()})
    assert limits(program.plan(config, None).wanted("s1", current).entries) == {1: 5, 2: 7}
    assert limits(program.initial_plan(run_of(p3=4)).wanted("s1", current).entries) == {3: 4}
    assert program.read_config({"s1": current}, run_of()).ports == {
        ("s1", 1): program.Settings.model_validate({"limit": 5}),
        ("s1", 2): program.Settings.model_validate({"limit": 6}),
    }


def test_a_setting_of_a_topology_that_is_none_is_refused_with_its_port(folder: Path) -> None:
    program = load_program(f"{folder}/")
    with pytest.raises(FairlaneError, match="port 3: limit: "):
        program.initial_plan(run_of(p3=-1))
    with pytest.raises(FairlaneError, match="--scheme: the program droptail has no schemes"):
        program.initial_plan(run_of(p3=4), "red")


def test_what_is_no_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        FairlaneError,
        match="unknown program 'gthresh'; did you mean 'qthresh'\\?; valid: afd, afq, aifo, cebinae, codel, dualpi2, ena, fq_codel, fred, gfr, packs, pie, qthresh, red, sp_pifo",
    ):
        load_program("gthresh")
    with pytest.raises(FairlaneError, match=r"is no program's folder: it has no program\.py"):
        load_program(f"{tmp_path}/")
    (tmp_path / "program.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(
        FairlaneError, match=r"program\.py cannot be used: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    ):
        load_program(f"{tmp_path}/")
    (tmp_path / "program.py").write_text("X = 1\n")
    with pytest.raises(FairlaneError, match=r"must define one subclass of fairlane\.Program, not 0"):
        load_program(f"{tmp_path}/")


def test_programs_are_told_from_each_other_by_their_tables() -> None:
    assert program_names() == [
        "afd",
        "afq",
        "aifo",
        "cebinae",
        "codel",
        "dualpi2",
        "ena",
        "fq_codel",
        "fred",
        "gfr",
        "packs",
        "pie",
        "qthresh",
        "red",
        "sp_pifo",
    ]
    for name in program_names():
        program = load_program(name)
        assert program.pipeline().json.is_file(), "compiled"
        assert find_program(["ipv4_lpm", *program.tables, *program.dynamic_tables]) is program
    assert find_program(["ipv4_lpm"]) is None
    assert load_program("ena").title == "ENA: the switch names corrupted segments for receivers that cannot."
    assert command_groups()["gfr"] == (
        "fairlane_controller.programs.gfr.cli:app",
        "GFR: minimum rates for VCs, by discard and weighted shares of the buffer.",
    )
    assert wrong_program("gfr", load_program("ena").tables).message == (
        "the program on the switch is ena, not gfr: start the topology with the program gfr, and load it with `fairlane config init`"
    )
    assert meaning(load_program("ena"), "corrupted") == "TCP checksum wrong, and nobody to tell"


class OneReading:
    """Two ports with a limit, one of which has refused 3 packets."""

    switch = "s1"
    folder = None
    loop = None

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}

    async def table(self, name: str, *, counters: bool = False, idle: bool = False) -> list[P4TableEntry]:
        del counters, idle
        assert name == "droptail_limit"
        return [limit(1, 5), limit(2, 6)]

    async def counters(self, name: str, indices: Iterable[int]) -> Mapping[int, P4CounterData]:
        assert name == "refused"
        return {port: P4CounterData(packet_count=3 if port == 2 else 0) for port in indices}

    async def registers(self, name: str, indices: Iterable[int]) -> Mapping[int, int] | None:
        del name, indices

    def per_s(self, key: object, total: float | None, /) -> float | None:
        del key, total


async def test_columns_of_counters_are_filled_by_the_core(folder: Path) -> None:
    reading: Any = OneReading()
    rows = await complete_rows(load_program(f"{folder}/"), reading, None)
    assert [(row.port, dict(row.values)) for row in rows] == [(1, {"refused": 0}), (2, {"refused": 3})]


async def test_hooks_are_the_jobs_of_a_control() -> None:
    done: list[object] = []

    class Control(SwitchControl):
        period_s = 0.001

        @on_digest("port_report_t")
        async def measured(self, client: Any, values: Any) -> None:
            del client
            done.append(values)

        @every(lambda control: control.period_s)
        async def decide(self, client: Any) -> None:
            del client
            done.append("decided")

    class Session:
        async def attempt(self, client: Any, what: str, act: Any) -> bool:
            await act(client)
            done.append(what)
            return True

    class Client:
        async def enable_digest(self, name: str, **options: Any) -> None:
            done.append((name, options["max_list"]))

        async def digests(self, name: str) -> Any:
            yield [{"of": name}]

    session: Any = Session()
    client: Any = Client()
    tasks = [asyncio.create_task(job) for job in Control(session, None).jobs(client)]
    while "decided" not in done or len(done) < 4:
        await asyncio.sleep(0.001)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [one for one in done if one != "decided"] == [
        ("port_report_t", 64), "digest port_report_t", [{"of": "port_report_t"}],
    ]  # fmt: skip


def test_a_key_of_several_programs_means_the_same_in_all() -> None:
    """A file has one model with the keys of all programs: the first program's type would silently be the others' too."""
    seen: dict[str, tuple[str, object]] = {}
    for name in program_names():
        for key, field in load_program(name).Settings.model_fields.items():
            kind = (field.annotation, repr([one for one in field.metadata if not isinstance(one, Param)]))
            first, known = seen.setdefault(key, (name, kind))
            assert kind == known, f"{key} of {name} is another one than {first}'s"
