// SPDX-License-Identifier: Apache-2.0
// The admission of Kim & Lee: the share of the buffer and the rate of the VC decide together.
//
//                        CLP 1                           CLP 0
//   QT + c > QMAX        refused                         refused
//   QT >= HBO            refused (3)                     refused (6)
//   LBO <= QT < HBO      refused if over_i (2)           refused if over_i and fast_i (5)
//   QT < LBO             refused if over_i and fast_i (1)    accepted (4)
//
//   (1) over_i:  Q_i > Th, Th = min(max(QT, LBO), HBO) / N
//   (2) fast_i:  r_i > w_i                             QT, Q_i, r_i as they were before the frame
#ifndef FAIRLANE_GFR_PROPOSED_P4
#define FAIRLANE_GFR_PROPOSED_P4

#include "../state.p4"

control Proposed(inout metadata_t meta) {
    // (1) without division: N * Q_i > min(max(QT, LBO), HBO), 16 + 32 = 48 bits: exact for any Q_i.
    // (2): r_i is kept in 1/256 bit/s and cut to whole bit/s before the comparison.
    @hidden action admit() {
        bit<32> qt;
        bit<32> qi;
        bit<64> rate;
        port_cells.read(qt, (bit<32>)meta.port);
        vc_cells.read(qi, (bit<32>)meta.slot);
        vc_rate.read(rate, (bit<32>)meta.slot);
        bit<32> level = (qt > meta.lbo) ? qt : meta.lbo;
        level = (level < meta.hbo) ? level : meta.hbo;
        bool over = (bit<48>)meta.n * (bit<48>)qi > (bit<48>)level;
        bool fast = (rate >> 8) > (bit<64>)meta.w;

        meta.reason = REASON_GFR;
        if (qt + (bit<32>)meta.cells > meta.qmax) {
            meta.verdict = VERDICT_QMAX;
            meta.reason = REASON_PORT_FULL;
        } else if (qt >= meta.hbo) {
            meta.verdict = (meta.clp == 1) ? VERDICT_CASE_3 : VERDICT_CASE_6;
        } else if (qt >= meta.lbo) {
            if (meta.clp == 1 && over) {
                meta.verdict = VERDICT_CASE_2;
            } else if (over && fast) {
                meta.verdict = VERDICT_CASE_5;
            } else {
                meta.verdict = VERDICT_BELOW_HBO;
                meta.reason = REASON_NONE;
            }
        } else if (meta.clp == 0) {
            meta.verdict = VERDICT_CASE_4;
            meta.reason = REASON_NONE;
        } else if (over && fast) {
            meta.verdict = VERDICT_CASE_1;
        } else {
            meta.verdict = VERDICT_BELOW_LBO;
            meta.reason = REASON_NONE;
        }
        if (meta.reason == REASON_NONE) {
            port_cells.write((bit<32>)meta.port, qt + (bit<32>)meta.cells);
            vc_cells.write((bit<32>)meta.slot, qi + (bit<32>)meta.cells);
        }
    }

    apply {
        admit();
    }
}

#endif
