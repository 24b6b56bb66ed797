// SPDX-License-Identifier: Apache-2.0
//! Two switches and the link between them in virtual time: a frame between them is at no interface.
//!
//! ```text
//!  interface 0 ─0 s0 1═══1 ms═══1 s1 0─ interface 1
//! ```
//! Both run the device's ops.p4. A frame's first byte 0 asks to be forwarded to the port in its second byte; what has
//! been through a switch begins with two zeros.

mod outbox;

use device::{Device, DeviceConfig, PortConfig};
use fabric::Sink;
use outbox::{offer, take, Left};
use traffic::link::LinkOptions;
use v1model::Pipeline;
use wire::network::Network;

const OPS: &[u8] = include_bytes!("../../device/tests/p4/ops.json");
const MS: u64 = 1_000_000;
/// Frames that are forwarded to ports 0 and 1.
const BACK: [u8; 60] = [0; 60];
const ACROSS: [u8; 60] = {
    let mut frame = BACK;
    frame[1] = 1;
    frame
};

fn device() -> Device {
    device_with(OPS)
}

fn device_with(program: &[u8]) -> Device {
    let mut device = Device::new(DeviceConfig::default());
    for port in 0..2 {
        device.add_port(port, PortConfig::default()).unwrap();
        device.set_port_up(port, true);
    }
    device.load(0, Pipeline::from_json(program).unwrap());
    device
}

fn network(frames: usize) -> Network {
    network_of(frames, MS, OPS)
}

fn network_of(frames: usize, delay_ns: u64, program: &[u8]) -> Network {
    let options = options(delay_ns);
    let mut network = Network::new(2, 1, frames);
    let ends = [0, 1].map(|index| Sink::Switch { index, port: 1 });
    network.add_link("s0-s1", ends, [&options; 2]).unwrap();
    for index in 0..2 {
        network.bind(index, index, 0);
        network.start(index as usize, "s", device_with(program));
    }
    network
}

fn options(delay_ns: u64) -> LinkOptions {
    LinkOptions {
        delay_ns,
        ..LinkOptions::default()
    }
}

/// Interfaces at which frames leave until `until`, in order.
fn leaving(network: &mut Network, until: u64) -> Vec<u32> {
    let left = take(network, until).into_iter();
    left.map(|(interface, _)| interface).collect()
}

#[test]
fn a_frame_crosses_both_switches_and_leaves_after_the_links_delay() {
    let mut network = network(64);
    offer(&mut network, 0, 0, &ACROSS);
    assert!(leaving(&mut network, MS - 1).is_empty());
    assert_eq!(network.next_event(), Some(MS));
    assert_eq!(leaving(&mut network, MS), [1]);
    offer(&mut network, 0, MS, &BACK);
    assert_eq!(leaving(&mut network, MS), [0]);
    assert_eq!(network.frames().0, 0);
}

#[test]
fn a_switch_that_stops_loses_what_comes_and_the_other_one_goes_on() {
    let mut network = network(64);
    assert!(network.stop(1).is_some());
    assert!(network.stop(1).is_none());
    offer(&mut network, 0, 0, &ACROSS);
    offer(&mut network, 0, 0, &BACK);
    assert_eq!(leaving(&mut network, 2 * MS), [0]);
    assert_eq!(network.direction(0).1.dropped_unsent, 1);
    network.start(1, "s1", device());
    offer(&mut network, 0, 2 * MS, &ACROSS);
    assert_eq!(leaving(&mut network, 4 * MS), [1]);
    assert_eq!(network.frames().0, 0);
}

#[test]
fn a_port_that_is_down_takes_no_frame_from_its_link() {
    let mut network = network(64);
    network.device(1).unwrap().set_port_up(1, false);
    network.refresh(1);
    offer(&mut network, 0, 0, &ACROSS);
    assert!(leaving(&mut network, MS).is_empty());
    assert_eq!(network.direction(0).1.dropped_unsent, 1);
    network.device(1).unwrap().set_port_up(1, true);
    network.refresh(1);
    offer(&mut network, 0, MS, &ACROSS);
    assert_eq!(leaving(&mut network, 2 * MS), [1]);
}

#[test]
fn frames_of_switches_have_the_same_bound_of_memory() {
    let mut network = network(8);
    for _ in 0..10 {
        offer(&mut network, 0, 0, &ACROSS);
        leaving(&mut network, 0);
    }
    assert_eq!(network.frames(), (8, 8));
    assert_eq!(network.direction(0).0.dropped_no_memory, 2);
    assert_eq!(leaving(&mut network, MS).len(), 8);
    assert_eq!(network.frames().0, 0);
}

#[test]
fn a_frame_that_goes_round_without_delay_stops_no_clock() {
    // Frames leave as they came, so each switch sends this one back.
    let mut program: serde_json::Value = serde_json::from_slice(OPS).unwrap();
    program["deparsers"][0]["order"] = serde_json::json!(["cmd"]);
    let mut network = network_of(64, 0, program.to_string().as_bytes());
    let ends = [2, 3].map(Sink::Interface);
    network
        .add_link("other", ends, [&options(MS), &options(MS)])
        .unwrap();
    let mut left = Left::default();
    network.offer(0, 0, &ACROSS, &mut left);
    network.offer(2, 0, &[7; 60], &mut left);
    for _ in 0..3 {
        assert!(!network.advance(2 * MS, &mut left), "it goes round");
    }
    assert_eq!(left.frames, [(3, 7)]);
}
