// SPDX-License-Identifier: Apache-2.0
//! Fast retransmit and NewReno's recovery (RFC 5681 §3.2, RFC 6582).

use super::harness::script;

const TEN: &str = "
    open
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
    expect none
";

/// A script that begins with ten segments in flight, cwnd 10, in slow start.
fn ten(config: &str, text: &str) {
    script(
        &format!("initial_window_packets=10 delayed_ack=false {config}"),
        &format!("{TEN}{text}"),
    );
}

#[test]
fn three_duplicate_acks_make_one_fast_retransmit() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1
         +1 inject ack 1
         expect none
         state ca Disorder cwnd 10 retransmits 0
         +1 inject ack 1
         expect data 1:1001
         state ca Recovery cwnd 5 ssthresh 5 fast_retransmits 1 dupacks 3
         +1 inject ack 1              # 4th
         +1 inject ack 1              # 5th: in flight 10 - 5 - 1 + 1 = 5, as many as ssthresh
         expect none
         +1 inject ack 1
         expect data 10001:11001      # from here on a new segment for each
         +1 inject ack 1
         expect data 11001:12001
         state cwnd 5 retransmits 1
         +80 inject ack 10001         # full ACK: all that was sent before the retransmission
         state cwnd 5 ca Recovery
         expect data 12001:13001 13001:14001 14001:15001
         +10 inject ack 11001
         state ca Open cwnd 5 ssthresh 5 timeouts 0
         expect data 15001:16001",
    );
}

#[test]
fn limited_transmit_sends_new_data_for_the_first_two() {
    ten(
        "",
        "+100 inject ack 1
         expect data 10001:11001
         +1 inject ack 1
         expect data 11001:12001
         +1 inject ack 1
         expect data 1:1001
         expect none",
    );
}

#[test]
fn a_partial_ack_repairs_the_next_hole_and_stays_in_recovery() {
    ten(
        "limited_transmit=false",
        "# segments 1:1001, 3001:4001 and 6001:7001 are lost: seven duplicates
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         inject ack 1
         inject ack 1
         inject ack 1
         expect data 10001:11001
         inject ack 1
         expect data 11001:12001
         +100 inject ack 3001         # partial
         expect data 3001:4001
         expect data 12001:13001
         state ca Recovery cwnd 5 ssthresh 5
         +100 inject ack 6001         # partial
         expect data 6001:7001
         expect data 13001:14001
         state ca Recovery cwnd 5 ssthresh 5 fast_retransmits 1 retransmits 3 timeouts 0
         +100 inject ack 14001
         state ca Open cwnd 5
         expect data 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001",
    );
}

#[test]
fn an_ack_with_data_or_another_window_is_no_duplicate() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1
         inject ack 1
         inject ack 1 win 59000      # smaller: RFC 5681 §2 (e) says no duplicate; Linux counts it, and so do we
         expect data 1:1001
         state dupacks 3",
    );
    ten(
        "limited_transmit=false",
        "+100 inject ack 1
         inject ack 1
         inject ack 1 win 60500
         inject data 1:101
         expect ack 101
         state dupacks 2 ca Disorder",
    );
}

#[test]
fn a_partial_ack_retransmits_even_when_more_is_in_flight_than_the_window() {
    ten(
        "limited_transmit=false",
        "# seven are lost, so only three duplicates come
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         state cwnd 5 in_flight 7
         +100 inject ack 1001
         expect data 1001:2001
         expect none
         state cwnd 5 in_flight 6 ca Recovery",
    );
}
