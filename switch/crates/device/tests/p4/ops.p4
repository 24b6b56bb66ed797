// SPDX-License-Identifier: Apache-2.0
// Does to a packet what its first bytes say, so that a test can ask for every operation of the switch.
#include <core.p4>
#include <v1model.p4>

const bit<8> FORWARD = 0;     // arg: port
const bit<8> DROP = 1;
const bit<8> MULTICAST = 2;   // arg: group
const bit<8> CLONE_I2E = 3;   // arg: session; the original goes to port 1
const bit<8> CLONE_E2E = 4;   // arg: session; the original goes to port 1
const bit<8> RESUBMIT = 5;    // arg: how often; then to port 1
const bit<8> RECIRCULATE = 6; // arg: how often; then to port 1
const bit<8> DIGEST = 7;      // arg: value; to port 1
const bit<8> TRUNCATE = 8;    // arg: bytes; to port 1
const bit<8> PRIORITY = 9;    // arg: priority; to port 1
const bit<8> DROP_EGRESS = 10;
const bit<8> ASSERT = 11;     // arg: 0 fails
const bit<8> FOREVER = 12;    // resubmits without end
const bit<8> STORM = 13;      // arg: session; clones E2E every packet that leaves, copies too

header cmd_t { bit<8> op; bit<8> arg; }

// What egress saw, put before the command.
header seen_t {
    bit<8> instance_type;
    bit<8> rounds;
    bit<16> egress_port;
    bit<16> egress_rid;
    bit<32> packet_length;
    bit<32> enq_timestamp;
    bit<32> enq_qdepth;
    bit<32> deq_timedelta;
    bit<32> deq_qdepth;
    bit<16> ingress_port;
}

struct headers_t { seen_t seen; cmd_t cmd; }
struct meta_t {
    @field_list(1) bit<8> rounds;
    bit<8> lost;
    bit<8> queue_drop;      // written by the switch
}
struct sample_t { bit<8> value; bit<9> port; }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.cmd); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control C(inout headers_t h, inout meta_t m) { apply {} }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        m.lost = 7;
        if (h.cmd.op == FORWARD) { sm.egress_spec = (bit<9>)h.cmd.arg; }
        else if (h.cmd.op == DROP) { mark_to_drop(sm); }
        else if (h.cmd.op == MULTICAST) { sm.mcast_grp = (bit<16>)h.cmd.arg; }
        else if (h.cmd.op == CLONE_I2E) {
            m.rounds = 77;
            clone_preserving_field_list(CloneType.I2E, (bit<32>)h.cmd.arg, 1);
            m.rounds = 78;
            h.cmd.arg = 99;
        }
        else if (h.cmd.op == RESUBMIT) {
            if (m.rounds < h.cmd.arg) { m.rounds = m.rounds + 1; resubmit_preserving_field_list(1); }
        }
        else if (h.cmd.op == DIGEST) { digest<sample_t>(1, { h.cmd.arg, sm.ingress_port }); }
        else if (h.cmd.op == TRUNCATE) { truncate((bit<32>)h.cmd.arg); }
        else if (h.cmd.op == PRIORITY) { sm.priority = (bit<3>)h.cmd.arg; }
        else if (h.cmd.op == ASSERT) { assert(h.cmd.arg != 0); }
        else if (h.cmd.op == FOREVER) { resubmit_preserving_field_list(1); }
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    // By queue_drop: passes, and the port of the last one.
    counter(256, CounterType.packets) passes;
    register<bit<32>>(256) last_port;

    apply {
        passes.count((bit<32>)m.queue_drop);
        last_port.write((bit<32>)m.queue_drop, (bit<32>)sm.egress_port);
        bool again = false;
        if (h.cmd.op == DROP_EGRESS) { mark_to_drop(sm); }
        else if (h.cmd.op == CLONE_E2E && sm.instance_type != 2) {
            m.rounds = 55;
            clone_preserving_field_list(CloneType.E2E, (bit<32>)h.cmd.arg, 1);
        }
        else if (h.cmd.op == STORM) { clone_preserving_field_list(CloneType.E2E, (bit<32>)h.cmd.arg, 1); }
        else if (h.cmd.op == RECIRCULATE && m.rounds < h.cmd.arg) {
            m.rounds = m.rounds + 1;
            recirculate_preserving_field_list(1);
            again = true;
        }
        if (!again) {
            h.seen.setValid();
            h.seen.instance_type = (bit<8>)sm.instance_type;
            h.seen.rounds = m.rounds;
            h.seen.egress_port = (bit<16>)sm.egress_port;
            h.seen.egress_rid = sm.egress_rid;
            h.seen.packet_length = sm.packet_length;
            h.seen.enq_timestamp = sm.enq_timestamp;
            h.seen.enq_qdepth = (bit<32>)sm.enq_qdepth;
            h.seen.deq_timedelta = sm.deq_timedelta;
            h.seen.deq_qdepth = (bit<32>)sm.deq_qdepth;
            h.seen.ingress_port = (bit<16>)sm.ingress_port;
        }
    }
}

control D(packet_out p, in headers_t h) { apply { p.emit(h.seen); p.emit(h.cmd); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
