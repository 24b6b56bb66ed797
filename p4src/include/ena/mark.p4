// SPDX-License-Identifier: Apache-2.0
// An ACK that leaves for the satellite link gets the option while a corrupted segment is missing.
//
// Checksums are changed by what was changed, never computed anew (RFC 1624 eq. 3).
#ifndef FAIRLANE_ENA_MARK_P4
#define FAIRLANE_ENA_MARK_P4

#include "names.p4"

control Mark(inout headers_t hdr, inout metadata_t meta) {
    LowestName() lowest_name;
    bit<32> sum;
    bit<33> due;

    // A stray had no answer when it came: the first ACK after it names it, all others the lowest.
    @hidden action choose_name() {
        flow_due.read(due, (bit<32>)meta.flow);
        bit<32> ahead = due[31:0] - hdr.tcp.ack_no;
        meta.name = (due[32:32] == 1 && ahead[31:31] == 0) ? due[31:0] : meta.name;
    }

    // The option's four words; ahead of all others, where no EOL (RFC 9293 section 3.2) can stand before it.
    @hidden action add_option() {
        hdr.ena.setValid();
        hdr.ena.kind = OPTION_EXPERIMENT;
        hdr.ena.length = 8;
        hdr.ena.exid = ENA_EXID;
        hdr.ena.sequence = meta.name;
        sum = (bit<32>)(~hdr.tcp.checksum) + (bit<32>)(OPTION_EXPERIMENT ++ 8w8) + (bit<32>)ENA_EXID
            + (bit<32>)meta.name[31:16] + (bit<32>)meta.name[15:0];
    }

    // Both lengths of TCP and that of IP grow.
    @hidden action grow() {
        hdr.tcp.data_offset = hdr.tcp.data_offset + 2;
        sum = sum + 0x2000 + 8;
        hdr.ipv4.total_len = hdr.ipv4.total_len + 8;
        bit<32> ip_sum = (bit<32>)(~hdr.ipv4.checksum) + 8;
        hdr.ipv4.checksum = ~(ip_sum[15:0] + (bit<16>)ip_sum[31:16]);
    }

    // The oldest of the blocks that the sender was told of goes: RFC 2018 section 4 has them newest first.
    @hidden action replace_block() {
        sum = sum + (bit<32>)(~hdr.sack_last.left[31:16]) + (bit<32>)(~hdr.sack_last.left[15:0])
            + (bit<32>)(~hdr.sack_last.right[31:16]) + (bit<32>)(~hdr.sack_last.right[15:0]) + 0xFFF7;
        hdr.sack.length = hdr.sack.length - 8;
        hdr.sack_last.setInvalid();
    }

    @hidden action fold() {
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
    }

    @hidden action finish() {
        hdr.tcp.checksum = ~sum[15:0];
        flow_due.write((bit<32>)meta.flow, 0);
        ena_notified.count((bit<32>)meta.port);
    }

    apply {
        lowest_name.apply(meta);
        if (meta.has_name == 1 && meta.tcp_payload_len == 0 && meta.has_ena == 0) {
            if (hdr.tcp.data_offset > 13 && !hdr.sack.isValid()) {
                ena_no_room.count((bit<32>)meta.port);
            } else {
                choose_name();
                add_option();
                if (hdr.sack.isValid() && hdr.sack_last.isValid()) {
                    replace_block();
                } else {
                    grow();
                }
                fold();
                fold();
                finish();
            }
        }
    }
}

#endif
