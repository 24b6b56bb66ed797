// SPDX-License-Identifier: Apache-2.0
// F-GCRA at the VC's edge (ATM Forum TM 4.1): what conforms to MCR, MBS and MFS keeps CLP 0, the rest is marked,
// what is above PCR is dropped. Whole frames, by a two-rate three-colour meter (RFC 2698, colour-blind).
//
// A frame that came with CLP 1 takes none of the VC's tokens: it is metered against PCR alone, on its own.
#ifndef FAIRLANE_GFR_EDGE_P4
#define FAIRLANE_GFR_EDGE_P4

#include "state.p4"

control Edge(inout headers_t hdr,
             inout metadata_t meta,
             in standard_metadata_t standard_metadata) {
    direct_meter<bit<2>>(MeterType.bytes) vc_police_meter;            // CIR MCR, burst MBS; PIR PCR; bytes of frame
    direct_meter<bit<2>>(MeterType.bytes) vc_police_marked_meter;     // CIR = PIR = PCR

    /// This port is the edge of the VC. mfs: longest frame, bytes; a longer one is dropped and takes no tokens.
    /// A frame that the meter marks gets the DSCP mark_dscp when set_dscp is 1, and DEI when it has a VLAN tag.
    action set_edge(bit<16> mfs, bit<6> mark_dscp, bit<1> set_dscp) {
        meta.mfs = mfs;
        meta.mark_dscp = mark_dscp;
        meta.set_dscp = set_dscp;
    }

    table vc_edge {
        key = {
            standard_metadata.ingress_port : exact @name("ingress_port");
            meta.vc                        : exact @name("vc");
        }
        actions = { set_edge; @defaultonly NoAction; }
        const default_action = NoAction();
        size = VC_SLOTS;
    }

    /// Green stays CLP 0, yellow becomes CLP 1, red is dropped.
    action police() {
        vc_police_meter.read(meta.color);
    }

    table vc_police {
        key = {
            standard_metadata.ingress_port : exact @name("ingress_port");
            meta.vc                        : exact @name("vc");
        }
        actions = { police; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vc_police_meter;
        size = VC_SLOTS;
    }

    /// For frames that came with CLP 1: red is dropped.
    action police_marked() {
        vc_police_marked_meter.read(meta.color);
    }

    table vc_police_marked {
        key = {
            standard_metadata.ingress_port : exact @name("ingress_port");
            meta.vc                        : exact @name("vc");
        }
        actions = { police_marked; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vc_police_marked_meter;
        size = VC_SLOTS;
    }

    // RFC 1624 eq. 3, HC' = ~(~HC + ~m + m'), m the header's first 16 bits. The sum is at most 3 * 65535, so
    // two foldings bring it to 16 bits.
    @hidden action mark_ipv4() {
        bit<16> old = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
        hdr.ipv4.dscp = meta.mark_dscp;
        bit<16> new = hdr.ipv4.version ++ hdr.ipv4.ihl ++ meta.mark_dscp ++ hdr.ipv4.ecn;
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(~old) + (bit<32>)new;
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
        sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
        hdr.ipv4.checksum = ~sum[15:0];
    }

    @hidden action mark_ipv6() {
        hdr.ipv6.dscp = meta.mark_dscp;
    }

    @hidden action mark_vlan() {
        hdr.vlan.dei = 1;
    }

    @hidden action too_long() {
        meta.reason = REASON_MFS;
        meta.verdict = VERDICT_MFS;
    }

    @hidden action too_fast() {
        meta.reason = REASON_PCR;
        meta.verdict = VERDICT_PCR;
    }

    apply {
        if (vc_edge.apply().hit) {
            if (meta.length > meta.mfs) {
                too_long();
            } else if (meta.clp == 1) {
                vc_police_marked.apply();
                if (meta.color == 2) {
                    too_fast();
                }
            } else {
                vc_police.apply();
                if (meta.color == 2) {
                    too_fast();
                } else if (meta.color == 1) {
                    meta.clp = 1;
                    if (hdr.vlan.isValid()) {
                        mark_vlan();
                    }
                    if (meta.set_dscp == 1) {
                        if (hdr.ipv4.isValid()) {
                            mark_ipv4();
                        } else if (hdr.ipv6.isValid()) {
                            mark_ipv6();
                        }
                    }
                }
            }
        }
    }
}

#endif
