// SPDX-License-Identifier: Apache-2.0
//! A host whose clock counts whole ticks (Linux 2.4: 10 ms). The ticks of 10.0.0.1 come at 4.68, 14.68, 24.68 … ms.

use super::harness::script;

const LINUX_2_4: &str = "tick_ns=10000000 initial_window_packets=2";

/// An RTT below a tick is one: RTO = SRTT is one tick, and the timer fires with the next, up to a tick early.
#[test]
fn a_timer_of_one_tick_fires_with_the_next() {
    script(
        &format!("{LINUX_2_4} rto_rule=rfc793 rto_beta_percent=100 rto_min_ns=0"),
        "connect
         expect syn
         +1 inject synack
         expect ack 1
         write 2000
         expect data 1:1001 1001:2001
         state srtt 10 rto 10
         +3 expect none
         +1 expect data 1:1001         # at 4.68 ms
         state timeouts 1 rto 20
         +19 expect none
         +1 expect data 1:1001         # two ticks later, at 24.68 ms
         state timeouts 2",
    );
}

#[test]
fn a_delayed_ack_leaves_with_a_tick() {
    script(
        LINUX_2_4,
        "open
         inject data 1:1001            # at 100 ms; ticks at 104.68, …, 134.68 ms
         +34 expect none
         +1 expect ack 1001",
    );
}

/// Karn keeps the doubled RTO until data is acknowledged that was sent once; `reset` ends it with the first ACK of new data.
#[test]
fn a_back_off_that_is_reset_ends_with_the_first_new_ack() {
    let text = |rto: u64| {
        format!(
            "open
             write greedy
             expect data 1:1001
             +300 expect data 1:1001
             state rto 600
             +10 inject ack 1001
             expect data 1001:2001 2001:3001
             state srtt 100 rto {rto}"
        )
    };
    script("initial_window_packets=1 backoff=kept", &text(600));
    script("initial_window_packets=1 backoff=reset", &text(300));
}
