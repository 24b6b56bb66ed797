# SPDX-License-Identifier: Apache-2.0
"""GFR's entries into switches: what is written, what is left alone, and that a refusal leaves everything as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import GfrState, Numbers, gfr_store
from fairlane_controller.programs.gfr.control import GfrTopology
from fairlane_controller.programs.gfr.entries import port_shares
from fairlane_controller.programs.gfr.model import frame_rate_bytes
from fairlane_controller.programs.gfr.plan import GfrPlan, make_plan, number_vcs
from fairlane_controller.state.locks import change_lock
from finsy import P4TableAction, P4TableEntry
from finsy.proto import p4r
from gfr_memory import RESOURCE_EXHAUSTED, MemorySwitch, clients_of, deploy
from hypothesis import given
from hypothesis import strategies as st
from state_tools import put_text


def plan_of(config: GfrState, before: GfrState | None = None) -> GfrPlan:
    """A plan for a configuration after another."""
    return make_plan(config, before or GfrState(), None, "gfr.toml")


def arguments(entry: P4TableEntry) -> dict[str, Any]:
    """The arguments of an entry's action."""
    assert isinstance(entry.action, P4TableAction)
    return dict(entry.action.args)


def kinds(updates: list[p4r.Update]) -> set[int]:
    """INSERT, MODIFY, DELETE that occur in a batch."""
    return {update.type for update in updates}


def with_vcs(*names: str) -> GfrState:
    """The peer-to-peer configuration with some of its VCs only."""
    data = configs.data()
    return configs.state_of({**data, "vcs": [vc for vc in data["vcs"] if vc["name"] in names]})


# ---- what is written -------------------------------------------------------------------------------------------------


async def test_the_entries_of_peer_to_peer() -> None:
    switch = MemorySwitch()
    plan = plan_of(configs.config())
    done = await deploy(plan, clients_of(switch))
    assert len(switch.batches) == 1
    assert sum(one.before is None for one in done["s1"]) == len(switch.tables) == 1 + 5 + 3 * 5 + 5 + 9

    (scheme,) = switch.entries(program.TABLE_PORT_SCHEME)
    assert isinstance(scheme.action, P4TableAction)
    assert scheme.action.name == "proposed"
    assert arguments(scheme) == {
        "qmax": 4000, "lbo": 1000, "hbo": 3000, "per_vc_queue": 1, "n": 5, "rate_form": 0, "alpha": 230, "at_arrival": 0,
        "period_us": 64,
    }  # fmt: skip

    shares = {entry["vc"]: arguments(entry) for entry in switch.entries(program.TABLE_VC_SHARE)}
    assert [shares[vc]["w"] for vc in range(1, 6)] == [6_368_000, 8_368_000, 10_368_000, 12_368_000, 14_368_000]
    assert [shares[vc]["weight"] for vc in range(1, 6)] == [shares[vc]["w"] for vc in range(1, 6)]
    assert sum(shares[vc]["share"] for vc in shares) == pytest.approx(65_536, abs=3)
    assert sorted(shares[vc]["slot"] for vc in shares) == [0, 1, 2, 3, 4]
    assert sorted(shares[vc]["queue"] for vc in shares) == [1, 2, 3, 4, 5]
    assert {shares[vc]["threshold"] for vc in shares} == {200}

    (edge, *_) = switch.entries("vc_edge")
    assert arguments(edge) == {"mfs": 1514, "mark_dscp": 12, "set_dscp": 1}
    classify = switch.entries(program.TABLE_VC_CLASSIFY[4])
    assert len(classify) == 5
    assert not switch.entries(program.TABLE_VC_CLASSIFY[6])
    assert len(switch.entries("clp_mark")) == 9


