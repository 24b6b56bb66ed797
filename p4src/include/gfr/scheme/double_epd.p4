// SPDX-License-Identifier: Apache-2.0
// Double-EPD: marked frames are refused when QT > LBO, all frames when QT > HBO.
#ifndef FAIRLANE_GFR_DOUBLE_EPD_P4
#define FAIRLANE_GFR_DOUBLE_EPD_P4

#include "../state.p4"

control DoubleEpd(inout metadata_t meta) {
    @hidden action admit() {
        bit<32> qt;
        bit<32> qi;
        port_cells.read(qt, (bit<32>)meta.port);
        vc_cells.read(qi, (bit<32>)meta.slot);

        if (qt + (bit<32>)meta.cells > meta.qmax) {
            meta.verdict = VERDICT_QMAX;
            meta.reason = REASON_PORT_FULL;
        } else if (qt > meta.hbo) {
            meta.verdict = VERDICT_HBO;
            meta.reason = REASON_GFR;
        } else if (qt > meta.lbo && meta.clp == 1) {
            meta.verdict = VERDICT_THRESHOLD;
            meta.reason = REASON_GFR;
        } else {
            if (qt > meta.lbo) {
                meta.verdict = VERDICT_BETWEEN;
            } else if (meta.clp == 1) {
                meta.verdict = VERDICT_BELOW_LBO;
            } else {
                meta.verdict = VERDICT_CASE_4;
            }
            port_cells.write((bit<32>)meta.port, qt + (bit<32>)meta.cells);
            vc_cells.write((bit<32>)meta.slot, qi + (bit<32>)meta.cells);
        }
    }

    apply {
        admit();
    }
}

#endif
