// SPDX-License-Identifier: Apache-2.0
//! The handshake and what it settles: options, window scale, retransmitted SYNs.

use super::harness::script;

#[test]
fn a_syn_offers_what_the_configuration_says() {
    script(
        "recovery=sack timestamps=true receive_window_bytes=1000000",
        "connect
         expect syn mss 1012 wscale 4 sackok ts 1 0
         +50 inject synack ack 1 mss 1460 wscale 7 sackok ts 77 1
         expect ack 1 win 62500 ts 51 77
         state conn Established srtt 50",
    );
    script(
        "recovery=newreno window_scale=false",
        "connect
         expect syn mss 1000
         +50 inject synack ack 1
         expect ack 1 win 65535
         state rto 200",
    );
}

#[test]
fn a_syn_ack_agrees_only_to_what_was_offered() {
    script(
        "recovery=sack timestamps=true",
        "accept mss 1460\n expect synack mss 1012\n",
    );
    script(
        "recovery=newreno",
        "accept mss 1460 sackok ts 7 0 wscale 2\n expect synack mss 1000 wscale 14\n",
    );
    script(
        "recovery=sack timestamps=true",
        "accept mss 1460 sackok ts 7 0\n expect synack mss 1012 sackok ts 1 7\n",
    );
}

#[test]
fn segments_are_no_larger_than_the_peers_mss() {
    script(
        "initial_window_packets=2",
        "open mss 600\n write greedy\n expect data 1:601 601:1201\n",
    );
    // RFC 6691: the option does not count the timestamps, which the sender then takes off.
    script(
        "initial_window_packets=1 timestamps=true",
        "open mss 600 ts 9 1\n write greedy\n expect data 1:589\n",
    );
    // RFC 9293 §3.7.1: 536 when none is named; the harness always names one, so a small one of ours is the limit here.
    script(
        "initial_window_packets=1 mss_bytes=200",
        "open mss 600\n write greedy\n expect data 1:201\n",
    );
}

#[test]
fn the_peers_window_is_scaled_after_the_syn_only() {
    script(
        "initial_window_packets=10",
        "open win 2000 wscale 3      # the SYN-ACK's window is 2000 bytes
         write greedy
         expect data 1:1001 1001:2001
         +10 inject ack 2001 win 500  # 4000 bytes
         expect data 2001:3001 3001:4001 4001:5001 5001:6001
         expect none",
    );
    script(
        "initial_window_packets=10",
        "open win 2000               # no scaling offered by the peer
         write greedy
         expect data 1:1001 1001:2001
         +10 inject ack 2001 win 1000
         expect data 2001:3001
         expect none",
    );
}

#[test]
fn a_lost_syn_is_repeated_with_back_off_and_gives_no_sample() {
    script(
        "",
        "connect
         expect syn
         +999 expect none
         +1 expect syn
         +2000 expect syn
         +3999 expect none
         +1 expect syn
         inject synack ack 1
         expect ack 1
         state conn Established srtt 0 rto 3000 cwnd 1   # RFC 6298 §5.7, RFC 5681 §3.1",
    );
}

#[test]
fn a_lost_syn_ack_is_repeated() {
    script(
        "",
        "accept mss 1460
         expect synack
         +500 inject syn            # the peer's SYN again
         expect synack
         +1000 expect synack
         +10 inject ack 1
         state conn Established",
    );
}

#[test]
fn nonsense_is_answered_by_a_reset() {
    script(
        "",
        "connect\n expect syn\n +1 inject ack 77\n expect rst 77\n state conn SynSent\n",
    );
    script("", "connect\n expect syn\n +1 inject rst 0 ack 1\n state conn Closed\n inject ack 9\n expect rst 9\n");
    script("", "open\n inject rst 1\n state conn Closed\n");
    script("", "open\n inject rst 500\n expect ack 1\n state conn Established # RFC 5961 §3.2: a challenge ACK\n");
    script(
        "",
        "open\n inject syn\n expect ack 1\n state conn Established\n",
    );
    script(
        "",
        "open\n inject ack 5001\n expect ack 1\n state conn Established acked 0 # above snd_nxt\n",
    );
}
