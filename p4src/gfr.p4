// SPDX-License-Identifier: Apache-2.0
// gfr.p4: minimum rates per VC and fair sharing of the rest (Kim & Lee, GFR), with the schemes it is compared with.
//
//   parser ─► ingress: validate (or probe) ─► route ─► port_scheme ─► vc, mark, share ─► edge ─► the scheme's admission ─► rate
//                                               │ no scheme: straight on                     │ refused: drop
//             queue ◄───────────────────────────┴────────────────────────────────────────────┘
//               └────► egress: count out ─► deparser
//
// For P4Runtime users: docs/p4.md lists tables, actions, counters, verdicts and drop reasons.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#include "include/gfr/metadata.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/control/validate.p4"
#include "include/control/probe.p4"
#include "include/control/route.p4"
#include "include/gfr/state.p4"
#include "include/gfr/port_scheme.p4"
#include "include/gfr/vc.p4"
#include "include/gfr/edge.p4"
#include "include/gfr/scheme/drop_tail.p4"
#include "include/gfr/scheme/double_epd.p4"
#include "include/gfr/scheme/dfba.p4"
#include "include/gfr/scheme/wfba.p4"
#include "include/gfr/scheme/pervc_threshold.p4"
#include "include/gfr/scheme/proposed.p4"
#include "include/gfr/rate.p4"
#include "include/gfr/dequeue.p4"
#include "include/gfr/report.p4"

control GfrIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Validate() validate;
    ProbeArrival() probe_arrival;
    Route() route;
    PortScheme() port_scheme;
    Vc() vc;
    Edge() edge;
    DropTail() drop_tail;
    DoubleEpd() double_epd;
    Dfba() dfba;
    Wfba() wfba;
    PerVcThreshold() pervc_threshold;
    Proposed() proposed;
    Rate() rate;
    GfrReport() report;

    // A packet-out needs room in its port's buffer like any other packet, but is of no VC.
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
        meta.port = standard_metadata.ingress_port;     // where a refusal without a route is counted

        if (hdr.packet_out.isValid()) {
            take_packet_out();
        } else if (hdr.probe.isValid()) {
            probe_arrival.apply(hdr, meta, standard_metadata);
        } else {
            validate.apply(hdr, meta, standard_metadata);
            if (meta.reason == REASON_NONE) {
                route.apply(hdr, meta, standard_metadata);
            }
        }

        // v1model drops what is sent there, and tells nobody: it must not be counted in.
        if (meta.reason == REASON_NONE && meta.port == DROP_PORT) {
            go_nowhere();
        }
        if (meta.reason == REASON_NONE) {
            port_scheme.apply(meta);
            if (meta.scheme != SCHEME_NONE && meta.probe != PROBE_NONE) {
                // Of no VC, and in nobody's verdicts: only room counts.
                meta.slot = VC_SLOTS + (bit<16>)meta.port;
                meta.cells = PROBE_CELLS;
                drop_tail.apply(meta);
            } else if (meta.scheme != SCHEME_NONE) {
                vc.apply(hdr, meta, standard_metadata);
                if (meta.vc != 0) {
                    edge.apply(hdr, meta, standard_metadata);
                }
                if (meta.reason == REASON_NONE) {
                    if (meta.scheme == SCHEME_PROPOSED) {
                        proposed.apply(meta);
                        if (meta.reason == REASON_NONE || meta.at_arrival == 1) {
                            rate.apply(meta);
                        }
                    } else if (meta.scheme == SCHEME_PERVC_THRESHOLD) {
                        pervc_threshold.apply(meta);
                    } else if (meta.scheme == SCHEME_DFBA) {
                        dfba.apply(meta);
                    } else if (meta.scheme == SCHEME_WFBA) {
                        wfba.apply(meta);
                    } else if (meta.scheme == SCHEME_DOUBLE_EPD) {
                        double_epd.apply(meta);
                    } else {
                        drop_tail.apply(meta);
                    }
                    if (meta.per_vc_queue == 1) {
                        meta.queue_id = meta.vc_queue;
                        meta.queue_weight = meta.vc_weight;
                    }
                }
                vc_verdicts.count((bit<32>)(meta.slot ++ meta.clp ++ meta.verdict));
                report.apply(meta);
            }
        }

        if (meta.reason != REASON_NONE) {
            if (hdr.probe.isValid()) {
                probes.count((bit<32>)(meta.port ++ PROBE_NONE));
            } else {
                drops.count((bit<32>)(meta.port ++ meta.reason));
            }
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            if (meta.probe != PROBE_NONE) {
                probes.count((bit<32>)(((meta.probe == PROBE_HOME) ? standard_metadata.ingress_port : meta.port) ++ meta.probe));
            } else if (meta.scheme != SCHEME_NONE) {
                admitted.count((bit<32>)meta.port);
            } else {
                passed.count((bit<32>)meta.port);
            }
        }
    }
}

control GfrEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;
    ProbeDeparture() probe_departure;

    apply {
        // A packet that ended behind ingress is counted out, and has no other part in anything.
        if (meta.probe != PROBE_NONE && meta.queue_drop == 0) {
            probe_departure.apply(hdr, meta, standard_metadata);
        }
        if (meta.scheme != SCHEME_NONE) {
            dequeue.apply(meta, standard_metadata);
        }
    }
}

V1Switch(LaneParser(),
         LaneVerifyChecksum(),
         GfrIngress(),
         GfrEgress(),
         LaneComputeChecksum(),
         LaneDeparser()) main;
