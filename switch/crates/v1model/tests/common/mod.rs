// SPDX-License-Identifier: Apache-2.0
//! Runs the programs of `tests/p4` on single packets, without a device around them.
#![allow(dead_code)] // Each test crate uses its part.

pub mod minimal;

use v1model::{ActionCall, Bits, Effects, Packet, Pipeline, Std};

/// The header of `include/probe.p4`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    pub key: u32,
    pub a: u32,
    pub b: u32,
    pub c: u16,
    pub x: u8,
    pub y: u8,
    pub z: u8,
    pub hit: u8,
}

impl Probe {
    /// 18 bytes.
    pub const LEN: usize = 18;

    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.key.to_be_bytes());
        out.extend(self.a.to_be_bytes());
        out.extend(self.b.to_be_bytes());
        out.extend(self.c.to_be_bytes());
        out.extend([self.x, self.y, self.z, self.hit]);
        out
    }

    pub fn parse(bytes: &[u8]) -> Probe {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        Probe {
            key: word(0),
            a: word(4),
            b: word(8),
            c: u16::from_be_bytes(bytes[12..14].try_into().unwrap()),
            x: bytes[14],
            y: bytes[15],
            z: bytes[16],
            hit: bytes[17],
        }
    }
}

/// A pipeline with a packet to send through it.
pub struct Bench {
    pub pipeline: Pipeline,
    pub effects: Effects,
    packet: Box<Packet>,
}

impl Bench {
    /// Loads `tests/p4/compiled/<program>.json`.
    pub fn load(program: &str) -> Bench {
        let path = format!(
            "{}/tests/p4/compiled/{program}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let json = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let pipeline = Pipeline::from_json(&json).unwrap_or_else(|e| panic!("{path}: {e}"));
        Bench {
            packet: pipeline.new_packet(),
            pipeline,
            effects: Effects::new(),
        }
    }

    /// What leaves for `frame` received at `port` and `now`. `effects` holds what was asked for.
    pub fn frame(&mut self, frame: &[u8], port: u64, now: u64) -> Vec<u8> {
        let Bench {
            pipeline,
            packet,
            effects,
        } = self;
        effects.clear();
        packet.load(frame);
        pipeline.reset(packet);
        pipeline.std_set(packet, Std::IngressPort, port);
        pipeline.std_set(packet, Std::PacketLength, frame.len() as u64);
        pipeline.parse(packet, effects);
        pipeline.ingress(packet, now, effects);
        pipeline.egress(packet, now, effects);
        pipeline.deparse(packet);
        packet.frame().to_vec()
    }

    /// The probe that leaves for a probe followed by `payload` bytes.
    pub fn probe(&mut self, probe: Probe, payload: usize, now: u64) -> Probe {
        let mut frame = probe.emit();
        frame.resize(frame.len() + payload, 0xee);
        let out = self.frame(&frame, 3, now);
        assert_eq!(out.len(), frame.len());
        assert_eq!(
            out[Probe::LEN..],
            frame[Probe::LEN..],
            "the payload changed"
        );
        Probe::parse(&out)
    }

    /// A call of an action of a table by name.
    pub fn call(&self, table: &str, action: &str, args: &[u64]) -> ActionCall {
        let table = self.pipeline.find_table(table).expect(table);
        let action = self.pipeline.table_action(table, action).expect(action);
        let schema = self.pipeline.action_schema(action);
        let args = schema
            .params
            .iter()
            .zip(args)
            .flat_map(|(p, &v)| bits(p.width, v).to_limbs())
            .collect();
        ActionCall { action, args }
    }
}

pub fn bits(width: u32, value: u64) -> Bits {
    Bits::from_u64(width, value).unwrap()
}

/// A new program takes over the state of the old one, as RECONCILE_AND_COMMIT does it.
pub fn take_over(new: &mut Pipeline, old: &mut Pipeline) {
    let mut takeover = new.takeover(old.schema());
    new.begin(&mut takeover, old);
    while let Some(piece) = takeover.read(old, 3) {
        new.take(piece).unwrap();
    }
    new.take_arrays(&takeover, old);
}
