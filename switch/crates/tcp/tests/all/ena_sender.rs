// SPDX-License-Identifier: Apache-2.0
//! ENA's sender: a named segment goes again at once and costs no window; everything else does as without ENA.

use super::harness::script;

const TEN: &str = "
    open sackok
    write greedy
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

/// Ten segments in congestion avoidance, from a window of 10.
fn ten(config: &str, text: &str) {
    let options = "ena=true initial_window_packets=10 initial_ssthresh_packets=10";
    script(&format!("{options} {config}"), &format!("{TEN}{text}"));
}

#[test]
fn sack_repairs_at_the_first_ack_and_keeps_the_window() {
    ten(
        "recovery=sack",
        "+100 inject ack 1 ena 1              # 1:1001 came in corrupted
         expect data 1:1001
         expect none
         state cwnd 10 ssthresh 10 ca Disorder in_flight 10
         inject ack 1 ena 1 sack 1001:2001
         expect data 10001:11001
         inject ack 1 ena 1 sack 1001:3001
         expect data 11001:12001
         inject ack 1 ena 1 sack 1001:4001    # three above it: still no reason to reduce
         expect data 12001:13001
         inject ack 1 ena 1 sack 1001:10001
         expect data 13001:14001 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001
         state cwnd 10 ssthresh 10 in_flight 10 retransmits 1
         +100 inject ack 10001
         expect data 19001:20001
         state ca Open cwnd 10 ssthresh 10 retransmits 1 timeouts 0 fast_retransmits 0
         state reductions 0 ena_notified 5 ena_kept 1 ena_reduced 0",
    );
}

#[test]
fn without_the_option_a_name_means_nothing() {
    script(
        "recovery=sack initial_window_packets=10 initial_ssthresh_packets=10 limited_transmit=false",
        &format!(
            "{TEN}
             +100 inject ack 1 ena 1
             expect none
             inject ack 1 ena 1 sack 1001:4001
             expect data 1:1001
             state cwnd 5 ssthresh 5 ca Recovery reductions 1 ena_notified 0"
        ),
    );
}

#[test]
fn tahoe_sends_one_segment_again_and_starts_no_slow_start() {
    for recovery in ["tahoe", "reno", "newreno"] {
        ten(
            &format!("recovery={recovery}"),
            "+100 inject ack 1 ena 1
             expect data 1:1001
             inject ack 1 ena 1
             expect data 10001:11001          # each duplicate lets one out, as in fast recovery
             inject ack 1 ena 1
             expect data 11001:12001
             inject ack 1 ena 1
             expect data 12001:13001
             inject ack 1 ena 1
             expect data 13001:14001
             state cwnd 10 ssthresh 10 ca Disorder retransmits 1
             +100 inject ack 10001
             expect data 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001 19001:20001
             state ca Open cwnd 10 ssthresh 10 retransmits 1 timeouts 0 reductions 0 ena_kept 1 ena_reduced 0",
        );
    }
}

#[test]
fn the_last_segment_is_repaired_without_a_timeout() {
    for recovery in ["tahoe", "reno", "newreno", "sack"] {
        ten(
            &format!("recovery={recovery}"),
            "+100 inject ack 9001 win 1000 ena 9001
             expect data 9001:10001
             +100 inject ack 10001 win 1000
             expect data 10001:11001
             state timeouts 0 retransmits 1 reductions 0 ca Open",
        );
    }
}

#[test]
fn a_retransmission_that_is_corrupted_is_sent_again_and_one_that_is_named_again_is_not() {
    for recovery in ["tahoe", "reno", "newreno", "sack"] {
        ten(
            &format!("recovery={recovery}"),
            "+100 inject ack 9001 win 1000 ena 9001
             expect data 9001:10001
             +50 inject ack 9001 win 1000 ena 9001     # sooner than it can be about the retransmission
             expect none
             +50 inject ack 9001 win 1000 ena 9001     # the answer to it
             expect data 9001:10001
             +100 inject ack 10001 win 1000
             expect data 10001:11001
             state timeouts 0 retransmits 2 reductions 0 ca Open ena_kept 1",
        );
    }
}

