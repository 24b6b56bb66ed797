// SPDX-License-Identifier: Apache-2.0
//! Losses found by time (RACK, RFC 8985), as Linux's SACK recovery does.

use super::harness::script;

const TEN: &str = "
    open sackok
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

fn ten(config: &str, text: &str) {
    script(
        &format!(
            "initial_window_packets=10 recovery=sack rack=true limited_transmit=false {config}"
        ),
        &format!("{TEN}{text}"),
    );
}

#[test]
fn one_sack_and_a_quarter_of_the_rtt_are_enough() {
    ten(
        "",
        "+100 inject ack 1 sack 1001:2001
         expect none
         state ca Disorder
         +24 expect none
         +1 expect data 1:1001
         state ca Recovery ssthresh 5 fast_retransmits 1 timeouts 0",
    );
}

#[test]
fn reordering_within_a_quarter_of_the_rtt_is_no_loss() {
    ten(
        "",
        "+100 inject ack 1 sack 1001:2001
         +24 inject ack 2001
         expect data 10001:11001 11001:12001 12001:13001
         +100 expect none
         state ca Open retransmits 0",
    );
}

#[test]
fn three_sacks_show_every_hole_below_the_newest() {
    ten(
        "",
        "# 1:1001, 3001:4001 and 5001:6001 are lost
         +100 inject ack 1 sack 1001:3001
         inject ack 1 sack 4001:5001 1001:3001
         expect data 1:1001
         state ca Recovery ssthresh 5 in_flight 6   # 10 - 3 SACKed - 2 lost + 1
         inject ack 1 sack 6001:7001 4001:5001 1001:3001
         expect data 3001:4001                      # 5001:6001 is lost too: 10 - 4 - 3 + 1 = 4, and one may go
         inject ack 1 sack 6001:8001 4001:5001 1001:3001
         expect data 5001:6001",
    );
}

#[test]
fn a_lost_retransmission_is_found_without_the_timer() {
    let lost_again = "
        +100 inject ack 1 sack 1001:2001
        inject ack 1 sack 1001:3001
        inject ack 1 sack 1001:4001
        expect data 1:1001
        state ca Recovery cwnd 5
        inject ack 1 sack 1001:5001
        inject ack 1 sack 1001:6001
        inject ack 1 sack 1001:7001
        expect data 10001:11001
        +90 inject ack 1 sack 1001:10001
        expect data 11001:12001 12001:13001 13001:14001
        +10 inject ack 1 sack 1001:11001\n";
    ten(
        "",
        &format!(
            "{lost_again}
             expect data 1:1001                 # 10001:11001 was sent after it and is there
             expect data 14001:15001
             state retransmits 2 timeouts 0 ca Recovery"
        ),
    );
    ten(
        "rack=false",
        &format!(
            "{lost_again}
             expect data 14001:15001            # RFC 6675: nothing but the timer finds it
             state retransmits 1 timeouts 0 ca Recovery"
        ),
    );
}

#[test]
fn without_sack_it_is_newreno() {
    script(
        "initial_window_packets=5 recovery=newreno rack=true limited_transmit=false",
        "open
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001
         +100 inject ack 1
         inject ack 1
         +100 expect none
         inject ack 1
         expect data 1:1001
         state ca Recovery",
    );
}

/// Linux: FLAG_LOST_RETRANS; RFC 5681 §4.3: the loss of a retransmission is congestion once more.
#[test]
fn a_retransmission_that_is_lost_after_a_timeout_costs_half_again() {
    ten(
        "",
        "+300 expect data 1:1001
         state ca Loss ssthresh 5
         +100 inject ack 1001
         expect data 1001:2001 2001:3001
         +100 inject ack 1001 sack 2001:3001
         expect data 1001:2001 3001:4001
         state ca Recovery ssthresh 2 fast_retransmits 1",
    );
}

/// RFC 8985 §6.3: what was sent less than a round trip before a timeout is not lost yet.
#[test]
fn a_timeout_spares_what_was_just_sent() {
    let late = "
        open sackok
        write 1000
        expect data 1:1001
        +100 inject ack 1001
        write 1000
        expect data 1001:2001
        +200 write 2000
        expect data 2001:3001 3001:4001
        +50 expect data 1001:2001\n";
    let config = "initial_window_packets=10 recovery=sack limited_transmit=false";
    script(
        &format!("{config} rack=true"),
        &format!("{late} state ca Loss in_flight 3 cwnd 3 timeouts 1"),
    );
    script(
        &format!("{config} rack=false"),
        &format!("{late} state ca Loss in_flight 1 cwnd 1 timeouts 1"),
    );
}
