// SPDX-License-Identifier: Apache-2.0
//! Eifel (RFC 3522, RFC 4015): a timestamp from before the retransmission shows that the original got through.

use super::harness::script;

#[test]
fn a_spurious_timeout_is_undone_with_the_first_ack() {
    script(
        "initial_window_packets=6 timestamps=true recovery=sack",
        "open sackok ts 500 1
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +300 expect data 1:1001
         state cwnd 1 ca Loss
         +200 inject ack 1001 ts 900 101      # echoes the original's timestamp, 101
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 1
         expect data 6001:7001 7001:8001",
    );
}

#[test]
fn reordering_that_looked_like_a_loss_is_undone() {
    script(
        "initial_window_packets=6 timestamps=true limited_transmit=false",
        "open ts 500 1
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +100 inject ack 1 ts 600 1
         inject ack 1 ts 600 1
         inject ack 1 ts 600 1
         expect data 1:1001                   # at 200 ms: timestamp 201
         state cwnd 3 ca Recovery
         +10 inject ack 6001 ts 610 101
         expect data 6001:7001 7001:8001 8001:9001 9001:10001 10001:11001 11001:12001
         state cwnd 6 spurious_recoveries 1
         +10 inject ack 7001 ts 620 211
         expect data 12001:13001 13001:14001
         state ca Open cwnd 7",
    );
}

/// A mark is congestion, whatever was reordered (Linux: tcp_enter_recovery()).
#[test]
fn a_recovery_that_begins_with_a_mark_is_not_undone() {
    script(
        "initial_window_packets=6 timestamps=true limited_transmit=false ecn=true",
        "open ece ts 500 1
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +100 inject ack 1 ts 600 1
         inject ack 1 ts 600 1
         inject ack 1 ece ts 600 1
         expect data 1:1001
         state cwnd 3 ca Recovery
         +10 inject ack 6001 ts 610 101
         expect data 6001:7001 … cwr ect
         expect data 7001:8001 8001:9001
         state cwnd 3",
    );
}

#[test]
fn the_retransmissions_echo_undoes_nothing() {
    script(
        "initial_window_packets=6 timestamps=true recovery=sack",
        "open sackok ts 500 1
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +300 expect data 1:1001
         +100 inject ack 1001 ts 900 401
         state ca Loss cwnd 2 spurious_timeouts 0
         expect data 1001:2001 2001:3001",
    );
}
