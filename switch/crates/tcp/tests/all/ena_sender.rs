// SPDX-License-Identifier: Apache-2.0
//! ENA's sender: a named segment costs no window; everything else does as without ENA. The decisions are those of hosts/cc/ena.h.

use super::harness::script;

const TEN: &str = "
    open sackok
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

/// Ten segments in congestion avoidance, from a window of 10.
fn ten(config: &str, text: &str) {
    let options = "initial_window_packets=10 initial_ssthresh_packets=10";
    script(&format!("{options} {config}"), &format!("{TEN}{text}"));
}

const SACK: &str = "recovery=sack cc=ena_rfc6675";
const RENO: &str = "recovery=newreno cc=ena_reno_recovery";
const TAHOE: &str = "recovery=newreno cc=ena_tahoe";

#[test]
fn as_the_paper_has_it_a_named_segment_goes_at_the_first_ack() {
    ten(
        &format!("{SACK} repairs_named=true"),
        "+100 inject ack 1 ena 1              # 1:1001 came in corrupted
         expect data 1:1001
         expect none
         state cwnd 10 ssthresh 10 ca Recovery in_flight 10",
    );
}

#[test]
fn each_named_segment_goes_at_once_whatever_is_in_flight() {
    for sender in [SACK, RENO, TAHOE] {
        ten(
            &format!("{sender} repairs_named=true"),
            "+100 inject ack 1 ena 1
             expect data 1:1001
             inject ack 1 ena 3001
             expect data 3001:4001
             inject ack 1 ena 4001
             expect data 4001:5001
             expect none
             state cwnd 10 ssthresh 10 ca Recovery retransmits 3",
        );
    }
}

/// A name that comes within a round trip of the retransmission is the first copy's; a later one says that it was hit too.
#[test]
fn a_retransmission_that_was_hit_is_named_and_goes_again() {
    // Without SACK a duplicate ACK that is no answer says that something arrived.
    for (sender, meanwhile) in [
        (SACK, "none"),
        (RENO, "data 10001:11001"),
        (TAHOE, "data 10001:11001"),
    ] {
        ten(
            &format!("{sender} repairs_named=true"),
            &format!(
                "+100 inject ack 1 ena 1
                 expect data 1:1001
                 +50 inject ack 1 ena 1
                 expect {meanwhile}
                 +50 inject ack 1 ena 1
                 expect data 1:1001
                 expect none
                 state cwnd 10 ssthresh 10 ca Recovery retransmits 2 timeouts 0"
            ),
        );
    }
}

#[test]
fn as_a_kernel_does_it_a_named_segment_goes_when_it_is_found_lost() {
    ten(
        SACK,
        "+100 inject ack 1 ena 1
         expect none
         inject ack 1 ena 1 sack 1001:2001
         expect data 10001:11001
         inject ack 1 ena 1 sack 1001:3001
         expect data 11001:12001
         inject ack 1 ena 1 sack 1001:4001    # three above it
         expect data 1:1001 12001:13001
         state cwnd 10 ssthresh 10 ca Recovery retransmits 1
         inject ack 13001
         expect data 13001:14001 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001 19001:20001 20001:21001 21001:22001 22001:23001
         state ca Open cwnd 10 ssthresh 10 reductions 0 ena_notified 4 ena_kept 1 ena_reduced 0 timeouts 0",
    );
}

#[test]
fn a_drop_reduces_the_window_as_without_ena() {
    for (sender, after) in [
        (
            SACK,
            "state cwnd 9 ssthresh 5 ca Recovery ena_kept 0 ena_reduced 1",
        ),
        (
            RENO,
            "state cwnd 9 ssthresh 5 ca Recovery ena_kept 0 ena_reduced 1",
        ),
        (
            TAHOE,
            "state cwnd 9 ssthresh 5 ca Recovery ena_kept 0 ena_reduced 1",
        ),
    ] {
        ten(
            sender,
            &format!(
                "+100 inject ack 1 sack 1001:2001
                 expect data 10001:11001
                 inject ack 1 sack 1001:3001
                 expect data 11001:12001
                 inject ack 1 sack 1001:4001
                 expect data 1:1001
                 {after}"
            ),
        );
    }
}

#[test]
fn without_sack_a_named_segment_costs_no_window_either() {
    for sender in [RENO, TAHOE] {
        ten(
            sender,
            "+100 inject ack 1 ena 1
             expect data 10001:11001
             inject ack 1 ena 1
             expect data 11001:12001
             inject ack 1 ena 1
             expect data 1:1001 12001:13001
             state cwnd 10 ssthresh 10 ca Recovery",
        );
    }
}

#[test]
fn a_name_without_ena_means_nothing() {
    ten(
        "recovery=sack cc=reno",
        "+100 inject ack 1 ena 1 sack 1001:4001
         expect data 1:1001
         state ssthresh 5 ca Recovery reductions 1 ena_notified 0",
    );
}

#[test]
fn a_name_of_what_is_not_in_flight_repairs_nothing() {
    ten(
        &format!("{SACK} repairs_named=true"),
        "+100 inject ack 1 ena 500 sack 1001:2001   # within a segment
         expect data 10001:11001
         inject ack 1 ena 20001 sack 1001:3001      # not sent yet
         expect data 11001:12001
         inject ack 1 ena 1001 sack 1001:3001       # SACKed
         expect none
         state retransmits 0 reductions 0 ena_notified 3",
    );
}
