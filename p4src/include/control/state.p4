// SPDX-License-Identifier: Apache-2.0
// The registers and counters that more than one control, or both pipelines, touch.
//
// BMv2 makes an action atomic, not a control block, and runs ingress and egress in threads of their own.
// So every read-modify-write of a register here is inside ONE action.
#ifndef FAIRLANE_STATE_P4
#define FAIRLANE_STATE_P4

#include "../headers.p4"

// Packets that wait in the egress queue: up at admission, down when the packet is dequeued. A packet is
// dequeued when its transmission starts, so the packet on the wire is not counted (as in ns-2's queue).
register<bit<32>>(SLOTS) flow_occupancy;         // packets of the flow, by slot
register<bit<32>>(PORTS) port_occupancy;         // packets of all flows, by port
register<bit<32>>(PORTS) port_occupancy_bytes;

// Time of a flow's last admission, us: a flow is active in a report interval when it was admitted in it.
register<time_us_t>(SLOTS) flow_seen;

// What was refused of a flow.
register<time_us_t>(SLOTS) flow_refused;         // us; when it last lost a packet while refusals are spaced
register<bit<8>>(SLOTS) flow_tap;                // the last tap that it has had

// The port's running report (control/report.p4).
register<time_us_t>(PORTS) report_start;         // us; when the interval began
register<bit<32>>(PORTS) report_flows;           // N_C so far
register<bit<32>>(PORTS) busy_us;                // time in which the queue held packets, whole services only
register<bit<32>>(PORTS) busy_bytes;             // bytes sent in that time
register<bit<32>>(PORTS) busy_packets;

// What passed and what did not. packets_and_bytes, bytes of the whole frame.
counter(ADMITTED_COUNTERS, CounterType.packets_and_bytes) admitted;   // [port ++ class], ports with a limit
counter(PORTS, CounterType.packets_and_bytes) passed;                 // [port], ports without a limit
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;          // [port ++ reason]
counter(SLOTS, CounterType.packets_and_bytes) flow_drops;             // [slot], refused by admission
counter(PORTS, CounterType.packets) collisions;                       // [port], see control/flow.p4

#endif