#[test]
fn with_sack_a_name_is_new_when_something_sent_later_has_arrived() {
    ten(
        "recovery=sack",
        "+100 inject ack 1 ena 1
         expect data 1:1001
         +1 inject ack 1 ena 1 sack 1001:2001
         expect data 10001:11001
         inject ack 1 ena 1 sack 1001:10001
         expect data 11001:12001 12001:13001 13001:14001 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001
         +100 inject ack 1 ena 1 sack 1001:11001        # sent after the retransmission
         expect data 1:1001
         expect data 19001:20001
         inject ack 1 ena 1 sack 1001:12001             # sent before the second
         expect data 20001:21001
         state retransmits 2 cwnd 10 reductions 0",
    );
}

#[test]
fn several_names_in_a_window_are_repaired_at_once_without_sack_too() {
    ten(
        "recovery=reno",
        "+100 inject ack 1 ena 1
         expect data 1:1001
         inject ack 1 ena 1
         expect data 10001:11001
         inject ack 1 ena 3001                 # the answer to the fourth segment
         expect data 3001:4001
         expect none
         inject ack 1 ena 1
         expect data 11001:12001
         +100 inject ack 3001 ena 3001         # a repeated name: its retransmission is on the way
         expect data 12001:13001
         inject ack 10001
         expect data 13001:14001 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001 19001:20001
         state ca Open cwnd 10 retransmits 2 reductions 0 ena_kept 1",
    );
}

#[test]
fn with_sack_a_drop_beside_a_corruption_reduces_once() {
    ten(
        "recovery=sack limited_transmit=false",
        "# 1:1001 corrupted, 3001:4001 dropped
         +100 inject ack 1 ena 1
         expect data 1:1001
         inject ack 1 ena 1 sack 1001:2001
         expect data 10001:11001
         inject ack 1 ena 1 sack 1001:3001
         expect data 11001:12001
         inject ack 1 ena 1 sack 4001:5001 1001:3001
         expect data 12001:13001
         inject ack 1 ena 1 sack 4001:6001 1001:3001
         expect data 13001:14001
         state cwnd 10 ca Disorder
         inject ack 1 ena 1 sack 4001:7001 1001:3001   # three above the one that nobody named
         expect data 3001:4001                         # not the head, which went already
         expect none
         state cwnd 5 ssthresh 5 ca Recovery reductions 1 retransmits 2
         +100 inject ack 3001 sack 4001:7001
         inject ack 14001
         expect data 14001:15001 15001:16001 16001:17001 17001:18001 18001:19001
         state ca Open cwnd 5 reductions 1 ena_kept 1 ena_reduced 1 timeouts 0",
    );
}

#[test]
fn newreno_sees_a_drop_in_the_partial_ack_of_a_repair() {
    ten(
        "recovery=newreno",
        "# 1:1001 corrupted, 3001:4001 dropped
         +100 inject ack 1 ena 1
         expect data 1:1001
         inject ack 1 ena 1
         expect data 10001:11001
         inject ack 1 ena 1
         expect data 11001:12001
         +100 inject ack 3001                  # the repair arrived: what is missing now was sent before it
         expect data 3001:4001
         state cwnd 5 ssthresh 5 ca Recovery reductions 1
         +100 inject ack 12001
         expect data 12001:13001 13001:14001 14001:15001 15001:16001 16001:17001
         state cwnd 5 retransmits 2 reductions 1 ena_kept 1 ena_reduced 1",
    );
}

