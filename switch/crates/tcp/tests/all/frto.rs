// SPDX-License-Identifier: Apache-2.0
//! F-RTO (RFC 5682): spurious timeouts are undone, genuine ones are not.

use super::harness::script;

const SIX: &str = "
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
    +300 expect data 1:1001
    state cwnd 1 ssthresh 3 ca Loss
";

fn six(config: &str, open: &str, text: &str) {
    script(
        &format!("initial_window_packets=6 frto=true {config}"),
        &format!("{open}\n{SIX}{text}"),
    );
}

#[test]
fn a_delay_spike_is_found_with_the_second_ack_without_sack() {
    six(
        "",
        "open",
        "+200 inject ack 1001          # step 2.b: new data instead of retransmissions
         expect data 6001:7001 7001:8001
         expect none
         +10 inject ack 2001           # step 3.b: 1001:2001 was never sent again, so its original arrived
         state ca Open spurious_timeouts 1 retransmits 1 cwnd 7
         expect data 8001:9001
         +10 inject ack 6001
         expect data 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001
         state ca Open cwnd 8",
    );
}

#[test]
fn a_delay_spike_is_found_with_sack() {
    six(
        "recovery=sack",
        "open sackok",
        "+200 inject ack 1 sack 1001:2001   # an original arrived before the copy
         state ca Disorder spurious_timeouts 1 cwnd 6 in_flight 6   # the copy counts still
         expect none
         +10 inject ack 2001
         expect data 6001:7001 7001:8001 8001:9001
         state ca Open retransmits 1",
    );
}

#[test]
fn a_genuine_loss_goes_on_with_retransmissions() {
    six(
        "",
        "open",
        "+200 inject ack 1001
         expect data 6001:7001 7001:8001
         +100 inject ack 1001          # step 3.a: a duplicate for the new data, nothing between arrived
         expect data 1001:2001
         state ca Loss spurious_timeouts 0
         inject ack 1001
         expect data 2001:3001
         +100 inject ack 3001
         expect data 3001:4001          # the two new segments count as in flight again
         state ca Loss spurious_timeouts 0 cwnd 3 in_flight 3",
    );
}

#[test]
fn a_duplicate_first_means_a_genuine_loss() {
    six(
        "recovery=sack",
        "open sackok",
        "+200 inject ack 1001
         expect data 6001:7001 7001:8001
         +100 inject ack 1001 sack 6001:7001  # only new data arrived
         expect data 1001:2001
         state ca Loss spurious_timeouts 0",
    );
}

#[test]
fn without_new_data_it_is_an_ordinary_timeout() {
    script(
        "initial_window_packets=6 frto=true",
        "open
         write 3000
         expect data 1:1001 1001:2001 2001:3001
         +300 expect data 1:1001
         +200 inject ack 1001
         expect data 1001:2001 2001:3001
         state spurious_timeouts 0",
    );
}

#[test]
fn off_means_off() {
    script(
        "initial_window_packets=6 frto=false",
        &format!("open\n{SIX} +200 inject ack 1001\n expect data 1001:2001 2001:3001\n state spurious_timeouts 0"),
    );
}

#[test]
fn a_second_timeout_of_the_same_data_may_still_be_spurious() {
    six(
        "",
        "open",
        "+600 expect data 1:1001
         +200 inject ack 1001
         expect data 6001:7001 7001:8001
         +10 inject ack 2001
         state ca Open spurious_timeouts 1 timeouts 2 cwnd 7
         expect data 8001:9001",
    );
}

#[test]
fn new_data_that_is_not_worth_a_segment_is_none() {
    script(
        "initial_window_packets=6 frto=true",
        "open win 6500
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +300 expect data 1:1001
         +200 inject ack 1001 win 5500        # room for 500 bytes
         expect data 1001:2001 2001:3001
         state spurious_timeouts 0",
    );
}

/// With RACK three SACKs do not show that a segment is lost which was sent after all that they name (Linux: tcp_time_to_recover()).
#[test]
fn after_a_spurious_timeout_sacks_of_older_segments_begin_no_recovery() {
    six(
        "recovery=sack rack=true",
        "open sackok",
        "+200 inject ack 1 sack 1001:2001
         state ca Disorder cwnd 6
         inject ack 1 sack 1001:3001
         expect data 6001:7001
         inject ack 1 sack 1001:4001
         expect data 7001:8001
         state ca Disorder cwnd 6 fast_retransmits 0",
    );
}
