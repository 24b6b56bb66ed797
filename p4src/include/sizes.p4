// SPDX-License-Identifier: Apache-2.0
// Every size, default and code number of the P4 programs: nothing else in p4src holds a magic number.
#ifndef FAIRLANE_SIZES_P4
#define FAIRLANE_SIZES_P4

// ---- Ports -------------------------------------------------------------------------------------
// Ports 0..511. The packet I/O port is 510 (simple_switch_grpc --cpu-port 510); 511 is v1model's drop port.
#define PORTS 512
#define CPU_PORT 510
#define DROP_PORT 511

// ---- Tables ------------------------------------------------------------------------------------
#define ROUTES_V4 4096
#define ROUTES_V6 4096
#define L2_ENTRIES 1024
#define CLASS_RULES 256
#define CLASSES 8          // bit<3>, as a VLAN's PCP
#define POLICIES 4096      // PORTS * CLASSES

// ---- Slots: the per-flow state -------------------------------------------------------------------
//      0 .. FLOWS-1                 a flow with an entry in flow_v4 or flow_v6 (its flow_id)
//      FLOWS .. FLOWS+FALLBACK-1    flows without an entry, by hash (control/flow.p4); all that is not IP
//      NO_FLOW_SLOT                 what belongs to no flow: packet-outs
#define FLOWS 65536        // bit<16> flow_id
#define FALLBACK 16384     // FALLBACK_BITS of the hash
#define FALLBACK_BITS 14
#define NO_FLOW_SLOT 81920
#define SLOTS 81921

// ---- Weights -------------------------------------------------------------------------------------
// Fixed point, 1/256: Qthresh_i = (qthresh * weight) >> WEIGHT_SHIFT, rounded down.
#define WEIGHT_SHIFT 8
#define WEIGHT_ONE 256

#define UNLIMITED 0xFFFFFFFF

// A tap waits until so many packets do at the port: on a nearly empty one it would leave the line idle.
#define TAP_LEAST 3

// ---- Times, microseconds ---------------------------------------------------------------------------
#define LANE_STAY_US 1000000          // so long a flow with an entry may stay in its lane by hash
#define NEW_FLOW_PERIOD_US 100000     // at most one new_flow digest a fallback slot in this time
#define T_RES_PERIOD_US 50000         // at most one T_res probe a flow in this time
#define T_RES_PORT_PERIOD_US 2000     // at most one T_res report a port in this time
#define T_RES_TIMEOUT_US 10000000     // a probe without an answer is given up

// ---- Probes (control/probe.p4) -----------------------------------------------------------------------
#define PROBES_OUT 4096               // PORTS * 8 outstanding, index = port ++ low bits of the nonce
#define PROBE_COUNTERS 2048           // PORTS * 4, index = port ++ what became of it
#define PROBE_TURN_PERIOD_US 10000    // a port turns at most one in this time
#define PROBE_MAX_BYTES 64            // a longer frame is no probe of ours
#define PROBE_CELLS 2                 // of such a frame (gfr.p4)

// ---- GFR (gfr.p4) ------------------------------------------------------------------------------------
//      0 .. VC_SLOTS-1              a VC at a port, the slot of its entry in vc_share
//      VC_SLOTS + port              what belongs to no VC at that port
#define VC_SLOTS 4096
#define GFR_SLOTS 4608     // VC_SLOTS + PORTS
#define VC_RULES 4096      // of vc_classify, of vc_classify_v6
#define CLP_RULES 128
#define VERDICTS 147456    // GFR_SLOTS * 2 CLP * 16 verdicts, index = slot ++ clp ++ verdict
#define RATE_BURST_US 64   // paper's form of (2): frames closer than this count as one
#define GFR_REPORT_PERIOD_US 200000   // at most one report a managed port in this time
#define RATE_DT_MAX_US 0x7FFFFFF   // longer silences count as this, 134 s: the end of the tables of eq. (2)

// ---- ENA (ena.p4) ------------------------------------------------------------------------------------
#define ENA_BITS 12        // of the flow's hash
#define ENA_FLOWS 4096
#define ENA_NAMES_BITS 5
#define ENA_NAMES 32       // corrupted segments that a flow may have open
#define ENA_NAME_CELLS 131072         // ENA_FLOWS * ENA_NAMES, index = flow ++ place
#define ENA_IDLE_US 10000000          // so long a silent flow keeps its place, and a stray waits for its gap
#define ENA_UNKNOWN_SCALE 14          // window scale of a flow whose SYN was not seen: the largest (RFC 7323 section 2.3)
#define ENA_TTL 64                    // of an ACK that the switch makes

