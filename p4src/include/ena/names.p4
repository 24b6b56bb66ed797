// SPDX-License-Identifier: Apache-2.0
// A flow's open names: the sequence numbers of its corrupted segments, lowest first, until the receiver has them.
//
//   ring of ENA_NAMES places:   . . [head] n n n n . .     head + position, modulo ENA_NAMES
//
// P4 has no loops: what a loop would do is done a fixed number of times, each time only if there is still need.
#ifndef FAIRLANE_ENA_NAMES_P4
#define FAIRLANE_ENA_NAMES_P4

#include "flow.p4"

#define FOUR_TIMES(x) x x x x
#define EIGHT_TIMES(x) FOUR_TIMES(x) FOUR_TIMES(x)

/// Forgets what the newest ACK covers and what was repaired, up to eight names at a time, and gives the lowest that
/// is left.
control LowestName(inout metadata_t meta) {
    bit<16> state;
    bit<5> head;
    bit<6> count;
    bit<64> said;
    bit<33> name;
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
        names.read(name, (bit<32>)(meta.flow ++ head));
        bit<32> ahead = name[31:0] - said[63:32];
        if (ahead[31:31] == 1 || name[32:32] == 1) {
            head = head + 1;
            count = count - 1;
            is_new = 1;
        } else {
            meta.has_name = 1;
            meta.name = name[31:0];
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

/// The position of a segment's name: as many names are lower than it. Binary search; of 32 lower names it says 31.
control FindName(in bit<32> sequence, in metadata_t meta, in bit<5> head, in bit<6> count, out bit<6> position,
                 out bit<1> is_there) {
    bit<33> name;

    @hidden action start() {
        position = 0;
        is_there = 0;
    }

    @hidden action probe(in bit<6> step) {
        names.read(name, (bit<32>)(meta.flow ++ (head + (bit<5>)(position + step - 1))));
        bit<32> ahead = name[31:0] - sequence;
        position = (ahead[31:31] == 1) ? position + step : position;
    }

    @hidden action compare() {
        names.read(name, (bit<32>)(meta.flow ++ (head + (bit<5>)position)));
        is_there = (name[31:0] == sequence) ? 1w1 : 1w0;
    }

    apply {
        start();
        if (count >= 16) { probe(16); }
        if (position + 8 <= count) { probe(8); }
        if (position + 4 <= count) { probe(4); }
        if (position + 2 <= count) { probe(2); }
        if (position + 1 <= count) { probe(1); }
        if (position < count) { compare(); }
    }
}

/// Adds meta.name in its place, once. With ENA_NAMES of them open one of the two highest is given up:
/// their turn comes last.
control AddName(in metadata_t meta) {
    FindName() find_name;
    bit<16> state;
    bit<5> head;
    bit<6> count;
    bit<6> position;
    bit<1> is_there;
    bit<5> goal;
    bit<5> place;
    bit<33> name;

    @hidden action load() {
        flow_names.read(state, (bit<32>)meta.flow);
        head = state[15:11];
        count = state[10:5];
    }

    @hidden action make_room() {
        count = ENA_NAMES - 1;
    }

    @hidden action start() {
        goal = head + (bit<5>)position;
        place = head + (bit<5>)count;
    }

    @hidden action move_up() {
        names.read(name, (bit<32>)(meta.flow ++ (place - 1)));
        names.write((bit<32>)(meta.flow ++ place), name);
        place = place - 1;
    }

    @hidden action put() {
        names.write((bit<32>)(meta.flow ++ goal), 1w0 ++ meta.name);
    }

    @hidden action save() {
        flow_names.write((bit<32>)meta.flow, head ++ (count + 1) ++ 5w0);
    }

    apply {
        load();
        find_name.apply(meta.name, meta, head, count, position, is_there);
        if (is_there == 0) {
            if (count == ENA_NAMES) {
                make_room();
            }
            start();
            // ENA_NAMES - 1 times.
            EIGHT_TIMES(if (place != goal) { move_up(); })
            EIGHT_TIMES(if (place != goal) { move_up(); })
            EIGHT_TIMES(if (place != goal) { move_up(); })
            FOUR_TIMES(if (place != goal) { move_up(); })
            if (place != goal) { move_up(); }
            if (place != goal) { move_up(); }
            if (place != goal) { move_up(); }
            save();
        } else {
            start();
        }
        put();
    }
}

/// A good segment closes its name: what was corrupted came again. The receiver's ACK may be held back by another one.
control CloseName(in headers_t hdr, in metadata_t meta) {
    FindName() find_name;
    bit<16> state;
    bit<6> position;
    bit<1> is_there;

    @hidden action load() {
        flow_names.read(state, (bit<32>)meta.flow);
    }

    @hidden action close() {
        names.write((bit<32>)(meta.flow ++ (state[15:11] + (bit<5>)position)), 1w1 ++ hdr.tcp.seq_no);
    }

    apply {
        load();
        if (state[10:5] != 0) {
            find_name.apply(hdr.tcp.seq_no, meta, state[15:11], state[10:5], position, is_there);
            if (is_there == 1) {
                close();
            }
        }
    }
}

#endif
