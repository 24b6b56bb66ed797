// SPDX-License-Identifier: Apache-2.0
//! A frame costs a link no allocation once it has run in, whatever is done to it: counted by the global allocator.

mod counting;

use counting::allocations;
use serde_json::json;
use traffic::link::{
    JitterDistribution, Link, LinkOptions, LinkSettings, LinkStreams, SpikeBlocks, Unit,
};

#[test]
fn bursts_traces_and_all_the_rest_allocate_nothing() {
    let at_ms: Vec<u32> = (0..1_000).map(|k| k * 3 / 2 + 1).collect();
    let rate = json!({"rate_bps": {"trace": at_ms}});
    let rate = LinkSettings::read(rate.as_object().unwrap(), Unit::Ns).unwrap();
    let options = LinkOptions {
        delay_ns: 5_000_000,
        jitter_ns: 1_000_000,
        jitter_distribution: JitterDistribution::Normal,
        loss: 0.01,
        ber: 1e-5,
        spare_retransmissions: true,
        queue_packets: 20,
        ge_enter: 0.01,
        ge_leave: 0.2,
        ge_loss: 0.3,
        ge_ber: 1e-3,
        ..LinkOptions::default()
    };
    let options = rate.applied_to(&options, Unit::Ns).unwrap();
    let mut link: Link<u64> = Link::new(options, LinkStreams::new(1, "l"), 64).unwrap();
    // A TCP segment of a flow that changes: more than are remembered.
    let mut frame = [0u8; 1514];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 5, 220, 0, 0, 0, 0, 64, 6]);
    frame[46] = 0x50;
    let mut send = |from: u64, to: u64| {
        for k in from..to {
            let now = k * 1_000_000;
            match k % 1_000 {
                300 => link.spike(now, 20_000_000, SpikeBlocks::Delivery),
                450 => link.spike(now, 20_000_000, SpikeBlocks::Line),
                600 => link.outage(now, 20_000_000),
                _ => {}
            }
            let mut sent = frame; // the link flips bits in it
            sent[34] = k as u8;
            sent[38..42].copy_from_slice(&(k as u32 * 1460).to_be_bytes());
            let _ = link.transmit(now, &mut sent, k);
            while link.poll(now).is_some() {}
        }
        *link.stats()
    };
    send(0, 20_000);
    let before = allocations();
    let stats = send(20_000, 60_000);
    assert_eq!(allocations() - before, 0);
    assert!(stats.delivered_packets > 30_000 && stats.dropped_queue_full > 1_000);
    assert!(stats.bad_state_packets > 1_000 && stats.dropped_loss > 500);
    assert!(stats.dropped_outage > 500 && stats.corrupted_packets > 1_000);
}
