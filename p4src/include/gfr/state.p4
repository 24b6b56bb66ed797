// SPDX-License-Identifier: Apache-2.0
// The registers and counters of gfr.p4 that more than one control, or both pipelines, touch; what a verdict means.
//
// BMv2 makes an action atomic, not a control block, and runs ingress and egress in threads of their own.
// So every read-modify-write of a register is inside ONE action.
#ifndef FAIRLANE_GFR_STATE_P4
#define FAIRLANE_GFR_STATE_P4

#include "metadata.p4"

// Cells that wait: up at admission, down when the frame is dequeued, which is when its transmission starts.
register<bit<32>>(PORTS) port_cells;                 // QT, by port
register<bit<32>>(GFR_SLOTS) vc_cells;               // Q_i, by slot

// The port's running report (gfr/report.p4).
register<bit<32>>(PORTS) busy_us;                    // time in which the line worked and frames waited, whole services only
register<bit<32>>(PORTS) busy_bytes;                 // sent in that time
register<bit<32>>(PORTS) busy_cells;

// Eq. (2), kept by the proposed scheme (gfr/rate.p4).
register<bit<64>>(GFR_SLOTS) vc_rate;                // r_i, bit/s in 1/256
register<time_us_t>(GFR_SLOTS) vc_last;              // time of the VC's last accepted frame, us

// packets_and_bytes, bytes of the whole frame.
counter(VERDICTS, CounterType.packets_and_bytes) vc_verdicts;         // [slot ++ clp ++ verdict], managed ports
counter(PORTS, CounterType.packets_and_bytes) admitted;               // [port], managed ports
counter(PORTS, CounterType.packets_and_bytes) passed;                 // [port], ports without a scheme
counter(DROP_COUNTERS, CounterType.packets_and_bytes) drops;          // [port ++ reason]

// The paper's six cases, of the proposed scheme (1 2 3 5 6 are refusals, 4 is an acceptance).
const verdict_t VERDICT_QMAX            = 0;   // QT + c > QMAX, every scheme
const verdict_t VERDICT_CASE_1          = 1;   // CLP 1, QT < LBO: over_i and fast_i
const verdict_t VERDICT_CASE_2          = 2;   // CLP 1, LBO <= QT < HBO: over_i
const verdict_t VERDICT_CASE_3          = 3;   // CLP 1, QT >= HBO
const verdict_t VERDICT_CASE_4          = 4;   // accepted: CLP 0 below LBO
const verdict_t VERDICT_CASE_5          = 5;   // CLP 0, LBO <= QT < HBO: over_i and fast_i
const verdict_t VERDICT_CASE_6          = 6;   // CLP 0, QT >= HBO
const verdict_t VERDICT_BELOW_LBO       = 7;   // accepted: CLP 1 below LBO
const verdict_t VERDICT_BELOW_HBO       = 8;   // accepted: LBO <= QT < HBO (proposed)
const verdict_t VERDICT_HBO             = 9;   // refused above HBO (baselines)
const verdict_t VERDICT_THRESHOLD       = 10;  // refused by the baseline's rule
const verdict_t VERDICT_CHANCE          = 11;  // refused by DFBA's probability
const verdict_t VERDICT_PCR             = 12;  // refused at the edge
const verdict_t VERDICT_MFS             = 13;
const verdict_t VERDICT_BETWEEN         = 14;  // accepted: drop-tail, or between a baseline's thresholds

#endif
