// SPDX-License-Identifier: Apache-2.0
// The metadata that goes with a packet of gfr.p4 through the queue.
#ifndef FAIRLANE_METADATA_P4
#define FAIRLANE_METADATA_P4

#include "../sizes.p4"

typedef bit<16> vc_t;
typedef bit<4>  verdict_t;
typedef bit<3>  scheme_t;

struct metadata_t {
    // Set by the parser, as in qthresh.p4.
    bit<16>   src_port;
    bit<16>   dst_port;
    bit<6>    dscp;               // 0 where there is no IP header
    bit<3>    pcp;                // 0 where there is no VLAN tag
    bit<12>   vid;                // of the outer tag
    bit<32>   tunnel;             // not used here
    bit<16>   l2_length;          // bytes in front of the IP header
    bit<16>   tcp_header;         // bytes; 0 where there is none

    // What ingress decided. A packet is dropped when reason is not REASON_NONE.
    reason_t  reason;
    port_t    port;               // egress port
    bit<16>   tcp_payload_len;    // set by validate, not used here
    bit<16>   length;             // bytes of the frame
    time_us_t now;                // ingress time
    verdict_t verdict;            // gfr/state.p4; valid on a managed port

    // The scheme of the egress port (table port_scheme).
    scheme_t  scheme;             // SCHEME_NONE: the port is not managed
    bit<1>    per_vc_queue;
    bit<1>    rate_form;          // 0 time-weighted, 1 the paper's fixed alpha
    bit<1>    at_arrival;         // r_i of all frames that arrive, not only of those accepted
    bit<32>   period_us;          // the least T of the paper's form
    bit<16>   n;                  // active VCs
    bit<16>   z;                  // 1/256
    bit<16>   alpha;              // 1/256
    bit<32>   qmax;               // cells
    bit<32>   lbo;
    bit<32>   hbo;
    bit<32>   inv_span;           // 2^32 / (HBO - LBO)

    // The frame's VC and its mark.
    vc_t      vc;                 // 0: none
    bit<1>    dei;
    bit<1>    clp;
    bit<2>    color;              // of the edge's meter
    bit<16>   mfs;                // bytes of frame
    bit<6>    mark_dscp;
    bit<1>    set_dscp;

    // The VC's share of the egress port (table vc_share).
    bit<16>   vc_queue;
    bit<32>   vc_weight;
    bit<40>   w;                  // w_i of eq. (3), bit/s
    bit<32>   share;              // w_i/W, 1/65536
    bit<32>   inv_share;          // W/w_i, 1/65536
    bit<32>   inv_rest;           // 1/(1 - w_i/W), 1/65536
    bit<32>   threshold;          // T_i, cells

    // For eq. (2): time since the VC's last accepted frame, and what the tables make of it.
    bit<32>   dt_us;
    bit<32>   line;               // start of the straight piece
    bit<32>   slope;
    bit<32>   offset;             // from its start, us
    bit<8>    shift;
    bit<24>   rate_cells;         // of the frames that count together, 0: not yet

    // Carried through the queue, so that exactly what was counted in is counted out.
    bit<16>   slot;
    bit<16>   cells;
    probe_kind_t probe;           // what the packet is to the switch, PROBE_NONE for all but probes

    // Written by the traffic manager where it can: why the packet ended behind ingress, 0 for one that leaves.
    bit<8>    queue_drop;

    // Read by the traffic manager.
    bit<16>   queue_id;
    bit<32>   queue_weight;
}

const probe_kind_t PROBE_NONE   = 0;
const probe_kind_t PROBE_SENT   = 1;   // the controller's, on its way out
const probe_kind_t PROBE_TURNED = 2;   // a neighbour's, on its way back
const probe_kind_t PROBE_HOME   = 3;   // ours, on its way to the controller

const scheme_t SCHEME_NONE            = 0;
const scheme_t SCHEME_DROP_TAIL       = 1;
const scheme_t SCHEME_DOUBLE_EPD      = 2;
const scheme_t SCHEME_DFBA            = 3;
const scheme_t SCHEME_WFBA            = 4;
const scheme_t SCHEME_PERVC_THRESHOLD = 5;
const scheme_t SCHEME_PROPOSED        = 6;

#endif
