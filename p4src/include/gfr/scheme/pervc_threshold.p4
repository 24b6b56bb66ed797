// SPDX-License-Identifier: Apache-2.0
// perVC-queuing with threshold: a VC's marked frames are refused when QT > LBO and Q_i > T_i, all when QT > HBO.
#ifndef FAIRLANE_GFR_PERVC_THRESHOLD_P4
#define FAIRLANE_GFR_PERVC_THRESHOLD_P4

#include "../state.p4"

control PerVcThreshold(inout metadata_t meta) {
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
        } else if (qt > meta.lbo && meta.clp == 1 && qi > meta.threshold) {
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