async def test_meters_of_the_first_vc() -> None:
    switch = MemorySwitch()
    await deploy(plan_of(configs.config()), clients_of(switch))
    async with clients_of(switch)("s1") as client:
        police = {e["vc"]: e.meter_config for e in await client.read_table("vc_police", meters=True)}
        marked = {e["vc"]: e.meter_config for e in await client.read_table("vc_police_marked", meters=True)}
    meter = police[1]
    assert meter is not None
    assert meter.cir == round(frame_rate_bytes(2e6, 1514))
    assert meter.cburst == round(200 * 1514 / 32)
    assert meter.pir > frame_rate_bytes(51.84e6, 1014)  # PCR is the line's rate: no frame length exceeds it
    other = marked[1]
    assert other is not None
    assert (other.cir, other.cburst) == (other.pir, other.pburst) == (meter.pir, meter.pburst)


@pytest.mark.parametrize(
    ("scheme", "wanted"),
    [
        ("drop_tail", {"qmax": 4000, "per_vc_queue": 0}),
        ("double_epd", {"qmax": 4000, "lbo": 1000, "hbo": 3000, "per_vc_queue": 0}),
        ("dfba", {"qmax": 4000, "lbo": 1000, "hbo": 3000, "per_vc_queue": 0, "z": 256, "alpha": 128, "inv_span": 2_147_484}),
        ("wfba", {"qmax": 4000, "lbo": 1000, "per_vc_queue": 0, "z": 205}),
        ("pervc_threshold", {"qmax": 4000, "lbo": 1000, "hbo": 3000, "per_vc_queue": 0}),
    ],
)  # fmt: skip
async def test_a_scheme_is_switched_by_one_modify(scheme: str, wanted: dict[str, int]) -> None:
    switch = MemorySwitch()
    first = plan_of(configs.config())
    await deploy(first, clients_of(switch))
    data = configs.data()
    data["ports"][0] |= {"scheme": scheme, "queues": "fifo"}
    done = await deploy(plan_of(configs.state_of(data), first.state), clients_of(switch))
    (batch,) = switch.batches[1:]
    assert kinds(batch) == {p4r.Update.MODIFY}
    assert len(batch) == len(done["s1"]) == 1
    (entry,) = switch.entries(program.TABLE_PORT_SCHEME)
    assert isinstance(entry.action, P4TableAction)
    assert (entry.action.name, arguments(entry)) == (scheme, wanted)


async def test_what_is_right_is_not_touched() -> None:
    switch = MemorySwitch()
    plan = plan_of(configs.config())
    await deploy(plan, clients_of(switch))
    done = await deploy(plan_of(configs.config(), plan.state), clients_of(switch))
    assert done["s1"] == []
    assert len(switch.batches) == 1


async def test_shares_before_packets_and_packets_before_shares() -> None:
    switch = MemorySwitch()
    first = plan_of(with_vcs("vc1", "vc2"))
    await deploy(first, clients_of(switch))
    await deploy(plan_of(with_vcs("vc2", "vc3"), first.state), clients_of(switch))
    batch = switch.batches[1]
    entries = [u for u in batch if u.entity.WhichOneof("entity") == "table_entry"]
    tables = [(u.type, switch.p4info.tables[u.entity.table_entry.table_id].alias) for u in entries]
    inserted = [table for kind, table in tables if kind == p4r.Update.INSERT]
    deleted = [table for kind, table in tables if kind == p4r.Update.DELETE]
    assert inserted.index("vc_share") < inserted.index("vc_edge") < inserted.index("vc_classify")
    assert deleted.index("vc_classify") < deleted.index("vc_edge") < deleted.index("vc_share")
    assert tables.index((p4r.Update.INSERT, "vc_classify")) < tables.index((p4r.Update.DELETE, "vc_classify"))


async def test_a_switch_that_the_configuration_leaves_is_emptied() -> None:
    switch = MemorySwitch()
    first = plan_of(configs.config())
    await deploy(first, clients_of(switch))
    await deploy(plan_of(GfrState(), first.state), clients_of(switch))
    assert not switch.tables


async def test_another_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    switch = MemorySwitch()
    monkeypatch.setattr(type(load_program("gfr")), "tables", (*program.TABLES, "vc_other"))
    with pytest.raises(FairlaneError, match="the program on the switch is another one, not gfr") as caught:
        await deploy(plan_of(configs.config()), clients_of(switch))
    assert caught.value.code is ErrorCode.WRONG_PROGRAM
    assert not switch.batches


# ---- all or nothing --------------------------------------------------------------------------------------------------


