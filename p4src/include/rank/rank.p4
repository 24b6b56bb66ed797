// SPDX-License-Identifier: Apache-2.0
// A packet's rank: the smaller, the more urgent. What the sender says, or a number that is drawn here.
//
//   RANK_FIELD  IPv4's identification, IPv6's flow label (its low 16 bits)
//   RANK_DSCP   the DSCP
//   RANK_PORT   the port that it came in by
//   else        drawn at random, by the quantiles in rank_draw: the papers' workloads with senders as they are
//
// What is not IP, and what the controller sends, has rank 0 where the rank is the sender's to say.
#ifndef FAIRLANE_RANK_RANK_P4
#define FAIRLANE_RANK_RANK_P4

#include "../headers.p4"

#define RANK_FIELD 0
#define RANK_DSCP 1
#define RANK_PORT 2

control Rank(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    bit<16> draw;

    action set_rank(bit<16> rank) {
        meta.rank = rank;
    }

    table rank_draw {
        key = {
            meta.port : exact @name("egress_port");
            draw : range @name("draw");
        }
        actions = { set_rank; NoAction; }
        default_action = NoAction();
        size = RANK_DRAWS;
    }

    apply {
        if (meta.rank_from == RANK_FIELD) {
            if (hdr.ipv4.isValid()) {
                meta.rank = hdr.ipv4.identification;
            } else if (hdr.ipv6.isValid()) {
                meta.rank = hdr.ipv6.flow_label[15:0];
            }
        } else if (meta.rank_from == RANK_DSCP) {
            meta.rank = (bit<16>)meta.dscp;
        } else if (meta.rank_from == RANK_PORT) {
            meta.rank = (bit<16>)standard_metadata.ingress_port;
        } else {
            random(draw, 16w0, 16w0xFFFF);
            rank_draw.apply();
        }
        meta.rank_cell = (bit<32>)(meta.port ++ ((meta.rank > RANK_SHOWN_MAX) ? 7w127 : meta.rank[6:0]));
    }
}

#endif
