// SPDX-License-Identifier: Apache-2.0
//! ENA's receiver: a corrupted segment is answered at once and named, in that ACK alone or until it has arrived.

use super::harness::script;

/// Names the lowest that is missing in every ACK.
fn lowest(config: &str, text: &str) {
    receiver(&format!("ena_naming=lowest {config}"), text);
}

fn receiver(config: &str, text: &str) {
    script(
        &format!("ena=true recovery=sack window_scale=false receive_window_bytes=20000 {config}"),
        text,
    );
}

#[test]
fn the_last_segment_of_a_burst_is_answered_at_once() {
    receiver(
        "delayed_ack=true delayed_ack_timeout_ns=200000000",
        "open sackok
         inject data 1:1001
         expect none                       # the second has its time
         +5 corrupt data 1001:2001
         expect ack 1001 win 20000 ena 1001
         +500 expect none
         state ena_corrupted 1 received 1000
         inject data 1001:2001             # sent again: nothing is named any more
         expect none
         +200 expect ack 2001 win 20000
         expect none",
    );
}

/// The ENA paper, section IV: "the segment received just before was in error, and that segment's number".
#[test]
fn the_ack_that_answers_a_corrupted_segment_names_that_one_and_others_name_nothing() {
    receiver(
        "delayed_ack=false",
        "open sackok
         corrupt data 1:1001
         expect ack 1 win 20000 ena 1
         inject data 1001:2001
         expect ack 1 win 20000 sack 1001:2001
         corrupt data 2001:3001
         expect ack 1 win 20000 ena 2001 sack 1001:2001
         inject data 3001:4001
         expect ack 1 win 20000 sack 3001:4001 1001:2001
         corrupt data 1:1001               # the retransmission: named again
         expect ack 1 win 20000 ena 1 sack 3001:4001 1001:2001
         inject data 1:1001
         expect ack 2001 win 20000 sack 3001:4001
         inject data 2001:3001
         expect ack 4001 win 20000
         state ena_corrupted 3",
    );
}

#[test]
fn every_ack_names_the_lowest_that_is_missing() {
    lowest(
        "delayed_ack=false",
        "open sackok
         corrupt data 1:1001
         expect ack 1 win 20000 ena 1
         inject data 1001:2001
         expect ack 1 win 20000 ena 1 sack 1001:2001
         corrupt data 2001:3001
         expect ack 1 win 20000 ena 1 sack 1001:2001
         inject data 3001:4001
         expect ack 1 win 20000 ena 1 sack 3001:4001 1001:2001
         corrupt data 1:1001               # the retransmission, again
         expect ack 1 win 20000 ena 1 sack 3001:4001 1001:2001
         inject data 1:1001
         expect ack 2001 win 20000 ena 2001 sack 3001:4001
         inject data 2001:3001
         expect ack 4001 win 20000
         state ena_corrupted 3",
    );
}

#[test]
fn a_name_above_a_gap_goes_when_its_segment_has_arrived() {
    lowest(
        "delayed_ack=false",
        "open sackok
         corrupt data 1001:2001            # and 1:1001 was dropped
         expect ack 1 win 20000 ena 1001
         inject data 2001:3001
         expect ack 1 win 20000 ena 1001 sack 2001:3001
         inject data 1001:2001
         expect ack 1 win 20000 sack 1001:3001",
    );
}

#[test]
fn only_what_the_window_takes_and_brings_something_is_attributed() {
    receiver(
        "delayed_ack=false",
        "open sackok
         inject data 1:1001
         expect ack 1001
         corrupt data 1:1001               # below the window
         corrupt data 21001:22001          # above it
         corrupt data 1001:2001 sport 5002 # another connection's
         corrupt seq 1001                  # an ACK
         expect none
         inject data 2001:3001
         expect ack 1001 win 20000 sack 2001:3001
         corrupt data 2001:3001            # it is here already
         expect none
         state ena_corrupted 0
         corrupt data 20001:21001          # the last that fits
         expect ack 1001 win 20000 ena 20001 sack 2001:3001
         state ena_corrupted 1",
    );
}

#[test]
fn without_the_option_nothing_is_named() {
    script(
        "recovery=sack window_scale=false",
        "open sackok
         corrupt data 1:1001
         expect none
         state ena_corrupted 0",
    );
}

/// RFC 2018 §3 leaves room for three blocks beside timestamps; a name takes the room of one. Without timestamps it fits
/// beside three.
#[test]
fn a_name_takes_the_room_of_one_block() {
    lowest(
        "timestamps=true delayed_ack=false",
        "open sackok ts 9 1
         corrupt data 1:1001 ts 10 1
         expect ack 1 win 20000 ts 101 9 ena 1
         inject data 1001:2001 ts 10 1
         expect ack 1 win 20000 ts 101 9 ena 1 sack 1001:2001
         inject data 3001:4001 ts 10 1
         expect ack 1 win 20000 ts 101 9 ena 1 sack 3001:4001 1001:2001
         inject data 5001:6001 ts 10 1
         expect ack 1 win 20000 ts 101 9 ena 1 sack 5001:6001 3001:4001
         inject data 1:1001 ts 11 1
         expect ack 2001 win 20000 ts 101 11 sack 5001:6001 3001:4001",
    );
    lowest(
        "delayed_ack=false",
        "open sackok
         corrupt data 1:1001
         expect ack 1
         inject data 1001:2001
         expect ack 1
         inject data 3001:4001
         expect ack 1
         inject data 5001:6001
         expect ack 1
         inject data 7001:8001
         expect ack 1 win 20000 ena 1 sack 7001:8001 5001:6001 3001:4001",
    );
}

/// A duplicate ACK has no payload: the answer does not wait for data of its own direction and does not ride on it.
#[test]
fn the_answer_goes_before_data() {
    receiver(
        "initial_window_packets=1",
        "open sackok
         corrupt data 1:1001
         expect ack 1 win 20000 ena 1
         write 500
         expect data 1:501 ack 1 win 20000
         expect none",
    );
}
