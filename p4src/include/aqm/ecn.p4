// SPDX-License-Identifier: Apache-2.0
// ECN: which packets may be marked, and marking them.
#ifndef FAIRLANE_AQM_ECN_P4
#define FAIRLANE_AQM_ECN_P4

#include "../headers.p4"

counter(PORTS, CounterType.packets_and_bytes) marked;            // [port], of those sent: CE

// RFC 3168 section 5: ECT(0) or ECT(1) becomes CE. RFC 1624 eq. 3: ~m + m' of the header's first word is 3 - ecn.
control MarkCe(inout headers_t hdr, inout metadata_t meta) {
    @hidden action mark_v4() {
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(3 - hdr.ipv4.ecn);
        hdr.ipv4.checksum = ~(sum[15:0] + (bit<16>)sum[31:16]);
        hdr.ipv4.ecn = 3;
    }

    @hidden action mark_v6() {
        hdr.ipv6.ecn = 3;
    }

    apply {
        marked.count((bit<32>)meta.port);
        if (hdr.ipv4.isValid()) {
            mark_v4();
        } else {
            mark_v6();
        }
    }
}

// Whether the sender takes marks for drops, and the port marks: meta.ecn is then 1, else 0.
control IsEct(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (!(hdr.ipv4.isValid() && hdr.ipv4.ecn != 0) && !(hdr.ipv6.isValid() && hdr.ipv6.ecn != 0)) {
            meta.ecn = 0;
        }
    }
}

#endif
