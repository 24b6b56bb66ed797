// SPDX-License-Identifier: Apache-2.0
// Egress: counts a frame's cells out of its VC and its port.
#ifndef FAIRLANE_GFR_DEQUEUE_P4
#define FAIRLANE_GFR_DEQUEUE_P4

#include "state.p4"

control Dequeue(inout metadata_t meta) {
    // Saturating: a register that was reset under load must not wrap below zero.
    @hidden action count_out() {
        bit<32> qt;
        bit<32> qi;
        port_cells.read(qt, (bit<32>)meta.port);
        port_cells.write((bit<32>)meta.port, qt |-| (bit<32>)meta.cells);
        vc_cells.read(qi, (bit<32>)meta.slot);
        vc_cells.write((bit<32>)meta.slot, qi |-| (bit<32>)meta.cells);
    }

    apply {
        count_out();
    }
}

#endif
