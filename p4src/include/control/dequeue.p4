// SPDX-License-Identifier: Apache-2.0
// Egress: counts a packet out of its flow and its port, and times the service of a busy queue.
#ifndef FAIRLANE_DEQUEUE_P4
#define FAIRLANE_DEQUEUE_P4

#include "state.p4"

control Dequeue(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    // 48 bit time of the port's last dequeue, us ++ 1: it was a probe ++ 15 bit length of that frame; 0: the queue was empty then.
    register<bit<64>>(PORTS) last_service;

    // When packets were waiting as the last service began, the next dequeue is the moment it ended: the
    // time between is the time that frame took on the line. Sums of it give BW = 8 * busy_bytes / busy_us
    // and L_D = busy_bytes / busy_packets with an error of 1 us a report, whatever the load.
    @hidden action count_out() {
        bit<32> flow_packets;
        bit<32> port_packets;
        bit<32> port_bytes;
        bit<64> last;
        bit<32> sum;
        bit<32> length = (bit<32>)meta.length;
        bit<32> port = (bit<32>)meta.port;

        // Saturating: a register that was reset under load must not wrap below zero.
        flow_occupancy.read(flow_packets, meta.lane);
        flow_occupancy.write(meta.lane, (flow_packets != 0) ? flow_packets - 1 : 0);
        port_occupancy.read(port_packets, port);
        port_packets = (port_packets != 0) ? port_packets - 1 : 0;
        port_occupancy.write(port, port_packets);
        port_occupancy_bytes.read(port_bytes, port);
        port_occupancy_bytes.write(port, (port_bytes > length) ? port_bytes - length : 0);

        last_service.read(last, port);
        bit<1> probe = (meta.probe == PROBE_NONE) ? 1w0 : 1w1;
        bit<64> service = standard_metadata.egress_global_timestamp ++ probe ++ meta.length[14:0];
        // A packet that ended on the way was not served. A probe says nothing of how long packets are: its service is left
        // out whole.
        if (meta.queue_drop != 0) {
            service = last;
        } else if (last != 0 && last[15:15] == 0 && meta.report_period_us != 0) {
            busy_us.read(sum, port);
            busy_us.write(port, sum + (bit<32>)(standard_metadata.egress_global_timestamp - last[63:16]));
            busy_bytes.read(sum, port);
            busy_bytes.write(port, sum + (bit<32>)last[14:0]);
            busy_packets.read(sum, port);
            busy_packets.write(port, sum + 1);
        }
        last_service.write(port, (port_packets != 0) ? service : 0);
    }

    apply {
        count_out();
    }
}

#endif
