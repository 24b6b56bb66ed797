// SPDX-License-Identifier: Apache-2.0
//! Windows from the estimated bandwidth: Westwood after a loss, BCR+ after a spurious timeout, E-RTO beside it.

use super::harness::script;

/// A window of so many packets on a path of 100 packets a second and 100 ms: ten are on their way, the others wait. 60 ACKs.
fn steady(window: u32) -> String {
    let data = |n: u32| format!(" {}:{}", n * 1000 + 1, n * 1000 + 1001);
    let first: String = (0..window).map(data).collect();
    let mut text = format!("open\n write greedy\n expect data{first}\n +90 expect none\n");
    for n in 0..60 {
        text += &format!(
            "+10 inject ack {}\n expect data{}\n",
            (n + 1) * 1000 + 1,
            data(n + window)
        );
    }
    text + &format!("state cwnd {window} in_flight {window} ca Open\n")
}

fn steady_sender(window: u32, options: &str, text: &str) {
    let config = format!(
        "initial_window_packets={window} initial_ssthresh_packets={window} cwnd_clamp_packets={window} {options}"
    );
    script(&config, &format!("{}{text}", steady(window)));
}

#[test]
fn westwood_reduces_to_what_the_path_holds() {
    let three = "
        +10 inject ack 60001
        inject ack 60001
        inject ack 60001
        expect data 60001:61001\n";
    steady_sender(
        30,
        "cc=westwood limited_transmit=false",
        &format!("{three} state ca Recovery ssthresh 10 cwnd 10"),
    );
    steady_sender(
        30,
        "cc=reno limited_transmit=false",
        &format!("{three} state ca Recovery ssthresh 15 cwnd 15"),
    );
}

#[test]
fn westwood_and_a_timeout() {
    for (cc, ssthresh) in [("westwood", 10), ("reno", 15)] {
        steady_sender(
            30,
            &format!("cc={cc}"),
            &format!("+500 expect data 60001:61001\n state ca Loss cwnd 1 ssthresh {ssthresh}"),
        );
    }
}

const SPIKE: &str = "
    +300 expect data 80001:81001       # new data instead of 60001:61001
    expect none
    state ca Loss cwnd 1 erto_probes 1
    +2 inject ack 61001
    expect none
    state ca Loss
    +2 inject ack 62001
";

#[test]
fn erto_takes_back_the_old_window() {
    steady_sender(
        20,
        "cc=erto erto=true frto=true",
        &format!(
            "{SPIKE}
             expect data 81001:82001
             expect none
             state ca Open cwnd 20 in_flight 20 retransmits 0 spurious_timeouts 1 bw_est 0"
        ),
    );
}

/// The two ACKs that judge the timeout are 20 ms apart where the queue was blocked (the new network has 50 packets a second), and
/// 2 ms where the spike set both free at once. Their gap is four fifths of BW_est: 0.2 (0.2 100 + 0.8 1/0.302) + 0.8 50 or 500.
#[test]
fn bcr_goes_by_the_gap_between_the_two_acks_that_judge_the_timeout() {
    let judged = |wait: u32, then: &str| {
        let spike = SPIKE.replace("+2 inject ack 62001", &format!("+{wait} inject ack 62001"));
        steady_sender(20, "cc=bcr erto=true frto=true", &format!("{spike}{then}"));
    };
    judged(
        20,
        "expect none
         state ca Open cwnd 4 ssthresh 4 bw_est 45 spurious_timeouts 1 retransmits 0",
    );
    judged(
        2,
        "expect data 81001:82001
         state ca Open cwnd 20 ssthresh 40 bw_est 405 spurious_timeouts 1 retransmits 0",
    );
}

#[test]
fn bcr_plus_takes_what_the_path_holds() {
    steady_sender(
        20,
        "cc=bcr_plus erto=true frto=true",
        &format!(
            "{SPIKE}
             expect none                        # 10 may be in flight, and 19 are
             state ca Open cwnd 10 ssthresh 10 in_flight 19 retransmits 0 spurious_timeouts 1
             +2 inject ack 71001
             expect none
             +2 inject ack 72001
             expect data 81001:82001
             state cwnd 10 retransmits 0"
        ),
    );
}

#[test]
fn bcr_plus_keeps_a_window_below_what_the_path_holds() {
    let config = "initial_window_packets=4 initial_ssthresh_packets=4 cwnd_clamp_packets=4 cc=bcr_plus erto=true frto=true";
    let mut text =
        "open\n write greedy\n expect data 1:1001 1001:2001 2001:3001 3001:4001\n".to_string();
    for n in 0..32 {
        let wait = if n % 4 == 0 { 97 } else { 1 };
        let (left, right) = (n * 1000 + 4001, n * 1000 + 5001);
        text += &format!(
            "+{wait} inject ack {}\n expect data {left}:{right}\n",
            n * 1000 + 1001
        );
    }
    text += "+400 expect data 36001:37001
             +2 inject ack 33001
             expect none
             +2 inject ack 34001
             state ca Open cwnd 4 spurious_timeouts 1 retransmits 0
             expect data 37001:38001";
    script(config, &text);
}
