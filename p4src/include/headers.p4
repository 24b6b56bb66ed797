// SPDX-License-Identifier: Apache-2.0
// Packet headers and controller headers.
#ifndef FAIRLANE_HEADERS_P4
#define FAIRLANE_HEADERS_P4

#include "sizes.p4"
#include "metadata.p4"

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86DD;
const bit<16> ETHERTYPE_VLAN = 0x8100;
@noWarn("unused") const bit<16> ETHERTYPE_SERVICE_VLAN = 0x88A8;   // IEEE 802.1ad, the outer of two tags
@noWarn("unused") const bit<16> ETHERTYPE_MPLS = 0x8847;
@noWarn("unused") const bit<16> ETHERTYPE_MPLS_UPSTREAM = 0x8848;
@noWarn("unused") const bit<16> ETHERTYPE_PPPOE = 0x8864;          // session stage
@noWarn("unused") const bit<16> ETHERTYPE_LOCAL = 0x88B5;    // IEEE 802 local experimental EtherType 1

@noWarn("unused") const bit<16> PROBE_MAGIC = 0xFA1A;        // begins our frames of that EtherType
@noWarn("unused") const bit<8> PROBE_OUT = 1;                // from the switch whose link it measures
@noWarn("unused") const bit<8> PROBE_BACK = 2;               // turned round by the one at the other end

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

error {
    IpBadVersion,
    Ipv4BadHeaderLength
}

// P4Runtime packet I/O (spec 1.5 section 16.1).
@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> _pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

// A probe of the link behind a port (control/probe.p4), right behind the Ethernet header.
header probe_t {
    bit<16> magic;
    bit<8>  kind;
    bit<8>  _reserved;
    bit<32> nonce;            // the controller's, not 0; its low 3 bits are the place among those outstanding at the port
    bit<48> departed_us;      // when its transmission began, on the clock of the switch that measures
    bit<48> returned_us;      // when it was back there
    bit<32> turn_us;          // what it stayed at the other end, on that one's clock
}

// IEEE 802.1Q; the outer of two tags may be of 802.1ad.
header vlan_t {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
    bit<16> ether_type;
}

// RFC 791, without the options.
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv4_options_t {
    varbit<320> options;
}

// RFC 8200. Extension headers are payload: such a packet is a flow by addresses and next header.
header ipv6_t {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_len;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

// RFC 9293, without the options.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq_no;
    bit<32> ack_no;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<1>  cwr;
    bit<1>  ece;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_ptr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// A program with headers of its own (ena.p4) says so and declares the struct itself, with all of these in it.
#ifndef FAIRLANE_OWN_HEADERS
struct headers_t {
    packet_in_t    packet_in;
    packet_out_t   packet_out;
    ethernet_t     ethernet;
    probe_t        probe;
    vlan_t         vlan;
    vlan_t         inner_vlan;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    tcp_t          tcp;
    udp_t          udp;
}
#endif

#endif
