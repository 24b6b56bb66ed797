// SPDX-License-Identifier: Apache-2.0
// Probes of the link behind a port: the propagation delay without TCP, without a common clock, with traffic in the queue.
//
//   controller ── packet-out ──► queue ──► departed_us ──── link ────► the neighbour's ingress (its own clock: now)
//                                                                          │ kind PROBE_OUT: turned round
//   controller ◄── packet-in ◄── returned_us ◄────────────── link ──── queue ─► turn_us = time since its arrival
//
//      2 tau = (returned_us - departed_us) - turn_us - the frame's own serialisation at both ends
//
// departed_us and returned_us are of one switch, turn_us is a difference of the other's clock: nothing has to be synchronised,
// and the time in both queues is left out. A dequeue is the start of the transmission on the embedded switch; BMv2 sends at once.
//
// A host can do little with it: a port turns one probe in PROBE_TURN_PERIOD_US, back to where it came from; and only a frame that
// carries the nonce of a probe that this port has outstanding goes to the controller, once.
#ifndef FAIRLANE_PROBE_P4
#define FAIRLANE_PROBE_P4

#include "../headers.p4"

// Nonces of the probes that have left and not come back, 0: none. Index: port ++ the nonce's low 3 bits.
register<bit<32>>(PROBES_OUT) probe_open;

/// What became of probes: index port ++ 0 refused, 1 sent by the controller, 2 turned round, 3 came back.
counter(PROBE_COUNTERS, CounterType.packets) probes;

/// A frame with a probe from the network: turned round, given to the controller, or refused.
control ProbeArrival(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    register<time_us_t>(PORTS) probe_turned;      // us; when the port last turned one

    @hidden action turn_round() {
        time_us_t last;
        bit<32> port = (bit<32>)standard_metadata.ingress_port;
        probe_turned.read(last, port);
        if (last != 0 && meta.now - last < PROBE_TURN_PERIOD_US) {
            meta.reason = REASON_PROBE;
        } else {
            probe_turned.write(port, meta.now);
            hdr.probe.kind = PROBE_BACK;
            meta.port = standard_metadata.ingress_port;
            meta.probe = PROBE_TURNED;
        }
    }

    @hidden action come_home() {
        bit<32> open;
        bit<32> index = (bit<32>)(standard_metadata.ingress_port ++ hdr.probe.nonce[2:0]);
        probe_open.read(open, index);
        if (open == 0 || open != hdr.probe.nonce) {
            meta.reason = REASON_PROBE;
        } else {
            probe_open.write(index, 0);
            hdr.probe.returned_us = meta.now;
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = PACKET_IN_PROBE;
            meta.port = CPU_PORT;
            meta.probe = PROBE_HOME;
        }
    }

    apply {
        if (meta.length > PROBE_MAX_BYTES) {
            meta.reason = REASON_PROBE;
        } else if (hdr.probe.kind == PROBE_OUT) {
            turn_round();
        } else {
            come_home();
        }
    }
}

/// Egress: the times of a probe that leaves.
control ProbeDeparture(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard_metadata) {
    @hidden action depart() {
        hdr.probe.departed_us = standard_metadata.egress_global_timestamp;
        probe_open.write((bit<32>)(meta.port ++ hdr.probe.nonce[2:0]), hdr.probe.nonce);
    }

    @hidden action go_back() {
        hdr.probe.turn_us = (bit<32>)(standard_metadata.egress_global_timestamp - meta.now);
    }

    apply {
        if (meta.probe == PROBE_SENT) {
            depart();
        } else if (meta.probe == PROBE_TURNED) {
            go_back();
        }
    }
}

#endif
