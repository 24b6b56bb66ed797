// SPDX-License-Identifier: Apache-2.0
// Admission: counts a packet into its flow and its port, or refuses it, in one atomic action.
#ifndef FAIRLANE_ADMIT_P4
#define FAIRLANE_ADMIT_P4

#include "state.p4"

control Admit(inout metadata_t meta) {
    // Chae & Choi section 3, counted in first: the packet is refused when the flow's counter, with it,
    // exceeds Qthresh_i. So at most Qthresh_i packets of a flow wait. On a refusal nothing is counted up.
    // The port's own limit comes before the queue's, so nothing is ever dropped behind our back. In lanes a flow may have one
    // packet waiting, and four for each place that is still free (Choudhury and Hahne, Dynamic Queue Length Thresholds, 1998):
    // else flows that fill their lanes keep out the ones that come.
    // A packet that may be marked is refused above 2 * Qthresh_i only: Reno adds one packet a round trip and a mark takes
    // a round trip to work, so a sender that heeds marks stays well below; one that ignores them is held there. So is one
    // whose refusals are spaced (spacing_us), while half of the port is free: its second half is no other flow's loss.
    @hidden action admit() {
        bit<32> flow_packets;
        bit<32> port_packets;
        bit<32> port_bytes;
        time_us_t seen;
        time_us_t start;
        bit<32> flows;
        time_us_t refused;
        bit<8> tap;
        bool tapped = false;
        bool spaced = false;

        flow_occupancy.read(flow_packets, meta.lane);
        port_occupancy.read(port_packets, (bit<32>)meta.port);
        port_occupancy_bytes.read(port_bytes, (bit<32>)meta.port);
        report_start.read(start, (bit<32>)meta.port);
        flow_packets = flow_packets + 1;
        port_packets = port_packets + 1;
        port_bytes = port_bytes + (bit<32>)meta.length;
        bit<32> product = (bit<32>)meta.qthresh * (bit<32>)meta.weight;
        bit<32> limit = (meta.limited == 1) ? product >> WEIGHT_SHIFT : UNLIMITED;
        if (meta.tap != 0) {
            flow_tap.read(tap, meta.slot);
            if (meta.tap != tap && port_packets > TAP_LEAST && (meta.tcp_header == 0 || meta.tcp_payload_len != 0)) {
                tapped = true;
                flow_tap.write(meta.slot, meta.tap);
            }
        }
        if (meta.spacing_us != 0) {
            flow_refused.read(refused, meta.slot);
            spaced = meta.now - refused < (time_us_t)meta.spacing_us && port_packets |+| port_packets <= meta.port_max_packets;
        }
        bit<32> most = (meta.ecn == 1 || spaced) ? limit |+| limit : limit;

        if (flow_packets > most || (tapped && meta.ecn == 0)) {
            meta.reason = REASON_QTHRESH;
        } else if (port_packets > meta.port_max_packets || port_bytes > meta.port_max_bytes
                   || (meta.lanes != 0 && (flow_packets + 2) >> 2 > meta.port_max_packets - port_packets)) {
            meta.reason = REASON_PORT_FULL;
        } else {
            meta.mark = (meta.ecn == 1 && (flow_packets > limit || tapped)) ? 1w1 : 1w0;
            flow_occupancy.write(meta.lane, flow_packets);
            port_occupancy.write((bit<32>)meta.port, port_packets);
            port_occupancy_bytes.write((bit<32>)meta.port, port_bytes);
            // N_C: the first admission of a flow since the interval began.
            flow_seen.read(seen, meta.slot);
            flow_seen.write(meta.slot, meta.now);
            if (seen <= start && meta.slot != NO_FLOW_SLOT) {
                report_flows.read(flows, (bit<32>)meta.port);
                report_flows.write((bit<32>)meta.port, flows + 1);
            }
        }
        if (meta.spacing_us != 0 && meta.reason != REASON_NONE) {
            flow_refused.write(meta.slot, meta.now);
        }
        if (meta.report_period_us != 0 && meta.now - start >= (time_us_t)meta.report_period_us) {
            meta.report_due = 1;
            meta.tell = 1;
        }
    }

    apply {
        admit();
    }
}

#endif
