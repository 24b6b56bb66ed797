// SPDX-License-Identifier: Apache-2.0
// WFBA, the weighted form of Heinanen and Kilkki's Fair Buffer Allocation: a VC's marked frames are refused when
//   QT > LBO  and  Q_i * W / (QT * w_i)  >  Z * (1 + (QMAX - QT) / (QT - LBO)).
#ifndef FAIRLANE_GFR_WFBA_P4
#define FAIRLANE_GFR_WFBA_P4

#include "../state.p4"

control Wfba(inout metadata_t meta) {
    // The right side is Z * (QMAX - LBO) / (QT - LBO): multiplied out there is no division,
    //   Q_i * (W/w_i) * (QT - LBO)  >  Z * (QMAX - LBO) * QT.
    // For up to 65535 cells: left 16 + 32 + 16 = 64 bits in 1/65536; right 16 + 16 + 16 = 48 bits in 1/256, brought to
    // 56 bits in 1/65536. The error is that of inv_share alone, half of 1/65536: at most w_i/W * 7.7e-6 of W/w_i.
    @hidden action admit() {
        bit<32> qt;
        bit<32> qi;
        port_cells.read(qt, (bit<32>)meta.port);
        vc_cells.read(qi, (bit<32>)meta.slot);
        bit<64> held = (bit<64>)qi * (bit<64>)meta.inv_share * (bit<64>)(qt |-| meta.lbo);
        bit<64> allowed = ((bit<64>)meta.z * (bit<64>)(meta.qmax |-| meta.lbo) * (bit<64>)qt) << 8;

        if (qt + (bit<32>)meta.cells > meta.qmax) {
            meta.verdict = VERDICT_QMAX;
            meta.reason = REASON_PORT_FULL;
        } else if (qt > meta.lbo && meta.clp == 1 && held > allowed) {
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
