// SPDX-License-Identifier: Apache-2.0
//! FastTCP's senders (FastTCP paper) against a receiver that announces 7 segments of 1448 bytes: what each sends, and when.

use super::harness::script;

/// As the simulator's rows: Linux's RTO, no Nagle, 1448-byte segments.
fn sender(options: &str) -> String {
    format!("mss_bytes=1448 rto_rule=linux prr=true initial_window_packets=2 {options}")
}

const OPEN: &str = "open win 10136 mss 1460\n";
const SEVEN: &str =
    "expect data 1:1449 1449:2897 2897:4345 4345:5793 5793:7241 7241:8689 8689:10137\n";

#[test]
fn org_starts_with_two_segments() {
    script(
        &sender(""),
        &format!(
            "{OPEN} write greedy
             expect data 1:1449 1449:2897
             expect none
             +100 inject ack 1449
             expect data 2897:4345 4345:5793
             inject ack 2897
             expect data 5793:7241 7241:8689
             +100 inject ack 4345
             expect data 8689:10137 10137:11585
             inject ack 5793
             expect data 11585:13033 13033:14481
             inject ack 7241
             expect data 14481:15929 15929:17377
             expect none                          # the announced window is full
             state cwnd 7 in_flight 7"
        ),
    );
}

#[test]
fn nss_sends_the_whole_announced_window_at_once() {
    script(
        &sender("cc=nss prr=false"),
        &format!(
            "{OPEN} write greedy
             {SEVEN}
             expect none
             +100 inject ack 1449
             expect data 10137:11585
             inject ack 10137
             expect data 11585:13033 13033:14481 14481:15929 15929:17377 17377:18825 18825:20273"
        ),
    );
}

/// The figures' jump: 9 KB go in one flight, of 10 KB the eighth segment waits for an ACK.
#[test]
fn nss_needs_a_second_flight_from_ten_kilobytes_on() {
    script(
        &sender("cc=nss prr=false"),
        &format!(
            "{OPEN} write 9216
             expect data 1:1449 1449:2897 2897:4345 4345:5793 5793:7241 7241:8689 8689:9217"
        ),
    );
    script(
        &sender("cc=nss prr=false"),
        &format!(
            "{OPEN} write 10240
             {SEVEN}
             expect none
             +100 inject ack 2897
             expect data 10137:10241"
        ),
    );
}

#[test]
fn nss_keeps_its_window_after_a_loss_and_after_a_timeout() {
    script(
        &sender("cc=nss prr=false"),
        &format!(
            "{OPEN} write greedy
             {SEVEN}
             +100 inject ack 1
             inject ack 1
             inject ack 1
             expect data 1:1449                   # fast retransmit; the announced window takes nothing new
             expect none
             +100 inject ack 10137
             expect data 10137:11585 11585:13033 13033:14481 14481:15929 15929:17377 17377:18825 18825:20273
             state ca Recovery cwnd 32768 fast_retransmits 1
             +100 inject ack 11585
             expect data 20273:21721
             state ca Open cwnd 32768"
        ),
    );
    script(
        &sender("cc=nss prr=false"),
        &format!(
            "{OPEN} write greedy
             {SEVEN}
             +300 expect data 1:1449              # the head alone
             expect none
             state ca Loss timeouts 1 cwnd 32768
             +100 inject ack 1449                 # the rest is held to be lost: all of it, at once
             expect data 1449:2897 2897:4345 4345:5793 5793:7241 7241:8689 8689:10137 10137:11585"
        ),
    );
}

#[test]
fn nca_grows_by_one_an_ack_above_ssthresh_too() {
    let acks = "
        +100 inject ack 1449
        expect data 2897:4345 4345:5793
        inject ack 2897
        expect data 5793:7241 7241:8689
        state cwnd 4
        +100 inject ack 4345
        expect data 8689:10137 10137:11585
        inject ack 5793
        expect data 11585:13033 13033:14481
        state cwnd 6";
    let open = "open win 60000 mss 1460\n write greedy\n expect data 1:1449 1449:2897\n";
    script(
        &sender("cc=nca initial_ssthresh_packets=2"),
        &format!("{open}{acks}"),
    );
    script(
        &sender("cc=reno initial_ssthresh_packets=2"),
        &format!(
            "{open}
             +100 inject ack 1449
             expect data 2897:4345
             inject ack 2897
             expect data 4345:5793 5793:7241
             state cwnd 3"
        ),
    );
}

#[test]
fn nca_halves_after_a_loss_as_newreno_does() {
    script(
        &sender("cc=nca initial_window_packets=6"),
        "open win 60000 mss 1460
         write greedy
         expect data 1:1449 1449:2897 2897:4345 4345:5793 5793:7241 7241:8689
         +100 inject ack 1
         expect data 8689:10137               # limited transmit
         inject ack 1
         expect data 10137:11585
         inject ack 1
         expect data 1:1449
         state ca Recovery ssthresh 3
         +100 inject ack 11585
         expect data 11585:13033 13033:14481 14481:15929
         state cwnd 3",
    );
}

#[test]
fn fst1_retransmits_at_the_first_duplicate_ack() {
    script(
        &sender("cc=reno initial_window_packets=6 dupack_threshold=1"),
        "open win 60000 mss 1460
         write greedy
         expect data 1:1449 1449:2897 2897:4345 4345:5793 5793:7241 7241:8689
         +100 inject ack 1
         expect data 1:1449
         state ca Recovery ssthresh 3 fast_retransmits 1 dupacks 1",
    );
}

/// Linux's floor: SRTT + the larger of 4 RTTVAR and one jiffy of 4 ms.
#[test]
fn mrto_times_out_a_jiffy_after_the_rtt() {
    let mut text = "open win 60000 mss 1460\n".to_string();
    for segment in 0..100 {
        let (left, right) = (1 + segment * 1448, 1449 + segment * 1448);
        text += &format!("write 1448\n expect data {left}:{right}\n +100 inject ack {right}\n");
    }
    text += "write 1448\n expect data 144801:146249\n state rto 104\n +103 expect none\n";
    text += "+2 expect data 144801:146249\n state timeouts 1";
    script(&sender("rto_min_ns=4000000"), &text);
    let ordinary = text
        .replace("state rto 104", "state rto 300")
        .replace("+103", "+299");
    script(&sender("rto_min_ns=200000000"), &ordinary);
}

/// The paper's receiver: a discard server, so the window is never smaller than 7 segments, and nothing is scaled.
#[test]
fn a_window_of_seven_segments_is_announced_as_it_is() {
    script(
        "mss_bytes=1448 receive_window_bytes=10136 window_scale=true quick_acks=255",
        "accept win 60000 mss 1460 wscale 7
         expect synack mss 1448 wscale 0
         inject ack 1
         inject data 1:1449
         expect ack 1449 win 10136
         inject data 1449:2897
         expect ack 2897 win 10136
         inject data 2897:4345
         expect ack 4345 win 10136
         inject data 4345:5793
         expect ack 5793 win 10136",
    );
}
