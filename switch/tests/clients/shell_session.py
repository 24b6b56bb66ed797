# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The session of p4runtime-shell's README and of its usage pages, as a script: entries of every kind, written and read back."""

from __future__ import annotations

import sys
from typing import Any

import p4runtime_sh.shell as sh

GRPC, P4INFO, PROGRAM = sys.argv[1:]
CPU_PORT = "510"


def check(what: str, got: object, want: object) -> None:
    print(
        "PASSED" if got == want else "FAILED", what.replace(" ", "_"), "" if got == want else f"{got!r}, not {want!r}"
    )


def found(entity: Any) -> list[Any]:
    """What a read gives: as long as the callback runs, and copied, as the shell uses one object for all."""
    entries: list[Any] = []
    entity.read(lambda entry: entries.append(entry))
    return entries


def refused(act: Any) -> bool:
    try:
        act()
    except Exception as error:
        return "ALREADY_EXISTS" in str(error)
    return False


sh.setup(device_id=1, grpc_addr=GRPC, election_id=(0, 1), config=sh.FwdPipeConfig(P4INFO, PROGRAM))

entry = sh.TableEntry("EntitiesIngress.lpm_table")(action="forward")
entry.match["value"] = "10.0.0.0/16"
entry.action["port"] = "3"
entry.insert()
check("an entry is read", len(found(sh.TableEntry("lpm_table"))), 1)
check("it is not inserted twice", refused(entry.insert), True)
entry.action["port"] = "4"
entry.modify()
sh.TableEntry("lpm_table").read(lambda each: each.delete())
check("entries are deleted as they are read", found(sh.TableEntry("lpm_table")), [])

sh.TableEntry("exact_table")(action="drop", is_default=True).modify()
check("the default entry is read", len(found(sh.TableEntry("exact_table")(is_default=True))), 1)

entry = sh.TableEntry("ternary_table")(action="forward")
entry.priority = 7
entry.match.set(value="0x0a000000&&&0xff000000", small="1..0xffe", kind="4", ingress_port="1")
entry.action["port"] = "2"
entry.insert()
check("ternary, range, optional", len(found(sh.TableEntry("ternary_table"))), 1)

entry = sh.TableEntry("exact_table")(action="measure")
entry.match["dst_addr"] = "02:00:00:00:00:05"
entry.action["port"] = "2"
entry.counter_data.packet_count = 3
entry.insert()
with_counter = sh.TableEntry("exact_table")
with_counter.counter_data.byte_count = 0
check("the counter comes with its entry", [each.counter_data.packet_count for each in found(with_counter)], [3])
check("and by itself", [each.packet_count for each in found(sh.DirectCounterEntry("exact_counter"))], [3])
meter = sh.DirectMeterEntry("exact_meter")
meter.table_entry.match["dst_addr"] = "02:00:00:00:00:05"
meter.cir, meter.cburst, meter.pir, meter.pburst = 10, 20, 30, 40
meter.modify()
check("direct meter", [(each.cir, each.pburst) for each in found(meter)], [(10, 40)])

counter = sh.CounterEntry("port_counter")
counter.index, counter.packet_count = 3, 5
counter.modify()
check("counters", sum(each.packet_count for each in found(sh.CounterEntry("port_counter"))), 5)
meter = sh.MeterEntry("port_meter")
meter.index, meter.cir, meter.cburst, meter.pir, meter.pburst = 2, 1, 2, 3, 4
meter.modify()
check("meters", sum(each.cir or 0 for each in found(sh.MeterEntry("port_meter"))), 1)

for what, make in (("multicast group", sh.MulticastGroupEntry), ("clone session", sh.CloneSessionEntry)):
    replicas = make(1).add(1, 1).add(1, 2).add(2, 3)
    replicas.insert()
    check(what, len(found(make(0))), 1)
    replicas.delete()

member = sh.ActionProfileMember("spread")(member_id=1, action="forward")
member.action["port"] = "2"
member.insert()
group = sh.ActionProfileGroup("spread")(group_id=1)
group.max_size = 8
group.add(1)
group.insert()
check("groups", len(found(sh.ActionProfileGroup("spread"))), 1)
group.delete()
member.delete()

entry, action = sh.TableEntry("selector_table"), sh.Action("forward")
entry.match["kind"] = "4"
action["port"] = "2"
entry.oneshot.add(action)
entry.insert()
check("one-shot", ["action_profile_action_set" in str(each) for each in found(sh.TableEntry("selector_table"))], [True])

frame = bytes.fromhex("020000000001" + "020000000009" + "0800") + bytes(46)
packets = sh.PacketIn()
sh.PacketOut(payload=frame, egress_port=CPU_PORT, _pad="0").send()
check("packet-out, packet-in", [each.packet.payload for each in packets.sniff(timeout=3)], [frame])
sh.teardown()
