// SPDX-License-Identifier: Apache-2.0
// Drop-tail: a frame is refused when the buffer cannot hold it.
#ifndef FAIRLANE_GFR_DROP_TAIL_P4
#define FAIRLANE_GFR_DROP_TAIL_P4

#include "../state.p4"

control DropTail(inout metadata_t meta) {
    @hidden action admit() {
        bit<32> qt;
        bit<32> qi;
        port_cells.read(qt, (bit<32>)meta.port);
        vc_cells.read(qi, (bit<32>)meta.slot);

        if (qt + (bit<32>)meta.cells > meta.qmax) {
            meta.verdict = VERDICT_QMAX;
            meta.reason = REASON_PORT_FULL;
        } else {
            meta.verdict = VERDICT_BETWEEN;
            port_cells.write((bit<32>)meta.port, qt + (bit<32>)meta.cells);
            vc_cells.write((bit<32>)meta.slot, qi + (bit<32>)meta.cells);
        }
    }

    apply {
        admit();
    }
}

#endif
