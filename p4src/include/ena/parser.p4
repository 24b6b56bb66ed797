// SPDX-License-Identifier: Apache-2.0
// LaneParser's states with TCP options behind them, verification of TCP checksums over the payload, deparser.
//
// Options stay where they are, in front of the payload, but for two layouts that are taken apart: timestamps alone
// (every segment of the usual senders), and a SACK option that leaves no room for 8 bytes more. All other layouts
// are walked through in a copy.
#ifndef FAIRLANE_ENA_PARSER_P4
#define FAIRLANE_ENA_PARSER_P4

#include "headers.p4"
#define FAIRLANE_OWN_PARSER
#include "../parser.p4"

parser EnaParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    bit<320> options;             // what is left of them, from the most significant bit; zeros are the end

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.l2_length = 14;
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.pcp = hdr.vlan.pcp;
        meta.l2_length = 18;
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    // A segment is looked into when it is all there: IPv4 without options, not a fragment.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp = hdr.ipv4.dscp;
        verify(hdr.ipv4.version == 4, error.IpBadVersion);
        verify(hdr.ipv4.ihl >= 5, error.Ipv4BadHeaderLength);
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0 &&& 1, 0, PROTOCOL_TCP): parse_segment;
            (5, _, 0, PROTOCOL_TCP): parse_tcp;
            (5, _, 0, PROTOCOL_UDP): parse_udp;
            (5, _, _, _): accept;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
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

    // The checksum does not need the data offset, which may be what is wrong. Lengths that do not fit are
    // control/validate.p4's to refuse: then nothing is read behind the header.
    state parse_segment {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        meta.tcp_header = (bit<16>)(hdr.tcp.data_offset ++ 2w0);
        meta.tcp_length = hdr.ipv4.total_len - 20;
        transition select(hdr.ipv4.total_len < 40
                          || (bit<32>)hdr.ipv4.total_len + (bit<32>)meta.l2_length > standard_metadata.packet_length) {
            true: accept;
            default: parse_whole;
        }
    }

    state parse_whole {
        meta.tcp_whole = 1;
        transition select(hdr.tcp.data_offset < 6 || hdr.ipv4.total_len < meta.tcp_header + 20) {
            true: accept;
            default: parse_options;
        }
    }

    state parse_options {
        transition select(hdr.tcp.syn, hdr.tcp.data_offset, packet.lookahead<bit<32>>()) {
            (0, 8, ALIGNED_TIMESTAMPS): parse_timestamps;
            default: copy_options;
        }
    }

    state parse_timestamps {
        packet.extract(hdr.timestamps);
        meta.has_ts = 1;
        meta.ts_value = hdr.timestamps.value;
        meta.ts_echo = hdr.timestamps.echo;
        transition select(hdr.tcp.data_offset) {
            8: accept;
            default: parse_behind_timestamps;
        }
    }

    state parse_behind_timestamps {
        transition select(packet.lookahead<bit<32>>()) {
            ALIGNED_3_BLOCKS: parse_3_blocks;
            default: accept;
        }
    }

    state parse_3_blocks {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_1);
        packet.extract(hdr.sack_2);
        packet.extract(hdr.sack_last);
        transition accept;
    }

    state parse_4_blocks {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_1);
        packet.extract(hdr.sack_2);
        packet.extract(hdr.sack_3);
        packet.extract(hdr.sack_last);
        transition accept;
    }

    state copy_options {
        transition select(hdr.tcp.data_offset) {
            6: copy_4;
            7: copy_8;
            8: copy_12;
            9: copy_16;
            10: copy_20;
            11: copy_24;
            12: copy_28;
            13: copy_32;
            14: copy_36;
            default: copy_40;
        }
    }

    state copy_4 {
        options = packet.lookahead<bit<32>>() ++ 288w0;
        transition next_option;
    }

    state copy_8 {
        options = packet.lookahead<bit<64>>() ++ 256w0;
        transition next_option;
    }

    state copy_12 {
        options = packet.lookahead<bit<96>>() ++ 224w0;
        transition next_option;
    }

    state copy_16 {
        options = packet.lookahead<bit<128>>() ++ 192w0;
        transition next_option;
    }

    state copy_20 {
        options = packet.lookahead<bit<160>>() ++ 160w0;
        transition next_option;
    }

    state copy_24 {
        options = packet.lookahead<bit<192>>() ++ 128w0;
        transition next_option;
    }

    state copy_28 {
        options = packet.lookahead<bit<224>>() ++ 96w0;
        transition next_option;
    }

    state copy_32 {
        options = packet.lookahead<bit<256>>() ++ 64w0;
        transition next_option;
    }

    state copy_36 {
        options = packet.lookahead<bit<288>>() ++ 32w0;
        transition next_option;
    }

    state copy_40 {
        options = packet.lookahead<bit<320>>();
        transition next_option;
    }

    // At most 40 rounds: each takes a byte or more, and zeros come behind. A length that no option can
    // have ends it.
    state next_option {
        transition select(options[319:312], options[311:304]) {
            (OPTION_END, _): full;
            (OPTION_NOP, _): skip_byte;
            (_, 0..1): full;
            (_, 41..255): full;
            (OPTION_WINDOW_SCALE, 3): read_scale;
            (OPTION_TIMESTAMPS, 10): read_timestamps;
            (OPTION_EXPERIMENT, 8): read_experiment;
            default: skip_option;
        }
    }

    // No room for 8 bytes more: the last SACK block, when it is in one of the usual places, can make some.
    state full {
        transition select(hdr.tcp.data_offset, packet.lookahead<bit<32>>()) {
            (14, ALIGNED_4_BLOCKS): parse_4_blocks;
            (15, ALIGNED_TIMESTAMPS): parse_timestamps;
            default: accept;
        }
    }

    state skip_byte {
        options = options << 8;
        transition next_option;
    }

    state skip_option {
        bit<8> half = options[309:304] ++ 2w0;      // of its bits: BMv2 shifts by 255 at most
        options = (options << half) << half;
        transition next_option;
    }

    // Larger ones count as 14 (RFC 7323 section 2.3).
    state read_scale {
        meta.scale = (options[303:296] > 14) ? 4w14 : options[299:296];
        transition skip_option;
    }

    state read_timestamps {
        meta.has_ts = 1;
        meta.ts_value = options[303:272];
        meta.ts_echo = options[271:240];
        transition skip_option;
    }

    state read_experiment {
        meta.has_ena = (options[303:288] == ENA_EXID) ? 1w1 : meta.has_ena;
        transition skip_option;
    }
}

