// SPDX-License-Identifier: Apache-2.0
// qthresh.p4: routes IP and gives every TCP flow its lane at a limited port (Chae & Choi, Qthresh).
//
//   parser ─► ingress: validate (or probe) ─► T_res match ─► route ─► port_limit ─► class ─► policy ─► flow ─► admit, mark ─► digests
//                                                              │ no limit: straight on                 │ refused: drop
//             queue ◄──────────────────────────────────────────┴───────────────────────────────────────┘
//               └────► egress: count out ─► T_res probe ─► deparser
//
// For P4Runtime users: docs/p4.md lists tables, actions, digests, counters and drop reasons.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/aqm/ecn.p4"
#include "include/control/state.p4"
#include "include/control/validate.p4"
#include "include/control/probe.p4"
#include "include/control/route.p4"
#include "include/control/policy.p4"
#include "include/control/flow.p4"
#include "include/control/admit.p4"
#include "include/control/dequeue.p4"
#include "include/control/t_res.p4"
#include "include/control/report.p4"

control LaneIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Validate() validate;
    TResMatch() t_res_match;
    ProbeArrival() probe_arrival;
    Route() route;
    PortLimit() port_limit;
    Classify() classify;
    Flow() flow;
    Policy() policy;
    IsEct() is_ect;
    Admit() admit;
    MarkCe() mark_ce;
    Report() report;

    // A packet-out needs room in its port's queue like any other packet, but is in no lane.
    @hidden action take_packet_out() {
        meta.port = hdr.packet_out.egress_port;
        meta.length = meta.length - 2;
        hdr.packet_out.setInvalid();
        meta.probe = hdr.probe.isValid() ? PROBE_SENT : PROBE_NONE;
    }

    @hidden action go_nowhere() {
        meta.port = standard_metadata.ingress_port;
        meta.reason = REASON_ROUTE_DROP;
    }

    apply {
        meta.now = standard_metadata.ingress_global_timestamp;
        meta.length = (bit<16>)standard_metadata.packet_length;
        meta.slot = NO_FLOW_SLOT;
        meta.lane = NO_FLOW_SLOT;
        meta.queue_weight = WEIGHT_ONE;
        meta.port = standard_metadata.ingress_port;     // where a refusal without a route is counted

        if (hdr.packet_out.isValid()) {
            take_packet_out();
        } else if (hdr.probe.isValid()) {
            probe_arrival.apply(hdr, meta, standard_metadata);
        } else {
            meta.is_flow = 1;
            validate.apply(hdr, meta, standard_metadata);
            if (meta.reason == REASON_NONE) {
                if (hdr.tcp.isValid() && hdr.tcp.ack == 1 && meta.tcp_payload_len == 0) {
                    t_res_match.apply(hdr, meta);
                }
                route.apply(hdr, meta, standard_metadata);
            }
        }

        // v1model drops what is sent there, and tells nobody: it must not be counted in.
        if (meta.reason == REASON_NONE && meta.port == DROP_PORT) {
            go_nowhere();
        }
        if (meta.reason == REASON_NONE) {
            port_limit.apply(meta);
            if (meta.counted == 1) {
                if (meta.is_flow == 1) {
                    classify.apply(meta, standard_metadata);
                    policy.apply(meta);
                    flow.apply(hdr, meta);
                }
                if (meta.ecn == 1) {
                    is_ect.apply(hdr, meta);
                }
                admit.apply(meta);
                if (meta.mark == 1) {
                    mark_ce.apply(hdr, meta);
                }
            }
        }
        if (meta.tell == 1 && meta.probe == PROBE_NONE) {
            report.apply(hdr, meta);
        }

        if (meta.reason != REASON_NONE) {
            if (hdr.probe.isValid()) {
                probes.count((bit<32>)(meta.port ++ PROBE_NONE));
            } else {
                drops.count((bit<32>)(meta.port ++ meta.reason));
            }
            if (meta.counted == 1 && meta.probe == PROBE_NONE) {
                flow_drops.count(meta.slot);
            }
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            if (meta.probe != PROBE_NONE) {
                probes.count((bit<32>)(((meta.probe == PROBE_HOME) ? standard_metadata.ingress_port : meta.port) ++ meta.probe));
            } else if (meta.counted == 1) {
                admitted.count((bit<32>)(meta.port ++ meta.traffic_class));
            } else {
                passed.count((bit<32>)meta.port);
            }
        }
    }
}

control LaneEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    ProbeDeparture() probe_departure;
    TResProbe() t_res_probe;

    apply {
        // A packet that ended behind ingress is counted out, and has no other part in anything.
        if (meta.probe != PROBE_NONE && meta.queue_drop == 0) {
            probe_departure.apply(hdr, meta, standard_metadata);
        }
        if (meta.counted == 1) {
            dequeue.apply(meta, standard_metadata);
            if (hdr.tcp.isValid() && meta.tcp_payload_len != 0 && meta.queue_drop == 0) {
                t_res_probe.apply(hdr, meta, standard_metadata);
            }
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         LaneIngress(),
         LaneEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