def no_room_for(switch: MemorySwitch, table: str, kind: int = p4r.Update.INSERT) -> None:
    """The switch refuses such updates of a table from now on."""
    number = switch.p4info.tables[table].id

    def refuse(update: p4r.Update) -> int:
        hit = update.entity.table_entry.table_id == number and update.type == kind
        return RESOURCE_EXHAUSTED if hit else 0

    switch.refuse = refuse


@pytest.mark.parametrize("table", [name for name in program.TABLES if name not in ("vc_classify_v6", "clp_mark")])
async def test_a_refused_batch_is_taken_back(table: str) -> None:
    switch = MemorySwitch()
    first = plan_of(with_vcs("vc1", "vc2"))
    await deploy(first, clients_of(switch))
    held = switch.state()
    kind = p4r.Update.MODIFY if table == program.TABLE_PORT_SCHEME else p4r.Update.INSERT
    no_room_for(switch, table, kind)
    with pytest.raises(
        FairlaneError, match=r"switch s1 at memory refused \d+ updates?: .*RESOURCE_EXHAUSTED"
    ) as caught:
        await deploy(plan_of(configs.config(), first.state), clients_of(switch))
    assert caught.value.code is ErrorCode.REFUSED
    assert switch.state() == held


async def test_when_the_second_switch_refuses_the_first_has_again_what_it_had() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    data = configs.data()
    data["ports"].append({"switch": "s2", "port": 6, "capacity": "51.84Mbit"})
    for vc in data["vcs"]:
        vc["match"].append({"switch": "s2", "src": vc["match"][0]["src"]})
    no_room_for(two, "vc_classify")
    with pytest.raises(FairlaneError, match="switch s2 at memory refused 5"):
        await deploy(plan_of(configs.state_of(data)), clients_of(one, two))
    assert len(one.batches) == 2
    assert not one.tables
    assert not two.tables


def test_a_bad_configuration_makes_no_plan() -> None:
    with pytest.raises(FairlaneError, match=r"ports\[0\]\.lbo_cells: 3000 must be below hbo_cells"):
        plan_of(configs.state_of(configs.changed("ports.0.lbo_cells", 3000)))


def test_a_topology_that_cannot_have_what_is_remembered_is_refused(tmp_path: Path) -> None:
    run = configs.run_state().model_copy(update={"folder": tmp_path})
    plan = make_plan(configs.config(), GfrState(), run, "gfr.toml")
    gfr_store(tmp_path).write({"": plan.state})
    assert GfrTopology(run).plan.state == plan.state
    smaller = configs.run_state(port=7).model_copy(update={"folder": tmp_path})
    with pytest.raises(FairlaneError, match=r"state\.db: gfr: ports\[0\]\.port: switch s1 has no port 6"):
        GfrTopology(smaller)


def test_the_state_is_read_back(tmp_path: Path) -> None:
    plan = plan_of(configs.config())
    gfr_store(tmp_path).write({"": plan.state})
    assert gfr_store(tmp_path).get() == plan.state
    put_text(tmp_path, "gfr", "{")
    with pytest.raises(FairlaneError, match=r"state\.db: gfr: line 1, column 2: .*property name"):
        gfr_store(tmp_path)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_numbers_are_kept_while_vcs_come_and_go() -> None:
    first = number_vcs(configs.config(), {})
    gone = number_vcs(with_vcs("vc1", "vc3", "vc5"), first)
    assert gone == {
        "": {"vc1": 1, "vc3": 3, "vc5": 5},
        "s1": {"s1:6 vc1": 0, "s1:6 vc3": 2, "s1:6 vc5": 4},
        "s1:6": {"vc1": 1, "vc3": 3, "vc5": 5},
    }


def new_vc(name: str, ingress_port: int) -> dict[str, Any]:
    """A VC that is not among the five."""
    return {"name": name, "mcr": "1Mbit", "match": [{"switch": "s1", "ingress_port": ingress_port}]}


