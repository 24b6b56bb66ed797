// SPDX-License-Identifier: Apache-2.0
//! Congestion control as the sender sees it: growth per ACK or per packet, clamps, and Vegas's view of the RTT.

use super::harness::script;

const FOUR: &str = "open\n write greedy\n expect data 1:1001 1001:2001 2001:3001 3001:4001\n";

#[test]
fn reno_grows_by_acks_and_linux_by_packets() {
    let acks = "+100 inject ack 4001\n";
    script("initial_window_packets=4 cc=reno", &format!("{FOUR}{acks} state cwnd 5\n expect data 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001"));
    script(
        "initial_window_packets=4 cc=reno_linux",
        &format!("{FOUR}{acks} state cwnd 8\n expect data 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001 10001:11001 11001:12001"),
    );
}

#[test]
fn avoidance_takes_a_window_of_acks_for_one_packet() {
    script(
        "initial_window_packets=4 initial_ssthresh_packets=2",
        &format!(
            "{FOUR}
             +100 inject ack 1001
             expect data 4001:5001
             inject ack 2001
             expect data 5001:6001
             inject ack 3001
             expect data 6001:7001
             state cwnd 4
             inject ack 4001
             expect data 7001:8001 8001:9001
             state cwnd 5"
        ),
    );
}

#[test]
fn a_clamp_is_a_fixed_window() {
    script(
        "initial_window_packets=10 cwnd_clamp_packets=2",
        "open
         write greedy
         expect data 1:1001 1001:2001
         +100 inject ack 1001
         expect data 2001:3001
         +10 inject ack 3001
         expect data 3001:4001 4001:5001
         state cwnd 2",
    );
}

#[test]
fn the_window_does_not_grow_while_the_application_is_the_limit() {
    script(
        "initial_window_packets=4 initial_ssthresh_packets=2",
        "open
         write 1000
         expect data 1:1001
         +100 inject ack 1001
         write 1000
         expect data 1001:2001
         +100 inject ack 2001
         write 1000
         expect data 2001:3001
         +100 inject ack 3001
         write 1000
         expect data 3001:4001
         +100 inject ack 4001
         write 1000
         expect data 4001:5001
         +100 inject ack 5001
         state cwnd 4",
    );
}

#[test]
fn an_idle_rto_restarts_the_window_only_when_asked_to() {
    let idle = |cwnd: u32| {
        format!(
            "open
             write 8000
             expect data 1:1001 1001:2001 2001:3001 3001:4001
             +100 inject ack 1001
             expect data 4001:5001 5001:6001
             inject ack 2001
             expect data 6001:7001 7001:8001
             +100 inject ack 8001
             state cwnd 7
             +10000 write 1000
             expect data 8001:9001
             state cwnd {cwnd}"
        )
    };
    script(
        "initial_window_packets=4 slow_start_after_idle=false",
        &idle(7),
    );
    script(
        "initial_window_packets=4 slow_start_after_idle=true",
        &idle(4),
    );
}

#[test]
fn vegas_takes_three_quarters_for_duplicates_and_one_packet_for_a_timeout() {
    let ten = "open\n write greedy\n expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001\n";
    script(
        "cc=vegas initial_window_packets=8 limited_transmit=false",
        &format!("{ten} +100 inject ack 1\n inject ack 1\n inject ack 1\n expect data 1:1001 8001:9001\n state cwnd 6 ssthresh 6"),
    );
    script(
        "cc=vegas initial_window_packets=8",
        &format!("{ten} +300 expect data 1:1001\n state cwnd 1 ssthresh 4"),
    );
}

/// ns-2: `VegasTcpAgent::timeout` begins slow start whatever went before.
#[test]
fn vegas_begins_slow_start_after_a_timeout_within_a_recovery() {
    let eight = "open\n write greedy\n expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001\n";
    script(
        "cc=vegas initial_window_packets=8 limited_transmit=false",
        &format!(
            "{eight} +100 inject ack 1
             inject ack 1
             inject ack 1
             expect data 1:1001 8001:9001
             +300 expect data 1:1001
             state ca Loss cwnd 1
             +100 inject ack 2001
             expect data 2001:3001 3001:4001
             state cwnd 2"
        ),
    );
}

#[test]
fn reno_recovery_holds_the_window_after_a_partial_ack() {
    script(
        "cc=reno_recovery initial_window_packets=10 limited_transmit=false",
        "open
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
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
         inject ack 1
         expect data 12001:13001
         +100 inject ack 5001           # partial: the kernel would repair 5001:6001 now
         expect none
         state ca Recovery
         inject ack 5001
         inject ack 5001
         expect none
         inject ack 5001                # the third: halved again
         expect data 5001:6001 13001:14001   # all the others have arrived
         state ssthresh 2 cwnd 2",
    );
}