// One bit says that any of them is wrong: judge.p4 tells the IPv4 header's from the segment's.
control EnaVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    LaneVerifyChecksum() lane;

    apply {
        lane.apply(hdr, meta);
        verify_checksum_with_payload(
            meta.tcp_whole == 1,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.tcp_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.seq_no, hdr.tcp.ack_no, hdr.tcp.data_offset,
              hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack, hdr.tcp.psh, hdr.tcp.rst,
              hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, hdr.tcp.urgent_ptr,
              hdr.timestamps.nops, hdr.timestamps.kind, hdr.timestamps.length, hdr.timestamps.value,
              hdr.timestamps.echo,
              hdr.sack.nops, hdr.sack.kind, hdr.sack.length, hdr.sack_1.left, hdr.sack_1.right,
              hdr.sack_2.left, hdr.sack_2.right, hdr.sack_3.left, hdr.sack_3.right,
              hdr.sack_last.left, hdr.sack_last.right },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

// Of a segment that goes on, the checksum is only changed by what was changed (RFC 1624): what was wrong stays wrong.
control EnaComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    LaneComputeChecksum() lane;

    apply {
        lane.apply(hdr, meta);
        update_checksum(
            meta.made == 1,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(
            meta.made == 1,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.tcp_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.seq_no, hdr.tcp.ack_no, hdr.tcp.data_offset,
              hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack, hdr.tcp.psh, hdr.tcp.rst,
              hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, hdr.tcp.urgent_ptr,
              hdr.ena.kind, hdr.ena.length, hdr.ena.exid, hdr.ena.sequence,
              hdr.timestamps.nops, hdr.timestamps.kind, hdr.timestamps.length, hdr.timestamps.value,
              hdr.timestamps.echo },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

// UDP, the last of the others, is never in a packet with TCP.
control EnaDeparser(packet_out packet, in headers_t hdr) {
    LaneDeparser() lane;

    apply {
        lane.apply(packet, hdr);
        packet.emit(hdr.ena);
        packet.emit(hdr.timestamps);
        packet.emit(hdr.sack);
        packet.emit(hdr.sack_1);
        packet.emit(hdr.sack_2);
        packet.emit(hdr.sack_3);
        packet.emit(hdr.sack_last);
    }
}

#endif
