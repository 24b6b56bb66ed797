// SPDX-License-Identifier: Apache-2.0
// ena.p4: routes IP and notifies senders of corrupted segments for receivers that cannot (Error Notification ACK).
//
//   parser ─► ingress: judge ─► validate ─┬─► at other ports ─────────────────────────────────► route ─┐
//                 from the satellite link ├─► good: follow data, close its name ─────────────► route ─┤
//                                         ├─► corrupted, of a known flow: name it, back as an ACK ────┤
//                                         └─► whose it is cannot be read: note a stray, drop          │
//                   to the satellite link: hear the receiver, mark its ACK ◄──────────────────────────┤
//             queue ◄─────────────────────────────────────────────────────────────────────────────────┘
//               └────► egress: cut the ACK off ─► deparser
//
// For P4Runtime users: docs/p4.md lists tables, actions, counters and drop reasons; docs/schemes.md says why.
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#include "include/ena/metadata.p4"
#include "include/ena/headers.p4"
#include "include/ena/parser.p4"
#include "include/control/validate.p4"
#include "include/control/route.p4"
#include "include/ena/state.p4"
#include "include/ena/judge.p4"
#include "include/ena/far_side.p4"
#include "include/ena/flow.p4"
#include "include/ena/names.p4"
#include "include/ena/stray.p4"
#include "include/ena/notify.p4"
#include "include/ena/mark.p4"

control EnaIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Judge() judge;
    Validate() validate;
    FromSatellite() from_satellite;
    FindFlow() find_flow;
    FollowData() follow_data;
    AddName() add_name;
    NoteStray() note_stray;
    CloseName() close_name;
    Notify() notify;
    Route() route;
    ToSatellite() to_satellite;
    HearReceiver() hear_receiver;
    Mark() mark;
    bit<1> is_far_side;

    @hidden action take_packet_out() {
        meta.port = hdr.packet_out.egress_port;
        meta.length = meta.length - 2;
        hdr.packet_out.setInvalid();
    }

    apply {
        meta.now = standard_metadata.ingress_global_timestamp;
        meta.length = (bit<16>)standard_metadata.packet_length;
        meta.port = standard_metadata.ingress_port;     // where a refusal without a route is counted
        is_far_side = 0;

        if (hdr.packet_out.isValid()) {
            take_packet_out();
        } else {
            if (standard_metadata.checksum_error == 1) {
                judge.apply(hdr, meta, standard_metadata);
            }
            validate.apply(hdr, meta, standard_metadata);
            // Padding (a frame longer than its packet) is in the sum, and is nobody's data.
            if (meta.reason != REASON_NONE && meta.reason != REASON_TTL
                || meta.tcp_whole == 1 && (meta.corrupted == 0 && meta.tcp_payload_len != 0
                    || meta.corrupted == 1 && hdr.ipv4.total_len + meta.l2_length == meta.length)) {
                from_satellite.apply(standard_metadata, is_far_side);
            }
            if (is_far_side == 1 && meta.reason == REASON_NONE) {
                find_flow.apply(hdr, meta);
                if (meta.is_known == 1) {
                    follow_data.apply(hdr, meta, standard_metadata);
                }
                if (meta.corrupted == 1) {
                    notify.apply(hdr, meta, standard_metadata);
                } else if (meta.is_known == 1) {
                    close_name.apply(hdr, meta);
                }
                if (meta.adds_name == 1) {
                    add_name.apply(meta);
                }
            }
            if (is_far_side == 1 && meta.reason != REASON_NONE) {
                note_stray.apply(meta, standard_metadata);
            }
            if (meta.reason == REASON_NONE) {
                if (is_far_side == 0 || meta.corrupted == 0) {
                    route.apply(hdr, meta, standard_metadata);
                    if (meta.reason == REASON_NONE && meta.tcp_whole == 1 && meta.corrupted == 0
                        && hdr.tcp.data_offset >= 5 && hdr.tcp.rst == 0 && (hdr.tcp.ack == 1 || hdr.tcp.syn == 1)) {
                        to_satellite.apply(meta, is_far_side);
                        if (is_far_side == 1) {
                            hear_receiver.apply(hdr, meta);
                            if (meta.is_known == 1 && hdr.tcp.syn == 0) {
                                mark.apply(hdr, meta);
                            }
                        }
                    }
                }
            }
        }

        if (meta.reason != REASON_NONE) {
            drops.count((bit<32>)(meta.port ++ meta.reason));
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = meta.port;
            if (meta.made == 0) {
                passed.count((bit<32>)meta.port);
            }
        }
    }
}

control EnaEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.made == 1) {
            truncate((bit<32>)meta.made_length);
        }
    }
}

V1Switch(EnaParser(),
         EnaVerifyChecksum(),
         EnaIngress(),
         EnaEgress(),
         EnaComputeChecksum(),
         EnaDeparser()) main;
