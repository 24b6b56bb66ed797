// SPDX-License-Identifier: Apache-2.0
//! When the receiver acknowledges (RFC 5681 §4.2, RFC 9293 §3.8.6.3).

use super::harness::script;

#[test]
fn every_second_full_segment_or_after_a_while() {
    script(
        "",
        "open
         inject data 1:1001
         expect none
         inject data 1001:2001
         expect ack 2001
         +10 inject data 2001:3001
         +39 expect none
         +1 expect ack 3001
         state received 3000",
    );
}

#[test]
fn out_of_order_and_gap_filling_segments_at_once() {
    script(
        "",
        "open
         inject data 1:1001
         inject data 1001:2001
         expect ack 2001
         +1 inject data 3001:4001      # a gap
         expect ack 2001
         inject data 5001:6001
         expect ack 2001
         inject data 2001:3001         # fills a part
         expect ack 4001
         inject data 4001:5001
         expect ack 6001
         inject data 1:1001            # a duplicate
         expect ack 6001
         state received 6000",
    );
}

#[test]
fn off_every_segment_at_once() {
    script(
        "delayed_ack=false",
        "open\n inject data 1:101\n expect ack 101\n inject data 101:201\n expect ack 201",
    );
}

#[test]
fn the_first_segments_quickly() {
    script(
        "quick_acks=2",
        "open
         inject data 1:101
         expect ack 101
         inject data 101:201
         expect ack 201
         inject data 201:301
         expect none
         +40 expect ack 301",
    );
}

#[test]
fn small_segments_wait_for_a_full_ones_worth() {
    script(
        "delayed_ack_timeout_ns=200000000",
        "open
         inject data 1:301
         inject data 301:501
         expect none
         inject data 501:601
         expect ack 601
         +1 inject data 601:701
         +199 expect none
         +1 expect ack 701",
    );
}

#[test]
fn data_carries_the_acknowledgment() {
    script(
        "",
        "open
         inject data 1:301
         expect none
         write 500
         expect data 1:501 ack 301
         +100 expect none              # no timer is left
         inject ack 501",
    );
}

#[test]
fn a_segment_below_a_gap_at_once_even_if_it_is_small() {
    script(
        "",
        "open
         inject data 101:201
         expect ack 1
         inject data 1:51
         expect ack 51",
    );
}
