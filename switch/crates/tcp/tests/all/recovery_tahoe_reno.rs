// SPDX-License-Identifier: Apache-2.0
//! The older recoveries: Tahoe goes back to one packet, Reno's ends with the first ACK for new data (RFC 5681 §3.2).

use super::harness::script;

const TEN: &str = "
    open
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

fn ten(config: &str, text: &str) {
    script(
        &format!("initial_window_packets=10 limited_transmit=false {config}"),
        &format!("{TEN}{text}"),
    );
}

#[test]
fn tahoe_goes_to_one_packet_and_sends_again_what_is_not_acknowledged() {
    ten(
        "recovery=tahoe",
        "# 1:1001 and 5001:6001 are lost
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         state cwnd 1 ssthresh 5 ca Loss fast_retransmits 1 timeouts 0 rto 300
         inject ack 1                 # more duplicates change nothing
         inject ack 1
         inject ack 1
         expect none
         +100 inject ack 5001         # up to the next hole: slow start
         state cwnd 2
         expect data 5001:6001 6001:7001
         +100 inject ack 10001        # everything had arrived but 5001:6001
         state cwnd 3 ca Loss         # held until something above is acknowledged
         expect data 10001:11001 11001:12001 12001:13001
         +100 inject ack 11001
         state ca Open cwnd 4
         expect data 13001:14001 14001:15001
         state timeouts 0 fast_retransmits 1",
    );
}

#[test]
fn reno_leaves_on_a_partial_ack_and_needs_three_more_duplicates() {
    ten(
        "recovery=reno",
        "# 1:1001 and 5001:6001 are lost: eight duplicates
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         state cwnd 5 ssthresh 5 ca Recovery
         inject ack 1
         inject ack 1
         inject ack 1
         expect data 10001:11001
         inject ack 1
         expect data 11001:12001
         inject ack 1
         expect data 12001:13001
         +100 inject ack 5001         # ends recovery; the window is not inflated any more
         state cwnd 5 ca Open
         expect none                  # 8 are in flight
         +1 inject ack 5001
         inject ack 5001
         expect none
         inject ack 5001              # the third since
         expect data 5001:6001
         state cwnd 2 ssthresh 2 ca Recovery fast_retransmits 2 timeouts 0
         +100 inject ack 13001
         state cwnd 2 ca Open
         expect data 13001:14001 14001:15001",
    );
}

#[test]
fn reno_with_too_few_duplicates_waits_for_the_timer() {
    ten(
        "recovery=reno",
        "+100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         +100 inject ack 9001         # 9001:10001 is lost too, one segment in flight
         state ca Open cwnd 5
         expect data 10001:11001 11001:12001 12001:13001 13001:14001
         +299 expect none
         +1 expect data 9001:10001
         state ca Loss cwnd 1 ssthresh 2 timeouts 1",
    );
}

/// `cc=tahoe` is Tahoe as Linux can have it: the kernel's NewReno recovery repairs, the control keeps the window.
#[test]
fn linuxs_tahoe_sends_two_after_one_loss_and_nothing_twice() {
    ten(
        "cc=tahoe recovery=newreno",
        "+100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         state ca Recovery ssthresh 5
         inject ack 1
         inject ack 1
         inject ack 1
         inject ack 1
         inject ack 1
         inject ack 1
         expect none                  # no fast recovery
         state cwnd 1
         +100 inject ack 10001
         expect data 10001:11001 11001:12001
         state cwnd 2 retransmits 1
         +100 inject ack 12001
         expect data 12001:13001 13001:14001 14001:15001
         state ca Open cwnd 3 timeouts 0",
    );
}

#[test]
fn linuxs_tahoe_fills_one_hole_an_ack() {
    ten(
        "cc=tahoe recovery=newreno",
        "# 1:1001, 3001:4001 and 5001:6001 are lost: seven duplicates
         +100 inject ack 1
         inject ack 1
         inject ack 1
         expect data 1:1001
         inject ack 1
         inject ack 1
         inject ack 1
         inject ack 1
         expect none
         +100 inject ack 3001
         expect data 3001:4001
         expect none
         +100 inject ack 5001
         expect data 5001:6001
         expect none
         +100 inject ack 10001
         state retransmits 3 fast_retransmits 1 timeouts 0 ssthresh 5 cwnd 4
         expect data 10001:11001 11001:12001 12001:13001 13001:14001",
    );
}

#[test]
fn linuxs_tahoe_after_a_timeout_is_everybodys() {
    ten(
        "cc=tahoe recovery=newreno",
        "+300 expect data 1:1001
         expect none
         state ca Loss cwnd 1 ssthresh 5
         +100 inject ack 1001
         expect data 1001:2001 2001:3001
         state cwnd 2",
    );
}
