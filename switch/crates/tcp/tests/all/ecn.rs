// SPDX-License-Identifier: Apache-2.0
//! ECN (RFC 3168): what the SYNs settle, which segments may be marked, the sender's answer and the receiver's echo; DCTCP's
//! (RFC 8257).

use super::harness::script;

const FOUR: &str =
    "write greedy\n expect data 1:1001 … ect\n expect data 1001:2001\n expect data 2001:3001\n expect data 3001:4001\n";

#[test]
fn both_sides_must_want_it() {
    script(
        "ecn=true",
        "connect
         expect syn … ece cwr",
    );
    script(
        "ecn=true",
        "accept ece cwr
         expect synack … ece",
    );
    let refused = script(
        "ecn=true",
        "open\n write 1000\n expect data 1:1001 ack 1 win 65535",
    );
    drop(refused);
    script(
        "ecn=true",
        "accept ece
         expect synack mss 1000 … 1000",
    );
    script(
        "",
        "accept ece cwr
         expect synack mss 1000 … 1000",
    );
}

#[test]
fn a_mark_costs_a_window_once_a_round_trip_and_is_told() {
    script(
        "ecn=true prr=true initial_window_packets=4 initial_ssthresh_packets=4",
        &format!(
            "open ece
             {FOUR}
             +100 inject ack 1001 ece
             state ca Cwr ssthresh 2
             expect data 4001:5001 … cwr ect
             inject ack 2001 ece
             inject ack 3001 ece
             inject ack 4001 ece
             expect data 5001:6001 … 65535 ect
             state ca Cwr ssthresh 2 reductions 1 delivered_ce 4
             +100 inject ack 5001
             expect data 6001:7001
             state ca Open cwnd 2 reductions 1 delivered_ce 4"
        ),
    );
}

#[test]
fn a_receiver_echoes_a_mark_until_it_is_told() {
    script(
        "ecn=true delayed_ack=true",
        "accept ece cwr
         expect synack … ece
         inject ack 1
         inject data 1:1001 ect
         inject data 1001:2001 ce
         expect ack 2001 … ece
         inject data 2001:3001 ect
         inject data 3001:4001 ect
         expect ack 4001 … ece
         inject data 4001:5001 cwr ect
         expect ack 5001 win 65535
         state received 5000",
    );
}

/// RFC 8257 §3.2, Figure 1: each ACK tells of its own packets.
#[test]
fn dctcp_echoes_what_was_marked_and_nothing_else() {
    script(
        "cc=dctcp delayed_ack=true",
        "accept ece cwr
         expect synack … ece
         inject ack 1
         inject data 1:1001 ect
         expect none
         inject data 1001:2001 ce
         expect ack 1001 win 65535
         expect ack 2001 … ece
         inject data 2001:3001 ce
         inject data 3001:4001 ce
         expect ack 4001 … ece
         inject data 4001:5001 ect
         expect ack 5001 win 65535
         inject data 5001:6001 ect
         inject data 6001:7001 ect
         expect ack 7001 win 65535",
    );
}

/// alpha begins at 1 (RFC 8257 §4.2): the first mark halves.
#[test]
fn dctcp_s_window_goes_by_the_share_of_marks() {
    script(
        "cc=dctcp prr=true initial_window_packets=4 initial_ssthresh_packets=4",
        &format!(
            "open ece
             {FOUR}
             +100 inject ack 1001 ece
             expect data 4001:5001 … cwr ect
             state ca Cwr ssthresh 2 delivered_ce 1"
        ),
    );
}

#[test]
fn a_retransmission_is_not_to_be_marked() {
    let lost = |ecn: &str| {
        format!(
            "open ece
             {FOUR}
             +500 expect data 1:1001 {ecn}"
        )
    };
    script(
        "ecn=true initial_window_packets=4",
        &lost("ack 1 win 65535"),
    );
    script("cc=dctcp initial_window_packets=4", &lost("… ect"));
}

#[test]
fn l4s_data_is_ect1_and_marks_of_it_count() {
    script(
        "cc=prague ect1=true prr=true initial_window_packets=4 initial_ssthresh_packets=4",
        &format!(
            "open ece
             {}
             +100 inject ack 1001 ece
             state ca Cwr cwnd 2 ssthresh 2 delivered_ce 1
             +500 expect data 1001:2001 … ect1",
            FOUR.replace("… ect", "… ect1")
        ),
    );
    script(
        "cc=prague ect1=true",
        "accept ece cwr
         expect synack … ece
         inject ack 1
         inject data 1:1001 ect1
         inject data 1001:2001 ce
         expect ack 1001 win 65535
         expect ack 2001 … ece",
    );
}
