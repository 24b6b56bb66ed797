// SPDX-License-Identifier: Apache-2.0
// Which ports are the far side of a satellite link: what comes in there crossed it, what goes out there will.
//
// Two tables, because a packet has two ports; a controller gives a port to both.
#ifndef FAIRLANE_ENA_FAR_SIDE_P4
#define FAIRLANE_ENA_FAR_SIDE_P4

#include "headers.p4"

control FromSatellite(in standard_metadata_t standard_metadata, out bit<1> checked) {
    /// Corrupted segments that come in here are answered.
    action check_segments() {
        checked = 1;
    }

    table far_side_in {
        key = { standard_metadata.ingress_port : exact @name("ingress_port"); }
        actions = { check_segments; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        checked = 0;
        far_side_in.apply();
    }
}

control ToSatellite(in metadata_t meta, out bit<1> marked) {
    /// ACKs that go out here are learned from, and name what is missing.
    action mark_acks() {
        marked = 1;
    }

    table far_side_out {
        key = { meta.port : exact @name("egress_port"); }
        actions = { mark_acks; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        marked = 0;
        far_side_out.apply();
    }
}

#endif
