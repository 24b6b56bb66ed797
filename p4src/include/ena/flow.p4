// SPDX-License-Identifier: Apache-2.0
// A flow's place, and what its receiver's segments say on their way to the sender.
#ifndef FAIRLANE_ENA_FLOW_P4
#define FAIRLANE_ENA_FLOW_P4

#include "state.p4"

/// Finds the flow of a data segment: exactly it, or none.
control FindFlow(in headers_t hdr, inout metadata_t meta) {
    bit<32> index;
    bit<64> addresses;
    bit<32> ports;

    @hidden action find() {
        hash(index, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.tcp.src_port, hdr.tcp.dst_port },
             64w0x100000000);
        meta.flow = index[ENA_BITS-1:0];
        flow_addresses.read(addresses, (bit<32>)meta.flow);
        flow_ports.read(ports, (bit<32>)meta.flow);
        meta.is_known = (addresses == hdr.ipv4.src ++ hdr.ipv4.dst
                         && ports == hdr.tcp.src_port ++ hdr.tcp.dst_port) ? 1w1 : 1w0;
    }

    apply {
        find();
    }
}

/// Learns from a segment of the receiver. A flow begins with its receiver's SYN, or in its middle where the switch
/// saw none; its place is free when nobody has it, or had it for ENA_IDLE_US.
control HearReceiver(in headers_t hdr, inout metadata_t meta) {
    bit<32> index;
    bit<64> addresses;
    bit<32> ports;
    time_us_t heard;
    bit<1> is_free;
    bit<32> next;                 // sequence number of the receiver's next byte
    bit<16> window;

    // The 5-tuple of the data: the receiver's segments are turned round.
    @hidden action find_back() {
        hash(index, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.dst, hdr.ipv4.src, hdr.ipv4.protocol, hdr.tcp.dst_port, hdr.tcp.src_port },
             64w0x100000000);
        meta.flow = index[ENA_BITS-1:0];
        flow_addresses.read(addresses, (bit<32>)meta.flow);
        flow_ports.read(ports, (bit<32>)meta.flow);
        flow_heard.read(heard, (bit<32>)meta.flow);
        meta.is_known = (addresses == hdr.ipv4.dst ++ hdr.ipv4.src
                         && ports == hdr.tcp.dst_port ++ hdr.tcp.src_port) ? 1w1 : 1w0;
        is_free = (addresses == 0 || meta.now - heard >= ENA_IDLE_US) ? 1w1 : 1w0;
        next = hdr.tcp.seq_no + (bit<32>)meta.tcp_payload_len + (bit<32>)hdr.tcp.syn + (bit<32>)hdr.tcp.fin;
    }

    // The window of a SYN is not scaled, and what is kept will stand in ACKs, where it is.
    @hidden action begin() {
        bit<4> scale = (hdr.tcp.syn == 1) ? meta.scale : (bit<4>)ENA_UNKNOWN_SCALE;
        window = (hdr.tcp.syn == 1) ? hdr.tcp.window >> meta.scale : hdr.tcp.window;
        meta.is_known = 1;
        flow_addresses.write((bit<32>)meta.flow, hdr.ipv4.dst ++ hdr.ipv4.src);
        flow_ports.write((bit<32>)meta.flow, hdr.tcp.dst_port ++ hdr.tcp.src_port);
        flow_heard.write((bit<32>)meta.flow, meta.now);
        flow_ack.write((bit<32>)meta.flow, hdr.tcp.ack_no ++ next);
        flow_window.write((bit<32>)meta.flow, window ++ 10w0 ++ hdr.tcp.ack ++ meta.has_ts ++ scale);
        flow_timestamps.write((bit<32>)meta.flow, meta.ts_value ++ meta.ts_echo);
        flow_names.write((bit<32>)meta.flow, 0);
        flow_due.write((bit<32>)meta.flow, 0);
        flow_edge.write((bit<32>)meta.flow, (hdr.tcp.syn & hdr.tcp.ack) ++ hdr.tcp.ack_no);
    }

    // A segment that was overtaken says nothing new; the first ACK after a SYN without one does.
    @hidden action hear() {
        bit<64> said;
        bit<32> kept;
        flow_heard.write((bit<32>)meta.flow, meta.now);
        flow_ack.read(said, (bit<32>)meta.flow);
        flow_window.read(kept, (bit<32>)meta.flow);
        bit<32> newer = hdr.tcp.ack_no - said[63:32];
        if (newer[31:31] == 0 || kept[5:5] == 0) {
            bit<32> ahead = next - said[31:0];
            flow_ack.write((bit<32>)meta.flow, hdr.tcp.ack_no ++ ((ahead[31:31] == 0) ? next : said[31:0]));
            flow_window.write((bit<32>)meta.flow, hdr.tcp.window ++ 10w0 ++ 1w1 ++ meta.has_ts ++ kept[3:0]);
            flow_timestamps.write((bit<32>)meta.flow, meta.ts_value ++ meta.ts_echo);
        }
    }

    apply {
        find_back();
        if ((meta.is_known == 1 || is_free == 1) && hdr.tcp.syn == 1) {
            begin();
        } else if (meta.is_known == 1) {
            hear();
        } else if (is_free == 1) {
            begin();
        } else {
            ena_no_place.count((bit<32>)meta.port);
        }
    }
}

#endif
