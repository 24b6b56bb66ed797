// SPDX-License-Identifier: Apache-2.0
// Refuses frames that are not what they say: short, wrong version, IHL, length or checksum, TTL spent.
#ifndef FAIRLANE_VALIDATE_P4
#define FAIRLANE_VALIDATE_P4

#include "../headers.p4"

control Validate(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    bit<16> headers_length;

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
        } else if (hdr.ipv4.isValid()) {
            headers_length = (bit<16>)(hdr.ipv4.ihl ++ 2w0) + meta.tcp_header;
            meta.tcp_payload_len = hdr.ipv4.total_len - headers_length;
            // One test for a good packet; which test failed is asked only then.
            if (standard_metadata.checksum_error == 1
                || hdr.ipv4.total_len < headers_length
                || hdr.ipv4.total_len |+| meta.l2_length > meta.length
                || hdr.ipv4.ttl <= 1) {
                if (standard_metadata.checksum_error == 1) {
                    meta.reason = REASON_BAD_CHECKSUM;
                } else if (hdr.ipv4.total_len < headers_length
                           || hdr.ipv4.total_len |+| meta.l2_length > meta.length) {
                    meta.reason = REASON_BAD_LENGTH;
                } else {
                    meta.reason = REASON_TTL;
                }
            }
        } else if (hdr.ipv6.isValid()) {
            meta.tcp_payload_len = hdr.ipv6.payload_len - meta.tcp_header;
            if (hdr.ipv6.payload_len < meta.tcp_header
                || hdr.ipv6.payload_len |+| (meta.l2_length + 40) > meta.length) {
                meta.reason = REASON_BAD_LENGTH;
            } else if (hdr.ipv6.hop_limit <= 1) {
                meta.reason = REASON_TTL;
            }
        }
    }
}

#endif
