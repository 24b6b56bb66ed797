// SPDX-License-Identifier: Apache-2.0
//! Sequence numbers pass 2^32 within a window, in every place where they are compared.

use super::harness::script_from;

#[test]
fn recovery_across_the_wrap() {
    script_from(
        u32::MAX - 3500,
        u32::MAX - 1500,
        "initial_window_packets=6 recovery=sack limited_transmit=false",
        "open sackok
         write greedy
         expect data 1:1001 1001:2001 2001:3001 3001:4001 4001:5001 5001:6001
         +100 inject ack 1001 sack 2001:4001
         expect data 6001:7001 7001:8001
         inject ack 1001 sack 2001:5001
         expect data 1001:2001
         +100 inject ack 8001
         expect data 8001:9001 9001:10001 10001:11001
         state ca Open acked 8000 cwnd 3",
    );
}

#[test]
fn reassembly_across_the_wrap() {
    script_from(
        7,
        u32::MAX - 1500,
        "delayed_ack=false recovery=sack",
        "open sackok
         inject data 1001:2001
         expect ack 1 win 65535 sack 1001:2001
         inject data 3001:4001
         expect ack 1 win 65535 sack 3001:4001 1001:2001
         inject data 1:1001
         expect ack 2001 win 65535 sack 3001:4001
         inject data 2001:3001
         expect ack 4001
         state received 4000",
    );
}
