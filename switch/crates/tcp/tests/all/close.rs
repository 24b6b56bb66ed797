// SPDX-License-Identifier: Apache-2.0
//! The end of a connection, from either side (RFC 9293 §3.6).

use super::harness::script;

#[test]
fn fin_goes_with_the_last_data() {
    script(
        "initial_window_packets=2",
        "open
         write 2500
         close
         expect data 1:1001 1001:2001
         +100 inject ack 2001
         expect data 2001:2501 fin
         state conn FinWait1
         +100 inject ack 2502
         state conn FinWait2 acked 2500
         +10 inject fin 1
         expect ack 2
         state conn TimeWait
         +1 inject fin 1                # our ACK was lost
         expect ack 2
         +60000 state conn Closed",
    );
}

#[test]
fn the_peer_closes_first() {
    script(
        "",
        "open
         inject data 1:1001
         inject fin 1001
         expect ack 1002
         state conn CloseWait received 1000
         write 300
         expect data 1:301
         close
         expect fin 301 ack 1002
         state conn LastAck
         +100 inject ack 302
         state conn Closed acked 300",
    );
}

#[test]
fn both_close_at_once() {
    script(
        "",
        "open
         close
         expect fin 1 ack 1
         inject fin 1 ack 1
         expect ack 2
         state conn Closing
         inject ack 2
         state conn TimeWait",
    );
}

#[test]
fn a_lost_fin_is_sent_again() {
    script(
        "",
        "open
         close
         expect fin 1
         +300 expect fin 1
         +600 expect fin 1
         +10 inject ack 2
         state conn FinWait2 acked 0",
    );
}

#[test]
fn a_fin_above_a_gap_waits() {
    script(
        "",
        "open
         inject fin 1001
         expect ack 1
         state conn Established
         inject data 1:1001
         expect ack 1002
         state conn CloseWait received 1000",
    );
}

#[test]
fn a_greedy_source_ends_with_what_was_sent() {
    script(
        "initial_window_packets=2",
        "open
         write greedy
         expect data 1:1001 1001:2001
         close
         expect none
         +100 inject ack 1001
         expect fin 2001
         write 1000                     # too late
         +1 inject ack 2002
         state acked 2000 conn FinWait2",
    );
}
