// SPDX-License-Identifier: Apache-2.0
//! The peer's receive window and ours: limits, zero windows, probes and updates (RFC 9293 §3.8.6).

use super::harness::script;

#[test]
fn a_shut_window_is_probed_with_back_off() {
    script(
        "initial_window_packets=4",
        "open win 2000
         write greedy
         expect data 1:1001 1001:2001
         +100 inject ack 2001 win 0
         expect none
         state rto 250 in_flight 0
         +249 expect none
         +1 expect probe
         +10 inject ack 2001 win 0
         +489 expect none
         +1 expect probe
         +10 inject ack 2001 win 0
         +990 expect probe
         +10 inject ack 2001 win 3000
         expect data 2001:3001 3001:4001 4001:5001
         +100 inject ack 5001 win 0
         state rto 212
         +212 expect none              # the back-off is over
         +1 expect probe",
    );
}

#[test]
fn a_window_update_needs_no_probe() {
    script(
        "initial_window_packets=4",
        "open win 1000
         write greedy
         expect data 1:1001
         +100 inject ack 1001 win 0
         +50 inject ack 1001 win 2000
         expect data 1001:2001 2001:3001
         state dupacks 0",
    );
}

#[test]
fn not_in_dribs_and_drabs() {
    script(
        "initial_window_packets=10",
        "open win 2500
         write greedy
         expect data 1:1001 1001:2001
         expect none                    # 500 bytes of room: not worth it while others are in flight
         +100 inject ack 2001 win 300
         expect data 2001:2301          # nothing in flight: better than nothing
         +100 inject ack 2301 win 5000
         expect data 2301:3301 3301:4301 4301:5301 5301:6301 6301:7301",
    );
}

#[test]
fn our_window_shuts_when_the_application_stops_reading() {
    script(
        "receive_window_bytes=4000 window_scale=false delayed_ack=false",
        "open
         reading off
         inject data 1:1001
         expect ack 1001 win 3000
         inject data 1001:2001
         expect ack 2001 win 2000
         inject data 2001:4001
         expect ack 4001 win 0
         inject data 4001:4002          # a probe with data
         expect ack 4001 win 0
         inject seq 0                   # Linux's probe, below what was acknowledged
         expect ack 4001 win 0
         state received 0
         +10 reading on
         expect ack 4001 win 4000       # the window update
         state received 4000",
    );
}

#[test]
fn our_window_opens_by_a_full_segment_or_not() {
    script(
        "receive_window_bytes=65536 window_scale=true delayed_ack=false",
        "open wscale 0
         inject data 1:1001
         expect ack 1001 win 32768      # 65536 bytes, shifted by 1",
    );
}

/// Linux's __tcp_ack_snd_check() and tcp_cleanup_rbuf(): of what narrows the window every second segment is not acknowledged; reading does it,
/// for more than a full segment, or the delayed ACK's time.
#[test]
fn what_the_application_did_not_read_is_acknowledged_when_it_reads_or_late() {
    script(
        "receive_window_bytes=7000 window_scale=false",
        "open
         reading off
         inject data 1:1001
         inject data 1001:2001
         expect none
         +10 reading on
         expect ack 2001 win 7000
         reading off
         inject data 2001:3001
         +10 reading on
         expect none                    # one full segment: 6000 bytes of window are left
         reading off
         +29 expect none
         +1 expect ack 3001 win 7000
         inject data 3001:4001
         inject data 4001:5001
         inject data 5001:6001
         +40 expect ack 6001 win 4000
         inject data 6001:6101
         +10 reading on
         expect ack 6101 win 7000       # the segment was not full",
    );
}
