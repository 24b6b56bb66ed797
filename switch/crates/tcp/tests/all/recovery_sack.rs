// SPDX-License-Identifier: Apache-2.0
//! Recovery from a scoreboard (RFC 2018, RFC 6675).

use super::harness::script;

const TEN: &str = "
    open sackok
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

fn ten(config: &str, text: &str) {
    script(
        &format!("initial_window_packets=10 recovery=sack {config}"),
        &format!("{TEN}{text}"),
    );
}

#[test]
fn several_holes_are_repaired_in_one_round_trip() {
    ten(
        "limited_transmit=false",
        "# 1:1001, 3001:4001 and 5001:6001 are lost
         +100 inject ack 1 sack 1001:2001
         inject ack 1 sack 1001:3001
         expect none
         state ca Disorder in_flight 8
         inject ack 1 sack 4001:5001 1001:3001
         expect data 1:1001           # three SACKed segments above it
         state ca Recovery cwnd 5 ssthresh 5
         inject ack 1 sack 6001:7001 4001:5001 1001:3001
         expect none                  # pipe 10 - 4 - 1 + 1 = 6
         inject ack 1 sack 6001:8001 4001:5001 1001:3001
         expect data 3001:4001        # lost now: pipe 10 - 5 - 2 + 1 = 4 before it
         inject ack 1 sack 6001:9001 4001:5001 1001:3001
         expect data 5001:6001 10001:11001
         inject ack 1 sack 6001:10001 4001:5001 1001:3001
         expect data 11001:12001
         state in_flight 5
         +100 inject ack 4001 sack 6001:10001 4001:5001
         expect data 12001:13001 13001:14001
         inject ack 10001
         expect data 14001:15001
         state ca Open cwnd 5 retransmits 3 fast_retransmits 1 timeouts 0",
    );
}

#[test]
fn a_lost_ack_does_not_delay_the_retransmission() {
    ten("", "+100 inject ack 1 sack 1001:4001\n expect data 1:1001\n expect none\n state ca Recovery dupacks 1");
}

#[test]
fn reordering_below_the_threshold_is_no_loss() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1 sack 1001:2001
         inject ack 1 sack 1001:3001
         +1 inject ack 3001
         expect data 10001:11001 11001:12001 12001:13001 13001:14001
         state ca Open retransmits 0 cwnd 11",
    );
}

#[test]
fn blocks_outside_of_the_window_are_ignored() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 5001
         expect data 10001:11001 11001:12001 12001:13001 13001:14001 14001:15001 15001:16001
         inject ack 5001 sack 1001:3001          # below snd_una
         inject ack 5001 sack 20001:30001        # above snd_nxt
         inject ack 5001 sack 7001:6001          # backwards
         expect none
         state in_flight 11 ca Open",
    );
}

#[test]
fn after_a_timeout_what_was_sacked_is_not_sent_again() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1 sack 5001:6001
         +300 expect data 1:1001
         state ca Loss cwnd 1 in_flight 1
         +100 inject ack 4001 sack 5001:6001
         expect data 4001:5001 6001:7001
         state cwnd 2",
    );
}

#[test]
fn a_receiver_that_takes_back_its_sack_gets_everything() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1 sack 1001:2001
         +10 inject ack 1001 sack 1001:2001       # SACKs what would be acknowledged: it was dropped
         expect data 10001:11001 11001:12001
         +500 expect data 1001:2001
         state ca Loss in_flight 1",
    );
}

#[test]
fn without_the_peers_permission_recovery_is_newreno() {
    script(
        "initial_window_packets=5 recovery=sack limited_transmit=false",
        "open
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         +100 inject ack 3001
         expect data 3001:4001
         expect data 5001:6001
         state ca Recovery",
    );
}

#[test]
fn the_receiver_reports_what_lies_above_a_gap_the_newest_first() {
    script(
        "recovery=sack delayed_ack=false window_scale=false",
        "open sackok
         inject data 1001:2001
         expect ack 1 win 65535 sack 1001:2001
         inject data 3001:4001
         expect ack 1 win 65535 sack 3001:4001 1001:2001
         inject data 5001:6001
         expect ack 1 win 65535 sack 5001:6001 3001:4001 1001:2001
         inject data 7001:8001
         expect ack 1 win 65535 sack 7001:8001 5001:6001 3001:4001 1001:2001
         inject data 9001:10001
         expect ack 1 win 65535 sack 9001:10001 7001:8001 5001:6001 3001:4001
         inject data 1:1001
         expect ack 2001 win 65535 sack 9001:10001 7001:8001 5001:6001 3001:4001",
    );
    // RFC 2018 §3: only three beside timestamps.
    script(
        "recovery=sack timestamps=true window_scale=false",
        "open sackok ts 9 1
         inject data 1001:2001 ts 10 1
         expect ack 1 win 65535 ts 101 9 sack 1001:2001
         inject data 3001:4001 ts 10 1
         expect ack 1
         inject data 5001:6001 ts 10 1
         expect ack 1
         inject data 7001:8001 ts 10 1
         expect ack 1 win 65535 ts 101 9 sack 7001:8001 5001:6001 3001:4001",
    );
}

#[test]
fn a_second_loss_within_a_recovery_is_found_by_three_sacked_above_it() {
    ten(
        "limited_transmit=false",
        "+100 inject ack 1 sack 1001:5001
         expect data 1:1001
         +100 inject ack 5001
         expect none
         inject ack 5001 sack 6001:9001
         expect data 5001:6001 10001:11001 11001:12001 12001:13001
         state ca Recovery retransmits 2 fast_retransmits 1",
    );
}
