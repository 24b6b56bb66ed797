// SPDX-License-Identifier: Apache-2.0
// A flow's open names: the sequence numbers of its corrupted segments, lowest first, until the receiver has them.
//
// P4 has no loops: what a loop would do is done a fixed number of times, each time only if there is still need.
#ifndef FAIRLANE_ENA_NAMES_P4
#define FAIRLANE_ENA_NAMES_P4

#include "state.p4"

#define NEXT_PLACE if (looking == 1 && place != head) { compare(); if (above < 0x7FFFFFFF) { move_up(); } else { stop(); } }
#define FOUR_TIMES(x) x x x x
#define EIGHT_TIMES(x) FOUR_TIMES(x) FOUR_TIMES(x)

/// Forgets what the newest ACK covers, up to eight names at a time, and gives the lowest that is left.
control LowestName(inout metadata_t meta) {
    bit<16> state;
    bit<5> head;
    bit<6> count;
    bit<64> said;
    bit<1> is_new;

    @hidden action load() {
        flow_names.read(state, (bit<32>)meta.flow);
        head = state[15:11];
        count = state[10:5];
        is_new = 0;
        meta.has_name = 0;
    }

    @hidden action load_ack() {
        flow_ack.read(said, (bit<32>)meta.flow);
    }

    @hidden action look() {
        names.read(meta.name, (bit<32>)(meta.flow ++ head));
        bit<32> ahead = meta.name - said[63:32];
        if (ahead[31:31] == 1) {
            head = head + 1;
            count = count - 1;
            is_new = 1;
        } else {
            meta.has_name = 1;
        }
    }

    @hidden action save() {
        flow_names.write((bit<32>)meta.flow, head ++ count ++ 5w0);
    }

    apply {
        load();
        if (count != 0) {
            load_ack();
            EIGHT_TIMES(if (count != 0 && meta.has_name == 0) { look(); })
            if (is_new == 1) {
                save();
            }
        }
    }
}

/// Adds a name in its place. With ENA_NAMES of them open one of the two highest is given up: their turn comes last.
control AddName(in headers_t hdr, inout metadata_t meta) {
    bit<16> state;
    bit<5> head;
    bit<6> count;
    bit<5> place;                 // in the ring
    bit<1> looking;
    bit<32> other;
    bit<32> above;

    @hidden action load() {
        flow_names.read(state, (bit<32>)meta.flow);
        head = state[15:11];
        count = state[10:5];
        looking = 1;
    }

    @hidden action make_room() {
        count = ENA_NAMES - 1;
    }

    @hidden action start() {
        place = head + (bit<5>)count;
    }

    @hidden action compare() {
        names.read(other, (bit<32>)(meta.flow ++ (place - 1)));
        above = other - hdr.tcp.seq_no - 1;        // 0 .. 2^31 - 2: the other one is higher
    }

    @hidden action move_up() {
        names.write((bit<32>)(meta.flow ++ place), other);
        place = place - 1;
    }

    @hidden action stop() {
        looking = 0;
    }

    @hidden action save() {
        names.write((bit<32>)(meta.flow ++ place), hdr.tcp.seq_no);
        flow_names.write((bit<32>)meta.flow, head ++ (count + 1) ++ 5w0);
    }

    apply {
        load();
        if (count == ENA_NAMES) {
            make_room();
        }
        start();
        // ENA_NAMES - 1 times.
        EIGHT_TIMES(NEXT_PLACE)
        EIGHT_TIMES(NEXT_PLACE)
        EIGHT_TIMES(NEXT_PLACE)
        FOUR_TIMES(NEXT_PLACE)
        NEXT_PLACE
        NEXT_PLACE
        NEXT_PLACE
        save();
    }
}

#endif
