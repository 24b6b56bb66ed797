// SPDX-License-Identifier: Apache-2.0
// The way of a packet to its port, as all programs that manage queues have it: packet-out, checks, route.
#ifndef FAIRLANE_AQM_ARRIVE_P4
#define FAIRLANE_AQM_ARRIVE_P4

#include "../control/validate.p4"
#include "../control/route.p4"

control Arrive(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    Validate() validate;
    Route() route;

    apply {
        meta.length = (bit<16>)standard_metadata.packet_length;
        meta.port = standard_metadata.ingress_port;     // where a refusal without a route is counted
        if (hdr.packet_out.isValid()) {
            meta.port = hdr.packet_out.egress_port;
            meta.length = meta.length - 2;
            hdr.packet_out.setInvalid();
        } else {
            validate.apply(hdr, meta, standard_metadata);
            if (meta.reason == REASON_NONE) {
                route.apply(hdr, meta, standard_metadata);
            }
        }
        // v1model drops what is sent there, and tells nobody: it must not be counted in.
        if (meta.reason == REASON_NONE && meta.port == DROP_PORT) {
            meta.port = standard_metadata.ingress_port;
            meta.reason = REASON_ROUTE_DROP;
        }
    }
}

#endif
