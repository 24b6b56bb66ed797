// SPDX-License-Identifier: Apache-2.0
// The registers and counters of ena.p4. A flow is a direction of data over the satellite link: from its sender on
// the near side to its receiver on this side; what is kept of it is what the receiver has said.
//
// BMv2 makes an action atomic, not a control block: but ingress, where all of it is, has one thread there.
#ifndef FAIRLANE_ENA_STATE_P4
#define FAIRLANE_ENA_STATE_P4

#include "headers.p4"

// Whose place it is, by the low bits of crc32 of the 5-tuple: an exact match, not a guess.
register<bit<64>>(ENA_FLOWS) flow_addresses;     // sender ++ receiver, IPv4; 0: free
register<bit<32>>(ENA_FLOWS) flow_ports;         // of the sender ++ of the receiver
register<time_us_t>(ENA_FLOWS) flow_heard;       // us; when the receiver last said something

// What the receiver said last.
register<bit<64>>(ENA_FLOWS) flow_ack;           // the newest ACK number ++ the sequence number of its next byte
register<bit<32>>(ENA_FLOWS) flow_window;        // window as in a header(16) ++ unused(10) ++ has_ack(1) ++ has_ts(1) ++ scale(4)
register<bit<64>>(ENA_FLOWS) flow_timestamps;    // value ++ echo

// Its open names, the lowest first: a ring of ENA_NAMES places a flow.
register<bit<16>>(ENA_FLOWS) flow_names;         // place of the lowest(5) ++ how many(6) ++ unused(5)
register<bit<33>>(ENA_FLOWS) flow_edge;          // known(1) ++ the sequence number behind the highest byte that came
register<bit<33>>(ENA_FLOWS) flow_due;           // due(1) ++ a stray's name that no ACK has carried yet
register<bit<33>>(ENA_NAME_CELLS) names;         // [flow ++ place] closed(1) ++ sequence number of a corrupted segment

// The last packet of a port whose flow nobody knows, because what was hit is where that stands (stray.p4).
register<bit<16>>(PORTS) stray_length;           // bytes of the IP packet; 0: none
register<time_us_t>(PORTS) stray_came;           // us

counter(PORTS, CounterType.packets_and_bytes) passed;          // [egress port]; not the ACKs that are made
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;   // [port ++ reason]
counter(PORTS, CounterType.packets_and_bytes) ena_corrupted;   // [ingress port] attributed: those that became ACKs, and strays
counter(PORTS, CounterType.packets) ena_strays;                // [ingress port] found by the gap that they left
counter(PORTS, CounterType.packets) ena_notified;              // [egress port] ACKs with the option, made or marked
counter(PORTS, CounterType.packets) ena_no_room;               // [egress port] ACKs that should have had it
counter(PORTS, CounterType.packets) ena_no_place;              // [egress port] ACKs of flows whose place another has

#endif