#[test]
fn a_corruption_above_a_drop_does_not_hide_it() {
    for (recovery, after) in [
        ("tahoe", "state cwnd 1 ssthresh 5 ca Loss reductions 1"),
        ("reno", "state cwnd 5 ssthresh 5 ca Recovery reductions 1"),
        (
            "newreno",
            "state cwnd 5 ssthresh 5 ca Recovery reductions 1",
        ),
    ] {
        ten(
            &format!("recovery={recovery} limited_transmit=false"),
            &format!(
                "# 1:1001 dropped, 3001:4001 corrupted
                 +100 inject ack 1
                 inject ack 1
                 expect none
                 inject ack 1 ena 3001         # the answer: the corrupted segment left the network, none got through
                 expect data 3001:4001
                 expect none
                 inject ack 1 ena 3001         # the third duplicate
                 expect data 1:1001
                 {after}"
            ),
        );
    }
}

#[test]
fn drops_alone_reduce_as_without_ena() {
    for recovery in ["tahoe", "reno", "newreno", "sack"] {
        let text = "+100 inject ack 1 sack 1001:2001
             inject ack 1 sack 1001:3001
             expect none
             inject ack 1 sack 1001:4001
             expect data 1:1001
             state ssthresh 5 fast_retransmits 1 reductions 1 ena_kept 0";
        let options = format!(
            "recovery={recovery} initial_window_packets=10 initial_ssthresh_packets=10 limited_transmit=false"
        );
        let runs = ["ena=true", "ena=false"].map(|ena| {
            let script = script(&format!("{options} {ena}"), &format!("{TEN}{text}"));
            (*script.connection().stats(), script.connection().sender())
        });
        assert_eq!(runs[0].1, runs[1].1);
        assert_eq!(runs[0].0.retransmits, runs[1].0.retransmits);
    }
}

#[test]
fn names_of_what_is_not_in_flight_are_ignored() {
    ten(
        "recovery=sack",
        "+100 inject ack 1 ena 500 sack 1001:2001   # within a segment
         expect data 10001:11001
         inject ack 1 ena 20001 sack 1001:3001      # not sent yet
         expect data 11001:12001
         inject ack 1 ena 1001 sack 1001:3001       # SACKed
         expect none
         +1 inject ack 3001 ena 1                   # acknowledged
         expect data 12001:13001
         state retransmits 0 reductions 0 ena_notified 4 ena_kept 0 ca Open",
    );
}

/// A segment of 40 bytes and 512 of payload hides its corruption in one case of nineteen. After nine names one loss that
/// nobody named is taken for that; without names, or with many of them, it is a drop.
#[test]
fn a_loss_that_nobody_named_is_presumed_hidden_only_beside_many_names() {
    let run = |names: u32, presumes: bool| {
        let mut text = String::from("open win 15360 sackok\nwrite greedy\n");
        let range = |i: u32| format!("{}:{}", 1 + i * 512, 1 + (i + 1) * 512);
        text += "expect data";
        for i in 0..30 {
            text += &format!(" {}", range(i));
        }
        text += "\n+100 inject ack 1\n";
        for i in 0..names {
            text += &format!(
                "inject ack 1 ena {}\nexpect data {}\n",
                1 + i * 512,
                range(i)
            );
        }
        // All others but 20 arrive up to 23; the peer's window lets nothing new out.
        text += &format!("inject ack 1 sack {}:{}\n", 1 + names * 512, 1 + 20 * 512);
        for i in 21..24 {
            text += &format!("inject ack 1 sack {}:{}\n", 1 + 21 * 512, 1 + (i + 1) * 512);
        }
        text += &format!("expect data {}", range(20));
        let config = format!(
            "ena=true ena_presumes={presumes} recovery=sack mss_bytes=512 initial_window_packets=30 initial_ssthresh_packets=30"
        );
        let script = script(&config, &text);
        let (view, stats) = (script.connection().sender(), *script.connection().stats());
        (view.snd_cwnd, stats.window_reductions, stats.ena_presumed)
    };
    assert_eq!(run(9, true), (15, 1, 0));
    assert_eq!(run(10, true), (30, 0, 1));
    assert_eq!(run(10, false), (15, 1, 0));
}
