// SPDX-License-Identifier: Apache-2.0
// Whose checksum is wrong: v1model has one bit for all of a packet's, and a bad IPv4 header is no segment of anyone.
#ifndef FAIRLANE_ENA_JUDGE_P4
#define FAIRLANE_ENA_JUDGE_P4

#include "headers.p4"

/// Takes the error from the packet when only its segment has one; what is left is control/validate.p4's.
control Judge(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    bit<32> sum;

    // RFC 1071 over a header of 20 bytes: a good one adds up to 0xFFFF.
    @hidden action add_ipv4_header() {
        sum = (bit<32>)(hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn)
            + (bit<32>)hdr.ipv4.total_len
            + (bit<32>)hdr.ipv4.identification
            + (bit<32>)(hdr.ipv4.flags ++ hdr.ipv4.fragment_offset)
            + (bit<32>)(hdr.ipv4.ttl ++ hdr.ipv4.protocol)
            + (bit<32>)hdr.ipv4.checksum
            + (bit<32>)hdr.ipv4.src[31:16]
            + (bit<32>)hdr.ipv4.src[15:0]
            + (bit<32>)hdr.ipv4.dst[31:16]
            + (bit<32>)hdr.ipv4.dst[15:0];
    }

    @hidden action fold() {
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
    }

    apply {
        if (meta.tcp_whole == 1) {
            add_ipv4_header();
            fold();
            fold();
            if (sum == 0xFFFF) {
                standard_metadata.checksum_error = 0;
                meta.corrupted = 1;
            }
        }
    }
}

#endif
