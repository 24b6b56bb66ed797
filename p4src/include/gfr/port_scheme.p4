// SPDX-License-Identifier: Apache-2.0
// Which scheme admits frames to an egress port, with its parameters.
#ifndef FAIRLANE_GFR_PORT_SCHEME_P4
#define FAIRLANE_GFR_PORT_SCHEME_P4

#include "state.p4"

/// Without an entry the port is not managed: no VC, no policing, no occupancy, no refusal, because an occupancy
/// counter would leak with every frame that the queue drops by itself.
/// Every scheme: qmax cells is what the port may hold, at most what the queue behind it does (less than 2^31).
/// per_vc_queue 1: each VC in the queue of its vc_share entry; 0: one queue for all.
control PortScheme(inout metadata_t meta) {
    /// Only the buffer's size counts. The baseline of every comparison.
    action drop_tail(bit<32> qmax, bit<1> per_vc_queue) {
        meta.scheme = SCHEME_DROP_TAIL;
        meta.qmax = qmax;
        meta.per_vc_queue = per_vc_queue;
    }

    /// CLP 1 is refused above lbo, everything above hbo.
    action double_epd(bit<32> qmax, bit<32> lbo, bit<32> hbo, bit<1> per_vc_queue) {
        meta.scheme = SCHEME_DOUBLE_EPD;
        meta.qmax = qmax;
        meta.lbo = lbo;
        meta.hbo = hbo;
        meta.per_vc_queue = per_vc_queue;
    }

    /// Differential Fair Buffer Allocation. z, alpha in 1/256 (alpha at most 256); inv_span = 2^32 / (hbo - lbo).
    action dfba(bit<32> qmax, bit<32> lbo, bit<32> hbo, bit<1> per_vc_queue, bit<16> z, bit<16> alpha,
                bit<32> inv_span) {
        meta.scheme = SCHEME_DFBA;
        meta.qmax = qmax;
        meta.lbo = lbo;
        meta.hbo = hbo;
        meta.per_vc_queue = per_vc_queue;
        meta.z = z;
        meta.alpha = alpha;
        meta.inv_span = inv_span;
    }

    /// Weighted Fair Buffer Allocation. z in 1/256.
    action wfba(bit<32> qmax, bit<32> lbo, bit<1> per_vc_queue, bit<16> z) {
        meta.scheme = SCHEME_WFBA;
        meta.qmax = qmax;
        meta.lbo = lbo;
        meta.per_vc_queue = per_vc_queue;
        meta.z = z;
    }

    /// CLP 1 of a VC above its threshold is refused above lbo, everything above hbo.
    action pervc_threshold(bit<32> qmax, bit<32> lbo, bit<32> hbo, bit<1> per_vc_queue) {
        meta.scheme = SCHEME_PERVC_THRESHOLD;
        meta.qmax = qmax;
        meta.lbo = lbo;
        meta.hbo = hbo;
        meta.per_vc_queue = per_vc_queue;
    }

    /// Kim & Lee. n: active VCs; rate_form 0: eq. (2) weighted by time, 1: with the fixed alpha, in 1/256
    /// (at most 256); at_arrival 1: (2) counts every frame that arrives (3.2), 0: those that are accepted (the pseudo-code);
    /// period_us, of form 1: frames that come within it count together. Less than RATE_BURST_US is RATE_BURST_US, T
    /// between arrivals; more is the pseudo-code's "scheduling period", to 1 s and 2^24 cells (7.1 Gbit).
    action proposed(bit<32> qmax, bit<32> lbo, bit<32> hbo, bit<1> per_vc_queue, bit<16> n, bit<1> rate_form,
                    bit<16> alpha, bit<1> at_arrival, bit<32> period_us) {
        meta.scheme = SCHEME_PROPOSED;
        meta.qmax = qmax;
        meta.lbo = lbo;
        meta.hbo = hbo;
        meta.per_vc_queue = per_vc_queue;
        meta.n = n;
        meta.rate_form = rate_form;
        meta.alpha = alpha;
        meta.at_arrival = at_arrival;
        meta.period_us = period_us;
    }

    table port_scheme {
        key = { meta.port : exact @name("egress_port"); }
        actions = { drop_tail; double_epd; dfba; wfba; pervc_threshold; proposed; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        port_scheme.apply();
    }
}

#endif
