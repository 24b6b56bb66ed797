// SPDX-License-Identifier: Apache-2.0
//! The retransmission timer: back-off, Karn, and the slow start that follows (RFC 6298, RFC 5681 §3.1).

use super::harness::script;

#[test]
fn the_timer_backs_off_one_two_four() {
    script(
        "initial_window_packets=2",
        "open                          # RTT 100 ms: RTO = 100 + 4 * 50
         write greedy
         expect data 1:1001 1001:2001
         state rto 300
         +299 expect none
         +1 expect data 1:1001
         state rto 600 cwnd 1 ssthresh 2 ca Loss timeouts 1
         +599 expect none
         +1 expect data 1:1001
         state rto 1200 ssthresh 2
         +1200 expect data 1:1001
         +2400 expect data 1:1001
         state timeouts 4 retransmits 4",
    );
}

#[test]
fn the_back_off_has_a_maximum() {
    script(
        "initial_window_packets=1 rto_max_ns=1000000000",
        "open
         write greedy
         expect data 1:1001
         +300 expect data 1:1001
         +600 expect data 1:1001
         +1000 expect data 1:1001
         +1000 expect data 1:1001",
    );
}

#[test]
fn karn_takes_no_sample_from_what_was_sent_twice_and_keeps_the_back_off() {
    script(
        "initial_window_packets=1",
        "open
         write greedy
         expect data 1:1001
         +300 expect data 1:1001
         +10 inject ack 1001           # of the original or the copy?
         expect data 1001:2001 2001:3001
         state srtt 100 rto 600        # no sample of 10 ms or 310 ms; RFC 6298 §5.7: the RTO stays
         +200 inject ack 2001          # sent once: a sample of 200 ms ends the back-off
         state srtt 112 rto 362
         expect data 3001:4001",
    );
}

#[test]
fn timestamps_give_a_sample_even_then() {
    script(
        "initial_window_packets=1 timestamps=true",
        "open ts 500 1
         write greedy
         expect data 1:1001
         +300 expect data 1:1001
         +100 inject ack 1001 ts 900 401      # echoes the copy, sent at 400 ms: timestamp 401
         expect data 1001:2001 2001:3001
         state srtt 100 rto 250",
    );
}

#[test]
fn after_a_timeout_slow_start_sends_everything_again() {
    script(
        "initial_window_packets=6",
        "open
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +300 expect data 1:1001
         +100 inject ack 1001
         expect data 1001:2001 2001:3001
         state cwnd 2 ssthresh 3 ca Loss
         +100 inject ack 3001
         expect data 3001:4001 4001:5001 5001:6001
         state cwnd 3
         +100 inject ack 6001
         expect data 6001:7001 7001:8001 8001:9001
         +100 inject ack 9001
         state ca Open cwnd 3 timeouts 1 retransmits 6
         expect data 9001:10001 10001:11001 11001:12001",
    );
}

#[test]
fn an_ack_restarts_the_timer() {
    script(
        "initial_window_packets=2",
        "open
         write 2000
         expect data 1:1001 1001:2001
         +200 inject ack 1001
         state rto 362
         +362 expect none              # 362.5
         +1 expect data 1001:2001
         +1000 expect data 1001:2001
         +100 inject ack 2001
         state in_flight 0
         +100000 expect none           # nothing in flight: no timer",
    );
}

#[test]
fn linux_puts_its_minimum_on_top_of_the_rtt() {
    script(
        "initial_window_packets=1 rto_rule=linux",
        "open
         write greedy
         expect data 1:1001
         state rto 300                 # 100 + max(4 * 50, 200)
         +100 inject ack 1001
         expect data 1001:2001 2001:3001
         +100 inject ack 3001
         expect data 3001:4001 4001:5001 5001:6001
         state rto 300",
    );
}
