// SPDX-License-Identifier: Apache-2.0
// What a managed port did since its last report, for the controller: how fast its line drains while frames wait.
#ifndef FAIRLANE_GFR_REPORT_P4
#define FAIRLANE_GFR_REPORT_P4

#include "state.p4"

/// The line's rate while frames waited: on an atm line 424e6 * busy_cells / busy_us bit/s, on others 8e6 * busy_bytes / busy_us.
/// busy_* sum whole services that began with a frame waiting behind; all 0 when nothing ever waited.
struct gfr_report_t {
    port_t  egress_port;
    bit<32> interval_us;
    bit<32> busy_us;
    bit<32> busy_bytes;
    bit<32> busy_cells;
    bit<32> waiting_cells;
}

control GfrReport(inout metadata_t meta) {
    register<time_us_t>(PORTS) report_start;      // us; when the interval began

    bit<1> due = 0;
    bit<32> interval_us = 0;
    bit<32> report_busy_us;
    bit<32> report_busy_bytes;
    bit<32> report_busy_cells;
    bit<32> waiting_cells;

    @hidden action look() {
        time_us_t start;
        report_start.read(start, (bit<32>)meta.port);
        if (meta.now - start >= GFR_REPORT_PERIOD_US) {
            report_start.write((bit<32>)meta.port, meta.now);
            interval_us = (bit<32>)(meta.now - start);
            due = 1;
        }
    }

    @hidden action take_report() {
        bit<32> port = (bit<32>)meta.port;
        busy_us.read(report_busy_us, port);
        busy_us.write(port, 0);
        busy_bytes.read(report_busy_bytes, port);
        busy_bytes.write(port, 0);
        busy_cells.read(report_busy_cells, port);
        busy_cells.write(port, 0);
        port_cells.read(waiting_cells, port);
    }

    apply {
        look();
        if (due == 1) {
            take_report();
            digest<gfr_report_t>(1, { meta.port, interval_us, report_busy_us, report_busy_bytes, report_busy_cells,
                                      waiting_cells });
        }
    }
}

#endif
