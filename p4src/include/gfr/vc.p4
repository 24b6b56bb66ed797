// SPDX-License-Identifier: Apache-2.0
// Whose frame it is: cells, VC, mark, and the VC's share of the egress port.
#ifndef FAIRLANE_GFR_VC_P4
#define FAIRLANE_GFR_VC_P4

#include "state.p4"

control Vc(inout headers_t hdr,
           inout metadata_t meta,
           in standard_metadata_t standard_metadata) {
    // Every frame of the VC that arrives for the port, admitted or not.
    direct_counter(CounterType.packets_and_bytes) vc_share_counter;

    /// The frame is of this VC (1..65535).
    action set_vc(vc_t vc) {
        meta.vc = vc;
    }

    table vc_classify {
        key = {
            standard_metadata.ingress_port : ternary @name("ingress_port");
            meta.vid                       : ternary @name("vid");
            meta.dscp                      : ternary @name("dscp");
            hdr.ipv4.src                   : ternary @name("src");
            hdr.ipv4.dst                   : ternary @name("dst");
        }
        actions = { set_vc; @defaultonly NoAction; }
        const default_action = NoAction();
        size = VC_RULES;
    }

    table vc_classify_v6 {
        key = {
            standard_metadata.ingress_port : ternary @name("ingress_port");
            meta.vid                       : ternary @name("vid");
            meta.dscp                      : ternary @name("dscp");
            hdr.ipv6.src                   : ternary @name("src");
            hdr.ipv6.dst                   : ternary @name("dst");
        }
        actions = { set_vc; @defaultonly NoAction; }
        const default_action = NoAction();
        size = VC_RULES;
    }

    /// The frame carries this mark.
    action set_clp(bit<1> clp) {
        meta.clp = clp;
    }

    table clp_mark {
        key = {
            meta.dscp : ternary @name("dscp");
            meta.dei  : ternary @name("dei");
        }
        actions = { set_clp; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CLP_RULES;
    }

    /// The VC's place at the egress port. slot: its state, of one VC at one port only. w: w_i of eq. (3), bit/s.
    /// share = w_i/W, inv_share = W/w_i, inv_rest = 1/(1 - w_i/W), all in 1/65536. threshold: T_i in cells.
    action set_share(bit<16> slot, bit<16> queue, bit<40> w, bit<32> weight, bit<32> share, bit<32> inv_share,
                     bit<32> inv_rest, bit<32> threshold) {
        meta.slot = slot;
        meta.vc_queue = queue;
        meta.vc_weight = weight;
        meta.w = w;
        meta.share = share;
        meta.inv_share = inv_share;
        meta.inv_rest = inv_rest;
        meta.threshold = threshold;
        vc_share_counter.count();
    }

    table vc_share {
        key = {
            meta.port : exact @name("egress_port");
            meta.vc   : exact @name("vc");
        }
        actions = { set_share; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = vc_share_counter;
        size = VC_SLOTS;
    }

    // AAL5: the IP packet and 8 bytes of trailer in 48-byte cells, at least one.
    //   c = ceil((length - 14 + 8) / 48) = floor((length + 41) / 48)
    // The division is by reciprocal: 43691 * 48 = 2^21 + 16, so floor(n * 43691 / 2^21) = floor(n / 48) for every
    // n < 2^21 / 16 = 131072; n is at most 65535 + 41 here. The product has 17 + 16 = 33 bits.
    @hidden action measure() {
        bit<40> product = ((bit<40>)meta.length + 41) * 43691;
        meta.cells = (bit<16>)(product >> 21);
        if (meta.cells == 0) {
            meta.cells = 1;
        }
    }

    @hidden action read_tag() {
        meta.dei = hdr.vlan.dei;
    }

    // What is of no VC, or of one that has no share here: what is left over is for it.
    @hidden action no_share() {
        meta.slot = VC_SLOTS + (bit<16>)meta.port;
        meta.clp = 1;
        meta.vc = 0;
        meta.inv_share = UNLIMITED;
        meta.inv_rest = 65536;
    }

    apply {
        measure();
        if (hdr.vlan.isValid()) {
            read_tag();
        }
        if (hdr.ipv4.isValid()) {
            vc_classify.apply();
            clp_mark.apply();
        } else if (hdr.ipv6.isValid()) {
            vc_classify_v6.apply();
            clp_mark.apply();
        }
        if (!vc_share.apply().hit) {
            no_share();
        }
    }
}

#endif
