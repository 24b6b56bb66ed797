// SPDX-License-Identifier: Apache-2.0
//! What the peer's window limits above a hole: everything that was sent, or what was not SACKed yet.

use super::harness::script;

const SIX_THOUSAND: &str = "
    open win 6000 sackok
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
    +100 inject ack 1 sack 1001:2001
";

#[test]
fn by_the_window_a_hole_stalls_the_sender() {
    script(
        "initial_window_packets=20 recovery=sack",
        &format!(
            "{SIX_THOUSAND}
             expect none
             inject ack 1 sack 1001:4001
             expect data 1:1001
             inject ack 1 sack 1001:6001
             expect none
             state in_flight 1"
        ),
    );
}

#[test]
fn by_what_is_outstanding_it_goes_on_to_two_windows() {
    script(
        "initial_window_packets=20 recovery=sack sack_limit=outstanding",
        &format!(
            "{SIX_THOUSAND}
             expect data 6001:7001
             inject ack 1 sack 1001:4001
             expect data 1:1001 7001:8001 8001:9001
             inject ack 1 sack 1001:6001
             expect data 9001:10001 10001:11001
             inject ack 1 sack 1001:9001
             expect data 11001:12001        # two windows above the hole, not more
             inject ack 1 sack 1001:12001
             expect none
             +100 inject ack 12001
             expect data 12001:13001"
        )
        .replace(
            "expect data 12001:13001",
            "expect data 12001:13001 13001:14001 14001:15001 15001:16001 16001:17001 17001:18001",
        ),
    );
}

#[test]
fn without_sack_the_window_holds() {
    script(
        "initial_window_packets=20 sack_limit=outstanding",
        "open win 6000
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +100 inject ack 1
         inject ack 1
         expect none
         inject ack 1
         expect data 1:1001
         expect none",
    );
}

#[test]
fn the_receiver_takes_two_windows_and_announces_one() {
    script(
        "receive_window_bytes=4000 recovery=sack sack_limit=outstanding window_scale=false delayed_ack=false",
        "open sackok
         inject data 1001:2001
         expect ack 1 win 4000 sack 1001:2001
         inject data 4001:5001
         expect ack 1 win 4000 sack 4001:5001 1001:2001
         inject data 6001:8001
         expect ack 1 win 4000 sack 6001:8001 4001:5001 1001:2001
         inject data 8001:9001              # beyond two windows
         expect ack 1 win 4000 sack 6001:8001 4001:5001 1001:2001
         inject data 1:1001
         expect ack 2001 win 4000 sack 6001:8001 4001:5001",
    );
}

#[test]
fn without_the_option_the_receiver_keeps_to_what_it_announced() {
    script(
        "receive_window_bytes=4000 recovery=sack window_scale=false delayed_ack=false",
        "open sackok
         inject data 3001:5001              # its second half lies beyond the window
         expect ack 1 win 4000 sack 3001:4001
         inject data 5001:6001
         expect ack 1 win 4000 sack 3001:4001",
    );
}
