// SPDX-License-Identifier: Apache-2.0
//! E-RTO: new data on the first three timeouts; nothing is retransmitted when the timeout was spurious.

use super::harness::script;

const SIX: &str = "
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
    +300 expect data 6001:7001     # the next new segment instead of 1:1001
    expect none
    state cwnd 1 ssthresh 3 ca Loss in_flight 1 erto_probes 1 retransmits 0
";

fn six(config: &str, open: &str, text: &str) {
    script(
        &format!("initial_window_packets=6 erto=true {config}"),
        &format!("{open}\n{SIX}{text}"),
    );
}

#[test]
fn a_delay_spike_costs_no_retransmission_and_no_window() {
    six(
        "",
        "open",
        "+200 inject ack 1001          # the first ACK: not for the new segment, so wait
         expect none
         state ca Loss cwnd 1 spurious_timeouts 0
         +3 inject ack 2001            # the second is no duplicate either
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 0
         expect data 7001:8001 8001:9001
         +3 inject ack 6001
         expect data 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001
         +3 inject ack 7001
         expect data 14001:15001 15001:16001
         state ca Open retransmits 0 timeouts 1 data_sent 16",
    );
}

#[test]
fn the_first_ack_for_the_new_segment_is_enough() {
    six(
        "",
        "open",
        "+200 inject ack 7001          # the ACKs between were lost
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 0
         expect data 7001:8001 8001:9001 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001",
    );
}

#[test]
fn an_ack_for_all_but_the_new_segment_waits_for_the_second() {
    six(
        "",
        "open",
        "+200 inject ack 6001
         expect none
         state ca Loss spurious_timeouts 0
         +3 inject ack 7001
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 0
         expect data 7001:8001 8001:9001 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001",
    );
}

#[test]
fn a_duplicate_ack_first_means_a_real_loss() {
    six(
        "",
        "open",
        "+100 inject ack 1             # all six were lost, the new segment arrived
         expect data 1:1001
         expect none
         state ca Loss cwnd 1 ssthresh 3 spurious_timeouts 0 retransmits 1
         +100 inject ack 1001
         expect data 1001:2001         # without SACK the new segment counts as in flight again
         state cwnd 2 in_flight 2
         +100 inject ack 2001
         expect data 2001:3001 3001:4001
         +100 inject ack 4001
         expect data 4001:5001 5001:6001
         +100 inject ack 7001          # the new segment need not be sent again
         state ca Open cwnd 3 spurious_timeouts 0 retransmits 6 timeouts 1
         expect data 7001:8001 8001:9001 9001:10001",
    );
}

#[test]
fn a_duplicate_ack_second_means_a_real_loss() {
    six(
        "",
        "open",
        "+10 inject ack 1001           # was only late; the other five were lost
         expect none
         +100 inject ack 1001          # for the new segment
         expect data 1001:2001
         expect none
         state ca Loss cwnd 1 ssthresh 3 spurious_timeouts 0 retransmits 1
         +100 inject ack 2001
         expect data 2001:3001
         +100 inject ack 3001
         expect data 3001:4001 4001:5001
         +100 inject ack 5001
         expect data 5001:6001 7001:8001
         +100 inject ack 7001
         state ca Open cwnd 3 spurious_timeouts 0 retransmits 5 timeouts 1
         expect data 8001:9001 9001:10001",
    );
}

#[test]
fn three_timeouts_in_a_row_send_new_data_and_the_spike_is_still_found() {
    six(
        "",
        "open",
        "+599 expect none
         +1 expect data 7001:8001
         state erto_probes 2 cwnd 1 in_flight 1 ssthresh 3
         +1200 expect data 8001:9001
         state erto_probes 3 timeouts 3 retransmits 0
         +500 inject ack 1001
         expect none
         +3 inject ack 2001
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 0 in_flight 7
         +3 inject ack 6001
         expect data 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001
         state ca Open cwnd 8 in_flight 8 retransmits 0",
    );
}

#[test]
fn the_fourth_timeout_is_an_ordinary_one() {
    six(
        "",
        "open",
        "+600 expect data 7001:8001
         +1200 expect data 8001:9001
         +2400 expect data 1:1001
         expect none
         state timeouts 4 erto_probes 3 retransmits 1 cwnd 1
         +100 inject ack 1001
         expect data 1001:2001 2001:3001
         state spurious_timeouts 0",
    );
}

