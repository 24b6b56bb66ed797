// SPDX-License-Identifier: Apache-2.0
//! The end of a stream in recovery: what RFC 6675 §4 sends when there is neither anything lost nor anything new (NextSeg()
//! rules 3 and 4).

use super::harness::script;

/// Ten segments and no more.
const TEN: &str = "
    open sackok
    write 10000
    expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001 6001:7001 7001:8001 8001:9001 9001:10001
";

fn ten(text: &str) {
    script(
        "initial_window_packets=10 recovery=sack",
        &format!("{TEN}{text}"),
    );
}

/// 1:1001 is lost; the window is 5 from the third SACK on.
const RECOVERY: &str = "
    +100 inject ack 1 sack 1001:4001
    expect data 1:1001
    inject ack 1 sack 1001:5001
    inject ack 1 sack 1001:6001
    expect none                           # pipe 10 - 5 - 1 + 1 = 5
";

#[test]
fn rule_4_sends_the_last_segment_again_once() {
    ten(&format!(
        "{RECOVERY}
         inject ack 1 sack 1001:7001      # pipe 4
         expect data 9001:10001
         inject ack 1 sack 1001:8001
         inject ack 1 sack 1001:9001      # 9001:10001 was lost: no SACK above would ever tell
         expect none
         state ca Recovery in_flight 3
         +100 inject ack 9001
         inject ack 10001
         expect none
         state ca Open timeouts 0 retransmits 2 fast_retransmits 1 in_flight 0"
    ));
}

#[test]
fn rule_3_repairs_a_hole_with_too_little_above_it() {
    ten(&format!(
        "{RECOVERY}
         inject ack 1 sack 1001:7001
         expect data 9001:10001           # rule 4: nothing unSACKed lies below a SACK
         inject ack 1 sack 8001:9001 1001:7001
         expect data 7001:8001            # one SACKed above it, not three
         inject ack 1 sack 8001:10001 1001:7001
         expect none
         +100 inject ack 7001 sack 8001:10001
         inject ack 10001
         state ca Open timeouts 0 retransmits 3 fast_retransmits 1 in_flight 0"
    ));
}

#[test]
fn after_a_timeout_they_are_sent_once_more() {
    ten(&format!(
        "{RECOVERY}
         inject ack 1 sack 1001:7001
         expect data 9001:10001
         inject ack 1 sack 8001:9001 1001:7001
         expect data 7001:8001
         +300 expect data 1:1001          # all three retransmissions were lost
         state ca Loss cwnd 1 in_flight 1
         +100 inject ack 7001 sack 8001:9001
         expect data 7001:8001 9001:10001
         state in_flight 2
         +100 inject ack 10001
         state in_flight 0 timeouts 1 retransmits 6"
    ));
}
