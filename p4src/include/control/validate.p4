// SPDX-License-Identifier: Apache-2.0
// Refuses frames that are not what they say: short, wrong version, IHL, length or checksum, TTL spent.
#ifndef FAIRLANE_VALIDATE_P4
#define FAIRLANE_VALIDATE_P4

#include "../headers.p4"

control Validate(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    bit<32> l2_length = 14;
    bit<32> l3_header;
    bit<32> l4_header = 0;

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            if (standard_metadata.parser_error == error.PacketTooShort) {
                meta.reason = REASON_SHORT;
            } else if (standard_metadata.parser_error == error.IpBadVersion) {
                meta.reason = REASON_BAD_VERSION;
            } else if (standard_metadata.parser_error == error.Ipv4BadHeaderLength) {
                meta.reason = REASON_BAD_IHL;
            } else {
                meta.reason = REASON_PARSER;
            }
        } else {
            if (hdr.vlan.isValid()) {
                l2_length = 18;
            }
            if (hdr.tcp.isValid()) {
                l4_header = (bit<32>)(hdr.tcp.data_offset ++ 2w0);
            }
            if (hdr.ipv4.isValid()) {
                l3_header = (bit<32>)(hdr.ipv4.ihl ++ 2w0);
                if (standard_metadata.checksum_error == 1) {
                    meta.reason = REASON_BAD_CHECKSUM;
                } else if ((bit<32>)hdr.ipv4.total_len < l3_header + l4_header
                           || (bit<32>)hdr.ipv4.total_len + l2_length > standard_metadata.packet_length) {
                    meta.reason = REASON_BAD_LENGTH;
                } else if (hdr.ipv4.ttl <= 1) {
                    meta.reason = REASON_TTL;
                }
                meta.tcp_payload_len = hdr.ipv4.total_len - (bit<16>)(l3_header + l4_header);
            } else if (hdr.ipv6.isValid()) {
                if ((bit<32>)hdr.ipv6.payload_len < l4_header
                    || (bit<32>)hdr.ipv6.payload_len + 40 + l2_length > standard_metadata.packet_length) {
                    meta.reason = REASON_BAD_LENGTH;
                } else if (hdr.ipv6.hop_limit <= 1) {
                    meta.reason = REASON_TTL;
                }
                meta.tcp_payload_len = hdr.ipv6.payload_len - (bit<16>)l4_header;
            }
        }
    }
}

#endif
