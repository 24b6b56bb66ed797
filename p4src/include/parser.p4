// SPDX-License-Identifier: Apache-2.0
// Parser, IPv4 checksum verification and deparser.
#ifndef FAIRLANE_PARSER_P4
#define FAIRLANE_PARSER_P4

#include "headers.p4"

// A program that parses more (ena.p4) has a parser of its own, and uses the controls below.
#ifndef FAIRLANE_OWN_PARSER
parser LaneParser(packet_in packet,
                  out headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    // What follows the header goes out as it is: only whether it is a probe is looked at.
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition select(packet.lookahead<bit<136>>()[39:0]) {
            ETHERTYPE_LOCAL ++ PROBE_MAGIC ++ PROBE_OUT: parse_probe_out;
            default: accept;
        }
    }

    state parse_probe_out {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.l2_length = 14;
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_SERVICE_VLAN: parse_vlan;
            ETHERTYPE_LOCAL: parse_local;
            ETHERTYPE_MPLS: parse_mpls;
            ETHERTYPE_MPLS_UPSTREAM: parse_mpls;
            ETHERTYPE_PPPOE: parse_pppoe;
            default: accept;
        }
    }

    state parse_local {
        transition select(packet.lookahead<bit<24>>()) {
            PROBE_MAGIC ++ PROBE_OUT: parse_probe;
            PROBE_MAGIC ++ PROBE_BACK: parse_probe;
            default: accept;
        }
    }

    state parse_probe {
        packet.extract(hdr.probe);
        transition accept;
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.pcp = hdr.vlan.pcp;
        meta.vid = hdr.vlan.vid;
        meta.l2_length = 18;
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_inner_vlan;
            ETHERTYPE_MPLS: parse_mpls;
            ETHERTYPE_MPLS_UPSTREAM: parse_mpls;
            ETHERTYPE_PPPOE: parse_pppoe;
            default: accept;
        }
    }

    // Class and tenant are the outer tag's.
    state parse_inner_vlan {
        packet.extract(hdr.inner_vlan);
        meta.l2_length = 22;
        transition select(hdr.inner_vlan.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_MPLS: parse_mpls;
            ETHERTYPE_MPLS_UPSTREAM: parse_mpls;
            ETHERTYPE_PPPOE: parse_pppoe;
            default: accept;
        }
    }

    // A tunnel is looked at only as far as it names its flow: the top label, the session.
    state parse_mpls {
        meta.tunnel = (bit<32>)packet.lookahead<bit<32>>()[31:12];
        transition accept;
    }

    state parse_pppoe {
        meta.tunnel = (bit<32>)packet.lookahead<bit<32>>()[15:0];
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp = hdr.ipv4.dscp;
        verify(hdr.ipv4.version == 4, error.IpBadVersion);
        verify(hdr.ipv4.ihl >= 5, error.Ipv4BadHeaderLength);
        transition select(hdr.ipv4.ihl) {
            5: parse_ipv4_payload;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_ipv4_payload;
    }

    // Only the first fragment has ports: later ones are a flow by addresses and protocol.
    state parse_ipv4_payload {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_tcp;
            (0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.dscp = hdr.ipv6.dscp;
        verify(hdr.ipv6.version == 6, error.IpBadVersion);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        meta.tcp_header = (bit<16>)(hdr.tcp.data_offset ++ 2w0);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        transition accept;
    }
}
#endif

control LaneVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(
            hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Nothing to do: control/route.p4 keeps the checksum right when it counts the TTL down (RFC 1624).
control LaneComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LaneDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
        packet.emit(hdr.vlan);
        packet.emit(hdr.inner_vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif
