// SPDX-License-Identifier: Apache-2.0
// DFBA, Differential Fair Buffer Allocation (Goyal, Jain, Fahmy, Vandalore, ATM Forum 98-0405), L = LBO, H = HBO:
// QT < L accepts all, QT > H refuses all; between them CLP 1 is refused, and CLP 0 of a VC above its share,
// Q_i > QT * w_i/W, with the probability
//   P = Z * (alpha * (Q_i - QT * w_i/W) / (QT * (1 - w_i/W)) + (1 - alpha) * (QT - L) / (H - L)).
#ifndef FAIRLANE_GFR_DFBA_P4
#define FAIRLANE_GFR_DFBA_P4

#include "../state.p4"

control Dfba(inout metadata_t meta) {
    // With U even in [0, 1) the frame is refused when U < P, that is, without a division, when U * QT < P * QT:
    //   P * QT = Z * (alpha * excess * 1/(1 - w_i/W)  +  (1 - alpha) * (QT - L) * 1/(H - L) * QT).
    // For up to 65535 cells and Q_i <= QT:
    //   excess = Q_i - QT * share                   32 bits in 2^-16
    //   far = excess * inv_rest <= QT               48 bits in 2^-32 (the excess is at most QT * (1 - share))
    //   full = (QT - L) * inv_span * QT <= QT       48 bits in 2^-32
    //   alpha * far + (256 - alpha) * full          56 bits in 2^-40; 40 bits in 2^-24 go on
    //   times Z                                     56 bits in 2^-32
    //   U * QT                                      48 bits in 2^-32
    // Errors: those of the rounded parameters (share 2^-17 absolute, inv_rest 2^-17, inv_span 2^-17 * 1/(H - L) of
    // 1/(H - L)) and 2^-24 cells: P is right to 1e-4 when w_i/W <= 0.9 and QT >= 8.
    @hidden action admit() {
        bit<32> qt;
        bit<32> qi;
        bit<32> chance;
        port_cells.read(qt, (bit<32>)meta.port);
        vc_cells.read(qi, (bit<32>)meta.slot);
        random(chance, (bit<32>)0, (bit<32>)0xFFFFFFFF);
        bit<64> fair = (bit<64>)qt * (bit<64>)meta.share;
        bit<64> excess = ((bit<64>)qi << 16) |-| fair;
        bit<64> far = excess * (bit<64>)meta.inv_rest;
        bit<64> full = (bit<64>)(qt |-| meta.lbo) * (bit<64>)meta.inv_span * (bit<64>)qt;
        bit<64> sum = ((bit<64>)meta.alpha * far + (bit<64>)(256 - meta.alpha) * full) >> 16;
        bool unlucky = (bit<64>)chance * (bit<64>)qt < sum * (bit<64>)meta.z;

        if (qt + (bit<32>)meta.cells > meta.qmax) {
            meta.verdict = VERDICT_QMAX;
            meta.reason = REASON_PORT_FULL;
        } else if (qt > meta.hbo) {
            meta.verdict = VERDICT_HBO;
            meta.reason = REASON_GFR;
        } else if (qt >= meta.lbo && meta.clp == 1) {
            meta.verdict = VERDICT_THRESHOLD;
            meta.reason = REASON_GFR;
        } else if (qt >= meta.lbo && excess != 0 && unlucky) {
            meta.verdict = VERDICT_CHANCE;
            meta.reason = REASON_GFR;
        } else {
            if (qt >= meta.lbo) {
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
