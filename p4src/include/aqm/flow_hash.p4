// SPDX-License-Identifier: Apache-2.0
// The flow of a packet as a number below `modulo`, meta.flow: CRC-32 of addresses, protocol and ports; of the Ethernet header where there is no IP.
// A program defines FLOW_SALT before, what is hashed in front of them: fields with a comma behind each, or nothing.
#ifndef FAIRLANE_AQM_FLOW_HASH_P4
#define FAIRLANE_AQM_FLOW_HASH_P4

#include "../headers.p4"

control FlowHash(in headers_t hdr, inout metadata_t meta, in bit<64> modulo) {
    @hidden action hash_v4() {
        hash(meta.flow, HashAlgorithm.crc32, 32w0,
             { FLOW_SALT hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.src_port, meta.dst_port }, modulo);
    }

    @hidden action hash_v6() {
        hash(meta.flow, HashAlgorithm.crc32, 32w0,
             { FLOW_SALT hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, meta.src_port, meta.dst_port }, modulo);
    }

    @hidden action hash_other() {
        hash(meta.flow, HashAlgorithm.crc32, 32w0, { FLOW_SALT hdr.ethernet.src, hdr.ethernet.dst, hdr.ethernet.ether_type }, modulo);
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hash_v4();
        } else if (hdr.ipv6.isValid()) {
            hash_v6();
        } else {
            hash_other();
        }
    }
}

#endif