def test_a_deleted_vc_s_numbers_are_given_in_a_later_change() -> None:
    data = configs.data()
    data["vcs"] = [*data["vcs"][2:], new_vc("late", 7)]
    soon = number_vcs(configs.state_of(data), number_vcs(configs.config(), {}))
    assert (soon[""]["late"], soon["s1"]["s1:6 late"], soon["s1:6"]["late"]) == (6, 5, 6)
    data["vcs"].append(new_vc("later", 8))
    after = number_vcs(configs.state_of(data), soon)
    assert (after[""]["later"], after["s1"]["s1:6 later"], after["s1:6"]["later"]) == (1, 0, 1)


def cleared(switch: MemorySwitch) -> list[int]:
    """The cells of `vc_verdicts` that were set to 0."""
    counter = switch.p4info.counters[program.COUNTER_VERDICTS].id
    return sorted(index for number, index in switch.counters if number == counter)


async def test_a_reused_slot_s_verdicts_are_cleared() -> None:
    switch = MemorySwitch()
    first = plan_of(configs.config())
    await deploy(first, clients_of(switch))
    gone = plan_of(with_vcs("vc3", "vc4", "vc5"), first.state)
    await deploy(gone, clients_of(switch))
    assert not cleared(switch)
    data = configs.data()
    data["vcs"] = [*data["vcs"][2:], new_vc("late", 7)]
    await deploy(plan_of(configs.state_of(data), gone.state), clients_of(switch))
    assert cleared(switch) == list(range(32))
    assert len(switch.batches) == 3


async def test_verdicts_are_cleared_after_an_undo_too() -> None:
    switch = MemorySwitch()
    first = plan_of(with_vcs("vc1"))
    await deploy(first, clients_of(switch))
    before = GfrState.model_validate(first.documents_back["gfr"])
    assert (before.vcs, before.numbers, before.used["s1"]) == ((), {}, 1)
    await deploy(plan_of(GfrState(), first.state), clients_of(switch))
    await deploy(plan_of(with_vcs("vc2"), before), clients_of(switch))
    assert cleared(switch) == list(range(32))


def test_all_slots_of_a_switch() -> None:
    config = configs.config()
    vc = config.vcs[0]
    vcs = tuple(vc.model_copy(update={"name": f"v{number}", "mcr": 0.0}) for number in range(program.VC_SLOTS + 1))
    full = config.model_copy(update={"vcs": vcs[:-1]})
    assert len(number_vcs(full, {})["s1"]) == program.VC_SLOTS
    with pytest.raises(FairlaneError, match="VC v4096: all 4096 numbers of s1 are in use"):
        number_vcs(config.model_copy(update={"vcs": vcs}), {})


def test_shares_of_those_that_are_active_and_of_those_that_are_not() -> None:
    config = configs.config()
    shares = port_shares(config.ports[0], config.vcs, {"vc1", "vc2"})
    rest = (51.84e6 - 6e6) / 2
    assert shares["vc1"] == pytest.approx(2e6 + rest)
    assert shares["vc2"] == pytest.approx(4e6 + rest)
    assert shares["vc5"] == pytest.approx(10e6 + (51.84e6 - 16e6) / 3)
    assert port_shares(config.ports[0], config.vcs[:1], set()) == {"vc1": pytest.approx(51.84e6)}


@given(steps=st.lists(st.sets(st.integers(1, 5)), min_size=1, max_size=12))
def test_no_number_is_of_two_vcs_and_none_is_another_s_in_the_same_change(steps: list[set[int]]) -> None:
    numbers: Numbers = {}
    for vcs in steps:
        before, numbers = numbers, number_vcs(with_vcs(*(f"vc{number}" for number in vcs)), numbers)
        for scope, given_now in numbers.items():
            assert len(given_now) == len({*given_now.values()}) == len(vcs)
            old = before.get(scope, {})
            owners = {number: key for key, number in old.items()}
            assert all(number == old[key] for key, number in given_now.items() if key in old)
            assert all(owners.get(number, key) == key for key, number in given_now.items())


async def test_changes_without_a_loop_are_made_one_after_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    async def change(name: str) -> None:
        async with change_lock(tmp_path):
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")

    await asyncio.gather(change("a"), change("b"))
    assert order == ["a begins", "a ends", "b begins", "b ends"]
