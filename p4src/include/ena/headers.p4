// SPDX-License-Identifier: Apache-2.0
// The TCP options that ena.p4 reads or writes, and the stack of headers with them in their places.
#ifndef FAIRLANE_ENA_HEADERS_P4
#define FAIRLANE_ENA_HEADERS_P4

#define FAIRLANE_OWN_HEADERS
#include "../headers.p4"

const bit<8> OPTION_END = 0;
const bit<8> OPTION_NOP = 1;
const bit<8> OPTION_WINDOW_SCALE = 3;
const bit<8> OPTION_TIMESTAMPS = 8;
const bit<8> OPTION_EXPERIMENT = 253;
const bit<16> ENA_EXID = 0xEB0A;

// The first four bytes of the layouts that need no search: RFC 7323 appendix A, and SACK behind two NOPs.
const bit<32> ALIGNED_TIMESTAMPS = 0x0101080A;
const bit<32> ALIGNED_3_BLOCKS = 0x0101051A;
const bit<32> ALIGNED_4_BLOCKS = 0x01010522;

// docs/concepts/ena.md, RFC 6994:
//   0       8       16              32
//   | 253   | 8     | ExID 0xEB0A   |
//   | error sequence number         |
header ena_option_t {
    bit<8>  kind;
    bit<8>  length;
    bit<16> exid;
    bit<32> sequence;
}

// RFC 7323 section 3.2 behind two NOPs.
header timestamps_t {
    bit<16> nops;
    bit<8>  kind;
    bit<8>  length;
    bit<32> value;
    bit<32> echo;
}

// RFC 2018 section 3 behind two NOPs, its blocks apart: the last one can make room.
header sack_t {
    bit<16> nops;
    bit<8>  kind;
    bit<8>  length;
}

header sack_block_t {
    bit<32> left;
    bit<32> right;
}

// Options are parsed only as far as a rule needs them; the rest of them is in front of the payload.
struct headers_t {
    packet_in_t    packet_in;
    packet_out_t   packet_out;
    ethernet_t     ethernet;
    probe_t        probe;           // never valid here
    vlan_t         vlan;
    vlan_t         inner_vlan;      // never valid here
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    tcp_t          tcp;
    ena_option_t   ena;           // never of a packet that came: written by us, in front of all options
    timestamps_t   timestamps;
    sack_t         sack;          // parsed only where its last block must make room
    sack_block_t   sack_1;
    sack_block_t   sack_2;
    sack_block_t   sack_3;        // of four blocks only
    sack_block_t   sack_last;
    udp_t          udp;
}

#endif
