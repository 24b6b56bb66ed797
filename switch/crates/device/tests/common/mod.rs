// SPDX-License-Identifier: Apache-2.0
//! What the device's tests share: a device with ops.p4, a place for sent frames, what egress saw.
#![allow(dead_code)]

use device::{
    CloneSession, Device, DeviceConfig, MulticastGroup, Nanos, Packet, PortConfig, Replica,
    Transmit,
};
use v1model::trace::Tracer;
use v1model::Pipeline;

pub const OPS: &[u8] = include_bytes!("../p4/ops.json");

pub const FORWARD: u8 = 0;
pub const DROP: u8 = 1;
pub const MULTICAST: u8 = 2;
pub const CLONE_I2E: u8 = 3;
pub const CLONE_E2E: u8 = 4;
pub const RESUBMIT: u8 = 5;
pub const RECIRCULATE: u8 = 6;
pub const DIGEST: u8 = 7;
pub const TRUNCATE: u8 = 8;
pub const PRIORITY: u8 = 9;
pub const DROP_EGRESS: u8 = 10;
pub const ASSERT: u8 = 11;
pub const FOREVER: u8 = 12;
pub const STORM: u8 = 13;

/// Bytes of the header that egress adds.
pub const SEEN_LEN: usize = 28;

/// Frames that left, in order.
#[derive(Default)]
pub struct Sent(pub Vec<(u32, Vec<u8>, Nanos)>);

impl Transmit for Sent {
    fn transmit(&mut self, port: u32, packet: &mut Packet, at: Nanos) {
        self.0.push((port, packet.frame().to_vec(), at));
    }
}

/// The header that egress adds, and the bytes behind it.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub instance_type: u8,
    pub rounds: u8,
    pub egress_port: u16,
    pub egress_rid: u16,
    pub packet_length: u32,
    pub enq_timestamp: u32,
    pub enq_qdepth: u32,
    pub deq_timedelta: u32,
    pub deq_qdepth: u32,
    pub ingress_port: u16,
    pub rest: Vec<u8>,
}

pub fn seen(frame: &[u8]) -> Seen {
    let n16 = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let n32 = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    Seen {
        instance_type: frame[0],
        rounds: frame[1],
        egress_port: n16(2),
        egress_rid: n16(4),
        packet_length: n32(6),
        enq_timestamp: n32(10),
        enq_qdepth: n32(14),
        deq_timedelta: n32(18),
        deq_qdepth: n32(22),
        ingress_port: n16(26),
        rest: frame[SEEN_LEN..].to_vec(),
    }
}

/// A device with ops.p4 and ports 0 to 4 with these options.
pub fn device(config: PortConfig) -> Device {
    let mut device = Device::new(DeviceConfig::default());
    for port in 0..5 {
        device.add_port(port, config).unwrap();
    }
    device.load(0, Pipeline::from_json(OPS).unwrap());
    device
}

/// A tracer of the program that runs.
pub fn tracer(device: &Device) -> Tracer {
    Tracer::new(device.pipeline().unwrap().traced()).unwrap()
}

/// A session with such replicas: port, instance.
pub fn session(id: u32, replicas: &[(u32, u16)]) -> CloneSession {
    CloneSession {
        id,
        replicas: replicas
            .iter()
            .map(|&(port, instance)| Replica { port, instance })
            .collect(),
        class_of_service: 0,
        packet_length_bytes: 0,
    }
}

/// Gives a device group 3 and session 3, of ports 1 to 3 each.
pub fn replicate(device: &mut Device) {
    let session = session(3, &[(1, 1), (2, 2), (3, 3)]);
    let group = MulticastGroup {
        id: 3,
        replicas: session.replicas.clone(),
    };
    device.replication_mut().insert(group).unwrap();
    device.replication_mut().insert(session).unwrap();
}

/// A frame that asks for an operation, `len` bytes.
pub fn frame(op: u8, arg: u8, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len as u32).map(|i| i as u8).collect();
    frame[0] = op;
    frame[1] = arg;
    frame
}

/// Receives a frame at port 0 at `now` and does what is due then.
pub fn one(device: &mut Device, now: Nanos, frame: &[u8]) -> Vec<(u32, Vec<u8>, Nanos)> {
    let mut sent = Sent::default();
    device.advance(now, &mut sent);
    device.receive(now, 0, frame);
    device.advance(now, &mut sent);
    sent.0
}

/// One of several frames that came in, parsed ahead where there is a program.
pub fn receive_ahead(
    device: &mut Device,
    now: Nanos,
    port: u32,
    frame: &[u8],
    tx: &mut dyn Transmit,
) {
    while !device.parse_ahead(now, port, frame) {
        if !handle_next(device, tx) {
            device.advance(now, tx);
            return device.receive(now, port, frame);
        }
    }
}

/// Handles those that are parsed.
pub fn catch_up(device: &mut Device, tx: &mut dyn Transmit) {
    device.warm_ahead();
    while handle_next(device, tx) {}
}

fn handle_next(device: &mut Device, tx: &mut dyn Transmit) -> bool {
    let arrival = device.next_ahead();
    if let Some(arrival) = arrival {
        device.advance(arrival, tx);
        device.receive_next();
    }
    arrival.is_some()
}
