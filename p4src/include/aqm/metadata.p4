// SPDX-License-Identifier: Apache-2.0
// The metadata of the programs that manage queues (codel.p4, fq_codel.p4, pie.p4, red.p4), through the queue.
//
// A program defines AQM_FIELDS, its own fields, before it includes this file, which it does before headers.p4.
#define FAIRLANE_METADATA_P4

#include "../sizes.p4"

struct metadata_t {
    // What parser, validate and route use.
    bit<16>  src_port;
    bit<16>  dst_port;
    bit<6>   dscp;
    bit<3>   pcp;
    bit<12>  vid;
    bit<32>  tunnel;
    bit<16>  l2_length;
    bit<16>  tcp_header;
    bit<16>  tcp_payload_len;
    bit<16>  length;            // bytes of the frame
    reason_t reason;            // a packet is dropped when it is not REASON_NONE
    port_t   port;              // egress port

    bit<1>   managed;           // the port has an entry: the packet is counted in, and out again
    bit<1>   ecn;               // packets that say ECT are marked instead of dropped
    bit<32>  queue;             // index of the state of its queue
    bit<32>  queue_packets;     // that wait in this queue, this one not among them
    bit<32>  queue_bytes;

    // Written by the traffic manager where it can: why the packet ended behind ingress, 0 for one that leaves.
    bit<8>   queue_drop;

    AQM_FIELDS
}
