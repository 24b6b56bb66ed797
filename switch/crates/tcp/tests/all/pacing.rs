// SPDX-License-Identifier: Apache-2.0
//! Pacing (BBR's, whose rate is the window over the RTT times 2.89 at the start) and marks of an application that is the limit.

use super::harness::script;

/// The first ten segments leave at once, as in Linux. 14 · 1000 bytes in 100 ms times 2.89 times 0.99: a packet each 2.5 ms,
/// two at a time.
#[test]
fn segments_leave_at_the_rate_two_at_a_time() {
    script(
        "cc=bbr initial_window_packets=14",
        "open rtt 100
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
         expect data 10001:11001 11001:12001
         expect none
         +4 expect none
         +1 expect data 12001:13001 13001:14001
         +90 expect none",
    );
}

/// A retransmission by the timer does not wait for its turn.
#[test]
fn a_timeout_is_not_paced() {
    script(
        "cc=bbr initial_window_packets=2",
        "open rtt 100
         write greedy
         expect data 1:1001 1001:2001
         +300 expect data 1:1001
         state timeouts 1",
    );
}
