// SPDX-License-Identifier: Apache-2.0
// Strays: packets hit where it stands whose they are, in the IPv4 header, the ports or the sequence number.
//
// Nobody can answer for a stray when it comes. But the link is a line: the next new segment of its flow leaves a gap
// before it, exactly as long as the stray was. A gap of another length is a drop.
//
//      edge ┌───────┐ gap = the stray's payload ┌── the next segment
//      ─────┘       └───────────────────────────┘
#ifndef FAIRLANE_ENA_STRAY_P4
#define FAIRLANE_ENA_STRAY_P4

#include "state.p4"

/// A packet that cannot be told whose it is; the last one of its port is remembered.
control NoteStray(in metadata_t meta, in standard_metadata_t standard_metadata) {
    @hidden action note() {
        stray_length.write((bit<32>)standard_metadata.ingress_port, meta.length - meta.l2_length);
        stray_came.write((bit<32>)standard_metadata.ingress_port, meta.now);
    }

    apply {
        note();
    }
}

/// Follows the data of a known flow, good or corrupted, to its edge; names the gap that a stray left. The next ACK
/// tells of it: its receiver sends one at once for the segment behind a gap.
control FollowData(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    bit<33> edge;
    bit<32> ahead;                // of the segment before the edge
    bit<32> end;
    bit<32> beyond;
    bit<16> stray;
    time_us_t came;
    bit<32> stray_payload;

    @hidden action load() {
        flow_edge.read(edge, (bit<32>)meta.flow);
        ahead = hdr.tcp.seq_no - edge[31:0];
        end = hdr.tcp.seq_no + (bit<32>)meta.tcp_payload_len;
        beyond = end - edge[31:0];
    }

    @hidden action save() {
        flow_edge.write((bit<32>)meta.flow, 1w1 ++ end);
    }

    // The flow's headers are as long as this segment's.
    @hidden action load_stray() {
        stray_length.read(stray, (bit<32>)standard_metadata.ingress_port);
        stray_came.read(came, (bit<32>)standard_metadata.ingress_port);
        stray_payload = (bit<32>)(stray - 20 - meta.tcp_header);
    }

    @hidden action name_gap() {
        meta.name = edge[31:0];
        meta.adds_name = 1;
        flow_due.write((bit<32>)meta.flow, 1w1 ++ edge[31:0]);
        stray_length.write((bit<32>)standard_metadata.ingress_port, 0);
        ena_strays.count((bit<32>)standard_metadata.ingress_port);
        ena_corrupted.count((bit<32>)standard_metadata.ingress_port);
    }

    apply {
        load();
        if (meta.corrupted == 1) {
            // Its sequence number is believed where it is the one that had to come.
            if (edge[32:32] == 1 && ahead == 0) {
                save();
            }
        } else if (edge[32:32] == 0) {
            save();
        } else {
            if (ahead[31:31] == 0 && ahead != 0) {
                load_stray();
                if (stray != 0 && ahead == stray_payload && meta.now - came < ENA_IDLE_US) {
                    name_gap();
                }
            }
            if (beyond[31:31] == 0) {
                save();
            }
        }
    }
}

#endif
