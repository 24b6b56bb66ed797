// SPDX-License-Identifier: Apache-2.0
// Egress: counts a frame's cells out of its VC and its port, and times the service of a busy line.
#ifndef FAIRLANE_GFR_DEQUEUE_P4
#define FAIRLANE_GFR_DEQUEUE_P4

#include "state.p4"

control Dequeue(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    // Low 40 bits of the time of the port's last dequeue, us ++ that frame's bytes (14) ++ cells (10); 0: nothing waited then.
    register<bit<64>>(PORTS) last_service;

    // Saturating: a register that was reset under load must not wrap below zero.
    @hidden action count_out() {
        bit<32> qt;
        bit<32> qi;
        bit<64> last;
        bit<32> port = (bit<32>)meta.port;
        port_cells.read(qt, port);
        qt = qt |-| (bit<32>)meta.cells;
        port_cells.write(port, qt);
        vc_cells.read(qi, (bit<32>)meta.slot);
        vc_cells.write((bit<32>)meta.slot, qi |-| (bit<32>)meta.cells);

        // As in qthresh.p4: frames waited as the last service began, so this dequeue is the moment it ended. A frame
        // that ended on the way was not served.
        bit<32> sum;
        bit<40> now = standard_metadata.egress_global_timestamp[39:0];
        last_service.read(last, port);
        bit<64> service = now ++ meta.length[13:0] ++ meta.cells[9:0];
        if (meta.queue_drop != 0) {
            service = last;
        } else if (last != 0) {
            busy_us.read(sum, port);
            busy_us.write(port, sum + (bit<32>)(now - last[63:24]));
            busy_bytes.read(sum, port);
            busy_bytes.write(port, sum + (bit<32>)last[23:10]);
            busy_cells.read(sum, port);
            busy_cells.write(port, sum + (bit<32>)last[9:0]);
        }
        last_service.write(port, (qt != 0) ? service : 0);
    }

    apply {
        count_out();
    }
}

#endif
