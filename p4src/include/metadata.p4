// SPDX-License-Identifier: Apache-2.0
// The metadata that goes with a packet of qthresh.p4 through the queue.
//
// A program with metadata of its own (gfr.p4) includes it before headers.p4, under this same guard. It needs
// what parser, validate and route use: src_port .. tcp_header, reason, port, tcp_payload_len, length.
#ifndef FAIRLANE_METADATA_P4
#define FAIRLANE_METADATA_P4

#include "sizes.p4"

struct metadata_t {
    // Set by the parser: 0 where the packet has no ports (other protocols, later fragments).
    bit<16>   src_port;
    bit<16>   dst_port;
    bit<6>    dscp;               // 0 where there is no IP header
    bit<3>    pcp;                // 0 where there is no VLAN tag
    bit<12>   vid;                // of the outer tag
    bit<32>   tunnel;             // MPLS label or PPPoE session; 0 where there is none
    bit<16>   l2_length;          // bytes in front of the IP header
    bit<16>   tcp_header;         // bytes; 0 where there is none

    // What ingress decided. A packet is dropped when reason is not REASON_NONE.
    reason_t  reason;
    port_t    port;               // egress port
    class_t   traffic_class;
    bit<16>   tcp_payload_len;    // bytes; 0 when there is no TCP header

    // The flow's lane.
    bit<32>   flow_hash;          // crc32 of the 5-tuple; valid with a payload of TCP, and without an entry
    bit<32>   lane_hash;          // what chooses the fallback slot; valid without an entry
    bit<1>    is_flow;            // IP, or a frame with an EtherType: a packet-out and a probe are none
    bit<1>    has_entry;
    slot_t    slot;
    slot_t    lane;               // the slot in which its packets are counted: slot, or a fallback slot for some time after its entry
    bit<16>   queue_id;           // of the port; a traffic manager without queues ignores it
    bit<32>   queue_weight;       // of that queue from now on

    // What the policy of the class says, and the flow's entry over it.
    bit<1>    limited;            // a threshold holds
    bit<16>   qthresh;            // packets
    bit<16>   weight;             // 1/256
    bit<32>   spacing_us;         // between two refusals of the flow below twice its threshold; 0: none
    bit<8>    tap;                // the flow's newest tap; 0: none
    bit<16>   lanes;              // queues of flows with an entry, a power of two; 0: one queue for all
    bit<16>   lanes_by_hash;      // queues of the other flows, a power of two

    // Limits in force for this packet.
    bit<32>   port_max_packets;
    bit<32>   port_max_bytes;
    bit<32>   report_period_us;
    bit<1>    ecn;                // the port marks, and the packet says ECT
    bit<1>    mark;               // it is admitted above its flow's threshold: CE

    // Carried through the queue, so that exactly what was counted in is counted out.
    bit<1>    counted;
    bit<16>   length;             // bytes of the frame
    time_us_t now;                // ingress time
    bit<1>    report_due;         // the port's report period is over
    bit<1>    tell;               // there may be something to tell the controller
    probe_kind_t probe;           // what the packet is to the switch, PROBE_NONE for all but probes

    // Written by the traffic manager where it can: why the packet ended behind ingress, 0 for one that leaves.
    bit<8>    queue_drop;

    // A T_res sample that this packet, an ACK, completes (control/t_res.p4).
    bit<1>    t_res_valid;
    bit<32>   t_res_us;
    bit<32>   t_res_flow_hash;
    bit<32>   t_res_about;        // 4 unused ++ port ++ class ++ frame length of the probe
}

const probe_kind_t PROBE_NONE   = 0;
const probe_kind_t PROBE_SENT   = 1;   // the controller's, on its way out
const probe_kind_t PROBE_TURNED = 2;   // a neighbour's, on its way back
const probe_kind_t PROBE_HOME   = 3;   // ours, on its way to the controller

#endif
