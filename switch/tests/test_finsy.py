# SPDX-License-Identifier: Apache-2.0
"""finsy, a P4Runtime client that knows nothing of us, against the real binary over loopback: no root, no interfaces."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fairlane_switch.process import READY, find_binary, start_process
from finsy import (
    GRPCStatusCode,
    Match,
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4ClientError,
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4DigestEntry,
    P4DirectCounterEntry,
    P4IndirectAction,
    P4Member,
    P4MeterConfig,
    P4MeterEntry,
    P4MulticastGroupEntry,
    P4PacketOut,
    P4RegisterEntry,
    P4TableAction,
    P4TableEntry,
    P4ValueSetEntry,
    Switch,
    SwitchOptions,
)
from finsy.p4entity import P4Entity, P4ValueSetMember
from finsy.switch import SwitchFailFastError

PROGRAMS = Path(__file__).parent.parent / "crates" / "p4rt" / "tests" / "p4"
JSON = PROGRAMS / "entities.json"
P4INFO = PROGRAMS / "entities.p4info.txtpb"
DEVICE_ID = 7


@pytest.fixture
def address() -> Iterator[str]:
    command = [find_binary("fairlane-switch"), "--grpc", "127.0.0.1:0", "--device-id", str(DEVICE_ID)]
    with start_process(command) as process:
        yield process.line(READY).split("grpc=")[1].split()[0]


def options(**changes: object) -> SwitchOptions:
    return SwitchOptions(p4info=P4INFO, p4blob=JSON, device_id=DEVICE_ID, fail_fast=True)(**changes)


@asynccontextmanager
async def connected(address: str, **changes: object) -> AsyncGenerator[Switch, None]:
    """A client that has become ready."""
    async with Switch("s1", address, options(**changes)) as switch:
        yield switch


async def read_all(switch: Switch, entity: P4Entity) -> list[P4Entity]:
    return [item async for item in switch.read(entity)]


async def assert_reads(switch: Switch, request: P4Entity, want: list[P4Entity]) -> None:
    """What is read is what was written, compared as messages: finsy shows some values in another form."""
    read = await read_all(switch, request)
    assert [item.encode(switch.p4info) for item in read] == [item.encode(switch.p4info) for item in want]


async def test_becomes_primary_and_loads_the_program(address: str) -> None:
    async with connected(address) as switch:
        assert switch.is_primary
        assert str(switch.p4runtime_version) == "1.5.0"
        entries = await read_all(switch, P4TableEntry())
        assert len(entries) == 2  # the program's const entries


async def test_table_entries(address: str) -> None:
    async with connected(address) as switch:
        exact = P4TableEntry(
            "exact_table",
            match=Match(dst_addr="02:00:00:00:00:05"),
            action=P4TableAction("measure", port=2),
            metadata=b"mine",
            idle_timeout_ns=10**12,
        )
        ternary = P4TableEntry(
            "ternary_table",
            match=Match(value=(0x0A000000, 0xFF000000), small=(1, 0xFFE), kind=4, ingress_port=1),
            action=P4TableAction("rewrite", dst_addr="02:00:00:00:00:07", small=0xABC),
            priority=10,
        )
        lpm = P4TableEntry("lpm_table", match=Match(value="10.1.0.0/16"), action=P4TableAction("forward", port=3))
        await switch.write([+exact, +ternary, +lpm])
        await assert_reads(switch, P4TableEntry("exact_table"), [exact])
        await assert_reads(switch, P4TableEntry("ternary_table"), [ternary])
        await assert_reads(switch, P4TableEntry("lpm_table"), [lpm])
        await switch.delete([exact, ternary, lpm])
        await assert_reads(switch, P4TableEntry("exact_table"), [])


async def test_one_error_for_each_update(address: str) -> None:
    async with connected(address) as switch:
        entry = P4TableEntry("exact_table", match=Match(dst_addr=1), action=P4TableAction("measure", port=2))
        with pytest.raises(P4ClientError) as caught:
            await switch.insert([entry, entry])
        assert caught.value.code == GRPCStatusCode.UNKNOWN
        assert list(caught.value.details) == [1]
        assert caught.value.details[1].canonical_code == GRPCStatusCode.ALREADY_EXISTS
        assert "table EntitiesIngress.exact_table" in caught.value.details[1].message
        with pytest.raises(P4ClientError) as caught:
            await switch.delete([P4TableEntry("exact_table", match=Match(dst_addr=9))])
        assert caught.value.is_not_found_only


async def test_a_thousand_errors_reach_the_client(address: str) -> None:
    async with connected(address) as switch:
        keys = range(1, 1001)
        entries = [P4TableEntry("exact_table", match=Match(dst_addr=n)) for n in keys]
        with pytest.raises(P4ClientError) as caught:
            await switch.delete(entries)
        assert len(caught.value.details) == 1000
        assert caught.value.is_not_found_only


async def test_counters_meters_registers(address: str) -> None:
    async with connected(address) as switch:
        data = P4CounterData(byte_count=5000, packet_count=100)
        entry = P4TableEntry("exact_table", match=Match(dst_addr=5), action=P4TableAction("measure", port=2))
        await switch.write([+entry])
        direct = P4DirectCounterEntry(table_entry=entry, data=data)
        counter = P4CounterEntry("port_counter", index=3, data=data)
        meter = P4MeterEntry("port_meter", index=2, config=P4MeterConfig(cir=10, cburst=5, pir=20, pburst=8))
        register = P4RegisterEntry("cells", index=4999, data=0xDEADBEEF)
        await switch.write([~direct, ~counter, ~meter, ~register])
        (read,) = await read_all(switch, P4DirectCounterEntry("exact_counter"))
        assert isinstance(read, P4DirectCounterEntry)
        assert read.data == data
        await assert_reads(switch, P4CounterEntry("port_counter", index=3), [counter])
        await assert_reads(switch, P4MeterEntry("port_meter", index=2), [meter])
        await assert_reads(switch, P4RegisterEntry("cells", index=4999), [register])
        assert len(await read_all(switch, P4RegisterEntry("cells"))) == 5000


async def test_profiles_replication_value_sets(address: str) -> None:
    async with connected(address) as switch:
        member = P4ActionProfileMember("spread", member_id=1, action=P4TableAction("forward", port=2))
        group = P4ActionProfileGroup("spread", group_id=1, members=[P4Member(1, weight=2)], max_size=8)
        multicast = P4MulticastGroupEntry(5, replicas=[1, (2, 1)])
        clone = P4CloneSessionEntry(9, replicas=[3], packet_length_bytes=100)
        values = P4ValueSetEntry("label_types", members=[P4ValueSetMember(0x4321)])
        await switch.write([+member])
        await switch.write([+group, +multicast, +clone, ~values])
        await assert_reads(switch, P4ActionProfileMember(), [member])
        await assert_reads(switch, P4ActionProfileGroup(), [group])
        await assert_reads(switch, P4MulticastGroupEntry(), [multicast])
        await assert_reads(switch, P4CloneSessionEntry(), [clone])
        await assert_reads(switch, P4ValueSetEntry("label_types", members=[]), [values])


async def test_one_shots_are_read_back(address: str) -> None:
    async with connected(address) as switch:
        action = P4IndirectAction([(1, P4TableAction("forward", port=2)), (2, P4TableAction("forward", port=3))])
        entry = P4TableEntry("selector_table", match=Match(kind=4), action=action)
        await switch.write([+entry])
        await assert_reads(switch, P4TableEntry("selector_table"), [entry])


async def test_digest_and_packet_in_from_a_packet_out(address: str) -> None:
    """A packet-out to the CPU port comes back as a packet-in, with both headers done by the server."""
    async with connected(address) as switch:
        digest = P4DigestEntry("learn_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**9)
        await switch.write([+digest])
        await assert_reads(switch, P4DigestEntry(), [digest])
        payload = bytes.fromhex("020000000001 020000000009 0800") + bytes(46)
        waiting = asyncio.ensure_future(anext(aiter(switch.read_packets())))
        await asyncio.sleep(0)  # the generator listens from its first step on
        await switch.write([P4PacketOut(payload, egress_port=510, _pad=0)])
        packet = await asyncio.wait_for(waiting, 10)
        assert packet.payload == payload
        assert packet.metadata == {"ingress_port": 510, "reason": 5}


async def test_a_second_client_is_a_backup(address: str) -> None:
    async with connected(address) as first:
        backup = {"initial_election_id": 9, "p4info": None, "p4blob": None}
        async with connected(address, **backup) as second:
            assert first.is_primary
            assert not second.is_primary
            with pytest.raises(P4ClientError) as caught:
                await second.write([+P4MulticastGroupEntry(1, replicas=[1])])
            assert caught.value.code == GRPCStatusCode.PERMISSION_DENIED
            assert caught.value.message.startswith("Not primary")


async def test_a_later_client_finds_the_program_and_the_entries(address: str) -> None:
    entry = P4TableEntry("exact_table", match=Match(dst_addr=5), action=P4TableAction("measure", port=2))
    async with connected(address) as first:
        await first.write([+entry])
    async with connected(address) as later:
        assert later.is_primary
        await assert_reads(later, P4TableEntry("exact_table"), [entry])


async def test_a_bad_program_is_refused_with_the_reason(
    address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{ not json")
    with pytest.raises(SwitchFailFastError):
        async with connected(address, p4blob=bad):
            pass
    assert "INVALID_ARGUMENT message='p4_device_config: " in caplog.text