#[test]
fn the_new_segment_is_lost_too() {
    six(
        "",
        "open",
        "+600 expect data 7001:8001    # the cost of E-RTO: another timeout
         +100 inject ack 1
         expect data 1:1001
         +100 inject ack 1001
         expect data 1001:2001
         +100 inject ack 2001
         expect data 2001:3001 3001:4001
         +100 inject ack 4001
         expect data 4001:5001 5001:6001
         +100 inject ack 6001
         expect data 6001:7001         # the first new segment, below high_seq since the second timeout
         expect data 8001:9001
         state retransmits 7 spurious_timeouts 0 ca Loss",
    );
}

#[test]
fn a_retransmission_of_a_real_loss_that_times_out_is_sent_again() {
    six(
        "",
        "open",
        "+100 inject ack 1
         expect data 1:1001
         +700 expect data 1:1001
         state retransmits 2 timeouts 2 erto_probes 1",
    );
}

#[test]
fn without_new_data_it_is_an_ordinary_timeout() {
    script(
        "initial_window_packets=6 erto=true",
        "open
         write 3000
         expect data 1:1001 1001:2001 2001:3001
         +300 expect data 1:1001
         state erto_probes 0 retransmits 1
         +100 inject ack 1001
         expect data 1001:2001 2001:3001",
    );
}

#[test]
fn with_a_window_that_takes_none_it_is_an_ordinary_timeout() {
    script(
        "initial_window_packets=6 erto=true",
        "open win 3000
         write greedy
         expect data 1:1001 1001:2001 2001:3001
         +300 expect data 1:1001
         state erto_probes 0 retransmits 1",
    );
    script(
        "initial_window_packets=6 erto=true",
        "open win 3200                 # room for 200 bytes: not worth a segment
         write greedy
         expect data 1:1001 1001:2001 2001:3001
         +300 expect data 1:1001
         state erto_probes 0 retransmits 1",
    );
}

#[test]
fn a_timeout_within_a_recovery_is_an_ordinary_one() {
    script(
        "initial_window_packets=6 erto=true limited_transmit=false",
        "open
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         state ca Recovery
         +400 expect data 1:1001
         state ca Loss timeouts 1 erto_probes 0",
    );
}

#[test]
fn with_timestamps_the_first_ack_tells() {
    six(
        "timestamps=true",
        "open ts 500 1",
        "+200 inject ack 1001 ts 900 101      # echoes the original's timestamp
         state ca Open cwnd 7 spurious_timeouts 1 retransmits 0
         expect data 7001:8001",
    );
}

#[test]
fn with_sack_data_from_before_the_timeout_tells() {
    six(
        "recovery=sack",
        "open sackok",
        "+200 inject ack 1 sack 1001:2001     # the head was lost, but the others were late
         state spurious_timeouts 1 ca Disorder cwnd 6
         expect none
         inject ack 1 sack 1001:4001
         expect data 1:1001
         state ca Recovery fast_retransmits 1 retransmits 1",
    );
    six(
        "recovery=sack",
        "open sackok",
        "+100 inject ack 1 sack 6001:7001     # only the new segment arrived
         expect data 1:1001
         state ca Loss spurious_timeouts 0 retransmits 1",
    );
}

#[test]
fn a_later_spike_is_judged_anew() {
    six(
        "",
        "open",
        "+100 inject ack 7001
         state ca Open cwnd 7 spurious_timeouts 1
         expect data 7001:8001 8001:9001 9001:10001 10001:11001 11001:12001 12001:13001 13001:14001
         +5000 expect data 14001:15001 15001:16001 16001:17001
         state timeouts 4 erto_probes 4",
    );
}

#[test]
fn with_sack_a_fourth_timeout_within_the_spike_is_undone_and_nothing_else_is_sent_twice() {
    six(
        "recovery=sack frto=true rack=true",
        "open sackok",
        "+600 expect data 7001:8001
         +1200 expect data 8001:9001
         +2400 expect data 1:1001
         +100 inject ack 2001          # the head, of either time, and one that was sent once
         state spurious_timeouts 1 ca Open retransmits 1
         expect none",
    );
}
