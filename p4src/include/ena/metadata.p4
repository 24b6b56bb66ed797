// SPDX-License-Identifier: Apache-2.0
// The metadata that goes with a packet of ena.p4 through the queue.
#ifndef FAIRLANE_METADATA_P4
#define FAIRLANE_METADATA_P4

#include "../sizes.p4"

struct metadata_t {
    // Set by the parser, as in qthresh.p4.
    bit<16>   src_port;
    bit<16>   dst_port;
    bit<6>    dscp;               // 0 where there is no IP header
    bit<3>    pcp;                // 0 where there is no VLAN tag
    bit<16>   l2_length;          // bytes in front of the IP header
    bit<16>   tcp_header;         // bytes; 0 where there is none

    // What ingress decided. A packet is dropped when reason is not REASON_NONE.
    reason_t  reason;
    port_t    port;               // egress port
    bit<16>   tcp_payload_len;    // bytes; 0 when there is no TCP header
    bit<16>   length;             // bytes of the frame
    time_us_t now;                // ingress time

    // The segment, where its checksum can be judged: IPv4 without options, not a fragment, lengths that fit.
    bit<1>    tcp_whole;
    bit<1>    corrupted;          // the IPv4 header is good, the segment is not
    bit<16>   tcp_length;         // header and payload, bytes

    // What its options say.
    bit<1>    has_ts;             // timestamps (RFC 7323 section 3)
    bit<32>   ts_value;
    bit<32>   ts_echo;
    bit<4>    scale;              // window scale of a SYN; 0 without
    bit<1>    has_ena;            // it names a corrupted segment already

    // The flow, by the direction of its data.
    bit<ENA_BITS> flow;
    bit<1>    is_known;

    // A name: the sequence number of a corrupted segment that is still missing. The lowest of the flow's that are
    // open, for an ACK; or the one to add.
    bit<1>    has_name;
    bit<1>    adds_name;
    bit<32>   name;

    // Carried through the queue: the packet was a corrupted segment and is an ACK now.
    bit<1>    made;
    bit<16>   made_length;        // bytes of the frame
}

#endif
