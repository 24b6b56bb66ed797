// SPDX-License-Identifier: Apache-2.0
// Which rule holds for a packet: its traffic class, its port's limits, its class's threshold.
#ifndef FAIRLANE_POLICY_P4
#define FAIRLANE_POLICY_P4

#include "../headers.p4"

/// The port's own limits. Without an entry the port is not managed: no flow lookup, no occupancy, no
/// refusal, because an occupancy counter would leak with every packet that the queue drops by itself.
control PortLimit(inout metadata_t meta) {
    /// At most max_packets and max_bytes wait for the port: never more than the queue behind holds.
    /// A report of the port (digest port_report_t) every report_period_us; 0: none.
    /// ecn 1: a packet that says ECT is marked above its flow's threshold, and refused above twice that.
    action set_port_limit(bit<32> max_packets, bit<32> max_bytes, bit<32> report_period_us, bit<1> ecn) {
        meta.port_max_packets = max_packets;
        meta.port_max_bytes = max_bytes;
        meta.report_period_us = report_period_us;
        meta.ecn = ecn;
        meta.counted = 1;
    }

    table port_limit {
        key = { meta.port : exact @name("egress_port"); }
        actions = { set_port_limit; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        port_limit.apply();
    }
}

/// Traffic class from port, DSCP and PCP; class 0 when no rule matches.
control Classify(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action set_class(class_t traffic_class) {
        meta.traffic_class = traffic_class;
    }

    table flow_class {
        key = {
            standard_metadata.ingress_port : ternary @name("ingress_port");
            meta.dscp                      : ternary @name("dscp");
            meta.pcp                       : ternary @name("pcp");
        }
        actions = { set_class; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CLASS_RULES;
    }

    apply {
        flow_class.apply();
    }
}

/// The scheme of an egress port and class. Applied before the flow lookup: a flow's own weight replaces the class's.
control Policy(inout metadata_t meta) {
    /// Chae & Choi: a packet is refused when more than Qthresh_i packets of its flow would wait.
    /// Qthresh_i = qthresh * weight / 256, rounded down; both given by the controller.
    action set_qthresh(bit<16> qthresh, bit<16> weight) {
        meta.limited = 1;
        meta.qthresh = qthresh;
        meta.weight = weight;
    }

    /// As set_qthresh, and while no more than 2 * Qthresh_i packets of a flow would wait, and no more than half of what the port
    /// may hold, a flow loses at most one packet in spacing_us: a threshold that falls below what waits costs one packet a round
    /// trip, not all that come until the queue is shorter.
    action set_qthresh_spaced(bit<16> qthresh, bit<16> weight, bit<32> spacing_us) {
        meta.limited = 1;
        meta.qthresh = qthresh;
        meta.weight = weight;
        meta.spacing_us = spacing_us;
    }

    /// A queue for each flow, at most Qthresh_i packets long; its share of the line is its weight. A flow with an entry is in
    /// one of the queues 1 .. lanes of the port, any other in one of the lanes_by_hash queues behind them; both are powers of two.
    /// The port's scheduler must serve its queues by weight (drr or wrr). A flow may have one packet waiting, and four more for each
    /// place of the port that is still free.
    /// spacing_us: as in set_qthresh_spaced; 0: none.
    action set_lanes(bit<16> qthresh, bit<16> weight, bit<32> spacing_us, bit<16> lanes, bit<16> lanes_by_hash) {
        meta.limited = 1;
        meta.qthresh = qthresh;
        meta.weight = weight;
        meta.spacing_us = spacing_us;
        meta.lanes = lanes;
        meta.lanes_by_hash = lanes_by_hash;
    }

    /// No rule per flow: only the port's capacity counts. The baseline of every comparison.
    action drop_tail() {
        meta.limited = 0;
    }

    table policy {
        key = {
            meta.port          : exact @name("egress_port");
            meta.traffic_class : exact @name("traffic_class");
        }
        actions = { set_qthresh; set_qthresh_spaced; set_lanes; drop_tail; }
        const default_action = drop_tail();
        size = POLICIES;
    }

    apply {
        policy.apply();
    }
}

#endif
