// SPDX-License-Identifier: Apache-2.0
//! A port's counts: frames by their address, and those that go no further.

use crate::common::*;
use device::{Addressed, DropReason, PortConfig};

fn addressed(unicast: u64, multicast: u64, broadcast: u64) -> Addressed {
    Addressed {
        unicast,
        multicast,
        broadcast,
    }
}

#[test]
fn frames_are_counted_by_their_address() {
    let mut device = device(PortConfig::default());
    let mut all = frame(FORWARD, 3, 100);
    all[..6].fill(0xff);
    let mut nearly_all = all.clone();
    nearly_all[5] = 0xfe;
    for frame in [
        frame(FORWARD, 3, 100),
        frame(FORWARD, 3, 100),
        frame(DROP, 0, 100), // its first bit is that of a group
        nearly_all,
        all,
        vec![0xff; 5], // no whole address
    ] {
        one(&mut device, 0, &frame);
    }
    let stats = device.port_stats(0).unwrap();
    assert_eq!(stats.rx_frames, addressed(2, 3, 1));
    assert_eq!((stats.rx_packets, stats.rx_errors), (6, 0));
    // What leaves is looked at as it leaves: this program's egress puts a header in front, here 0 or 1.
    one(&mut device, 0, &frame(CLONE_I2E, 3, 100));
    let sent = device.port_stats(3).unwrap();
    assert_eq!(sent.tx_frames.unicast, sent.tx_packets);
    assert_eq!(sent.rx_frames, Addressed::default());
}

#[test]
fn frames_that_go_no_further_have_no_address() {
    let mut device = device(PortConfig::default());
    one(&mut device, 0, &[]);
    one(&mut device, 0, &vec![0xff; 70_000]);
    assert_eq!(device.stats().dropped(DropReason::TooLong), 1);
    device.unload(0);
    one(&mut device, 0, &frame(FORWARD, 3, 100));
    let stats = device.port_stats(0).unwrap();
    assert_eq!(stats.rx_frames, Addressed::default());
    assert_eq!((stats.rx_errors, stats.rx_unprocessed), (2, 1));
    assert_eq!(stats.rx_packets, 3);
}