// ---- Queue management (fq_codel.p4) --------------------------------------------------------------------
#define FQ_QUEUE_BITS 10
#define FQ_STATES 65536               // ports 1 .. 63 * 1024 queues, index = port ++ queue

#define CEBINAE_CELLS 65536           // flows by the low 16 bits of their hash (cebinae.p4)

// ---- Ranks (sp_pifo.p4, aifo.p4) -----------------------------------------------------------------------
#define RANK_CELLS 65536              // PORTS * 128 ranks, index = port ++ rank
#define RANK_SHOWN_MAX 126            // ranks above it are counted together
#define RANK_DRAWS 4096               // pieces of distributions
#define SP_PIFO_CELLS 16384           // PORTS * 32 queues, index = port ++ queue
#define AIFO_CELLS 16384              // PORTS * 32 ranks of the window, index = port ++ place

// ---- Counter arrays --------------------------------------------------------------------------------
#define REASONS 16                    // bit<4>
#define DROP_COUNTERS 8192            // PORTS * REASONS, index = port ++ reason
#define ADMITTED_COUNTERS 4096        // PORTS * CLASSES, index = port ++ class

typedef bit<9>  port_t;
@noWarn("unused") typedef bit<3>  class_t;
@noWarn("unused") typedef bit<2>  probe_kind_t;
typedef bit<4>  reason_t;
@noWarn("unused") typedef bit<32> slot_t;
@noWarn("unused") typedef bit<48> time_us_t;

// ---- Drop reasons: the low 4 bits of an index of the counter `drops` ---------------------------------
const reason_t REASON_NONE           = 0;
// Refused before a route was known: counted for the INGRESS port.
const reason_t REASON_SHORT          = 1;   // the frame ends inside a header
const reason_t REASON_BAD_VERSION    = 2;   // EtherType and IP version disagree
const reason_t REASON_BAD_IHL        = 3;   // IPv4 IHL below 5
const reason_t REASON_BAD_LENGTH     = 4;   // the IP (or TCP) length does not fit header or frame
const reason_t REASON_BAD_CHECKSUM   = 5;   // IPv4 header checksum
const reason_t REASON_TTL            = 6;   // TTL or hop limit 0 or 1
const reason_t REASON_NON_IP         = 7;   // no entry in `l2`
const reason_t REASON_NO_ROUTE       = 8;   // no entry in ipv4_lpm / ipv6_lpm
const reason_t REASON_ROUTE_DROP     = 9;   // a table says `drop`
const reason_t REASON_PARSER         = 10;  // any other parser error
// Refused by admission: counted for the EGRESS port.
@noWarn("unused") const reason_t REASON_AQM            = 11;  // active queue management (codel.p4, fq_codel.p4, pie.p4, red.p4)
@noWarn("unused") const reason_t REASON_RANK           = 11;  // the rank is too large for what waits (aifo.p4)
@noWarn("unused") const reason_t REASON_QTHRESH        = 11;  // the flow has its threshold of packets waiting
@noWarn("unused") const reason_t REASON_PORT_FULL      = 12;  // the port's queue is full (packets or bytes; QMAX cells)
@noWarn("unused") const reason_t REASON_GFR            = 13;  // the GFR scheme in force
@noWarn("unused") const reason_t REASON_PCR            = 14;  // above the VC's peak rate at its edge
@noWarn("unused") const reason_t REASON_MFS            = 15;  // longer than the VC's longest frame at its edge
// Not counted in `drops`: a probe that is neither due to be turned round nor awaited.
@noWarn("unused") const reason_t REASON_PROBE          = 10;
// Refused behind a satellite link (ena.p4): counted for the INGRESS port.
@noWarn("unused") const reason_t REASON_CORRUPTED      = 13;  // TCP checksum, and nobody to tell

// ---- packet-in reasons -------------------------------------------------------------------------------
// Chosen by the table entry that sends the packet to the controller: to_cpu(reason), 0..126.
@noWarn("unused") const bit<7> PACKET_IN_PROBE         = 127; // a probe that came back

#endif
