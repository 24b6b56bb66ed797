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

/// The scheme of an egress port and class. Applied after the flow lookup: a flow's own weight wins.
control Policy(inout metadata_t meta) {
    /// Chae & Choi: a packet is refused when more than Qthresh_i packets of its flow would wait.
    /// Qthresh_i = qthresh * weight / 256, rounded down; both given by the controller.
    action set_qthresh(bit<16> qthresh, bit<16> weight) {
        bit<32> w = (meta.flow_weight != 0) ? (bit<32>)meta.flow_weight : (bit<32>)weight;
        meta.limit_packets = ((bit<32>)qthresh * w) >> WEIGHT_SHIFT;
    }

    /// No rule per flow: only the port's capacity counts. The baseline of every comparison.
    action drop_tail() {
        meta.limit_packets = UNLIMITED;
    }

    table policy {
        key = {
            meta.port          : exact @name("egress_port");
            meta.traffic_class : exact @name("traffic_class");
        }
        actions = { set_qthresh; drop_tail; }
        const default_action = drop_tail();
        size = POLICIES;
    }

    apply {
        policy.apply();
    }
}

#endif
