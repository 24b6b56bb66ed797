// SPDX-License-Identifier: Apache-2.0
// A corrupted data segment becomes an ACK to its sender that names it, as its receiver would have answered. All
// other ACKs name the lowest (mark.p4).
//
// The segment itself ends here: the receiver would drop it for its checksum, unseen.
#ifndef FAIRLANE_ENA_NOTIFY_P4
#define FAIRLANE_ENA_NOTIFY_P4

#include "flow.p4"
#include "names.p4"

control Notify(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    bit<64> said;
    bit<32> kept;
    bit<64> timestamps;
    bit<1> is_inside;

    // Any bit may be wrong, those of the sequence number too: only one that the receiver waits for is believed.
    @hidden action look() {
        flow_ack.read(said, (bit<32>)meta.flow);
        flow_window.read(kept, (bit<32>)meta.flow);
        bit<32> offset = hdr.tcp.seq_no - said[63:32];
        bit<32> window = (bit<32>)kept[31:16] << kept[3:0];
        is_inside = (kept[5:5] == 1 && offset < window) ? 1w1 : 1w0;
    }

    @hidden action name_segment() {
        meta.name = hdr.tcp.seq_no;
        meta.adds_name = 1;
    }

    @hidden action answer() {
        bit<48> neighbour = hdr.ethernet.src;
        bit<32> receiver = hdr.ipv4.dst;
        bit<16> receiver_port = hdr.tcp.dst_port;

        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = neighbour;

        hdr.ipv4.ecn = 0;                          // RFC 3168 section 6.1.4: not of a pure ACK
        hdr.ipv4.total_len = 48;
        hdr.ipv4.identification = 0;               // atomic: RFC 6864 section 4.1
        hdr.ipv4.flags = 2;
        hdr.ipv4.ttl = ENA_TTL;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = receiver;

        hdr.tcp.dst_port = hdr.tcp.src_port;
        hdr.tcp.src_port = receiver_port;
        hdr.tcp.seq_no = said[31:0];
        hdr.tcp.ack_no = said[63:32];
        hdr.tcp.data_offset = 7;
        hdr.tcp.reserved = 0;
        hdr.tcp.cwr = 0;
        hdr.tcp.ece = 0;
        hdr.tcp.urg = 0;
        hdr.tcp.ack = 1;
        hdr.tcp.psh = 0;
        hdr.tcp.rst = 0;
        hdr.tcp.syn = 0;
        hdr.tcp.fin = 0;
        hdr.tcp.window = kept[31:16];
        hdr.tcp.urgent_ptr = 0;
        meta.tcp_length = 28;

        hdr.ena.setValid();
        hdr.ena.kind = OPTION_EXPERIMENT;
        hdr.ena.length = 8;
        hdr.ena.exid = ENA_EXID;
        hdr.ena.sequence = meta.name;

        hdr.timestamps.setInvalid();
        hdr.sack.setInvalid();
        hdr.sack_1.setInvalid();
        hdr.sack_2.setInvalid();
        hdr.sack_3.setInvalid();
        hdr.sack_last.setInvalid();

        meta.made = 1;
        meta.made_length = meta.l2_length + 48;
        meta.port = standard_metadata.ingress_port;
    }

    // RFC 7323 section 3.2: without them the sender would drop it.
    @hidden action add_timestamps() {
        flow_timestamps.read(timestamps, (bit<32>)meta.flow);
        hdr.timestamps.setValid();
        hdr.timestamps.nops = OPTION_NOP ++ OPTION_NOP;
        hdr.timestamps.kind = OPTION_TIMESTAMPS;
        hdr.timestamps.length = 10;
        hdr.timestamps.value = timestamps[63:32];
        hdr.timestamps.echo = timestamps[31:0];
        hdr.tcp.data_offset = 10;
        hdr.ipv4.total_len = 60;
        meta.tcp_length = 40;
        meta.made_length = meta.made_length + 12;
    }

    apply {
        meta.reason = REASON_CORRUPTED;
        if (meta.is_known == 1 && meta.tcp_payload_len != 0) {
            look();
            if (is_inside == 1) {
                name_segment();
                answer();
                if (kept[4:4] == 1) {
                    add_timestamps();
                }
                meta.reason = REASON_NONE;
                ena_corrupted.count((bit<32>)meta.port);
                ena_notified.count((bit<32>)meta.port);
            }
        }
    }
}

#endif
