// SPDX-License-Identifier: Apache-2.0
//! Proportional rate reduction (RFC 6937): the window comes down over the round trip, not at once.

use super::harness::script;

const TEN: &str = "
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";
const TWENTY: &str = "
    expect data 10001:11001 11001:12001 12001:13001 13001:14001 14001:15001
    expect data 15001:16001 16001:17001 17001:18001 18001:19001 19001:20001
";

/// ssthresh 10 of 20: above it, k packets delivered let ceil(k / 2) out (RFC 6937 §3).
#[test]
fn one_segment_for_every_two_that_got_through() {
    script(
        "initial_window_packets=20 recovery=sack prr=true limited_transmit=false",
        &format!(
            "open sackok
             {TEN} {TWENTY}
             +100 inject ack 1 sack 1001:2001
             inject ack 1 sack 1001:3001
             inject ack 1 sack 1001:4001
             expect data 1:1001                   # 1 of 1
             state ca Recovery ssthresh 10 cwnd 17
             inject ack 1 sack 1001:5001
             expect none                          # 1 of 2
             inject ack 1 sack 1001:6001
             expect data 20001:21001              # 2 of 3
             inject ack 1 sack 1001:7001
             expect none
             inject ack 1 sack 1001:8001
             expect data 21001:22001
             inject ack 1 sack 1001:9001
             expect none
             inject ack 1 sack 1001:10001
             expect data 22001:23001
             state in_flight 14
             +100 inject ack 20001
             state ca Open cwnd 10 timeouts 0 in_flight 10
             expect data 23001:24001 24001:25001 25001:26001 26001:27001 27001:28001 28001:29001 29001:30001"
        ),
    );
}

/// At ssthresh the window stops to shrink: one for one.
#[test]
fn newreno_has_it_too() {
    script(
        "initial_window_packets=10 recovery=newreno prr=true limited_transmit=false",
        &format!(
            "open
             {TEN}
             +100 inject ack 1
             inject ack 1
             inject ack 1
             expect data 1:1001
             state ca Recovery ssthresh 5 cwnd 7
             inject ack 1
             expect none
             inject ack 1
             expect none
             state in_flight 5
             inject ack 1
             expect data 10001:11001
             inject ack 1
             expect data 11001:12001
             inject ack 1
             expect data 12001:13001
             inject ack 1
             expect data 13001:14001
             +100 inject ack 10001
             state ca Recovery
             expect data 14001:15001
             +10 inject ack 11001
             state ca Open cwnd 5
             expect data 15001:16001"
        ),
    );
}

#[test]
fn off_the_window_is_ssthresh_at_once() {
    script(
        "initial_window_packets=10 recovery=sack prr=false limited_transmit=false",
        &format!("open sackok\n {TEN} +100 inject ack 1 sack 1001:4001\n expect data 1:1001\n state cwnd 5 ssthresh 5"),
    );
}
