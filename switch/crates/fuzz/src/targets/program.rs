// SPDX-License-Identifier: Apache-2.0
//! A BMv2 JSON: refused with a place, or taken; then it runs frames, by machine code and by the interpreter, which do the
//! same.

use std::fmt::Debug;

use serde_json::Value;
use v1model::{CounterId, Effects, Engine, Packet, Pipeline, RegisterId, Std};

use super::{seeds, Outcome, Target};

/// Memory that a program may take: far less than an execution may.
const BUDGET_BYTES: u64 = 256 << 20;

pub fn target() -> Target {
    let frames = seeds::FRAMES.map(seeds::bytes);
    Target::new(seeds::programs(), move |document| run(&frames, &document))
}

fn run(frames: &[Vec<u8>], document: &Value) -> Outcome {
    let json = document.to_string();
    let mut pipeline = match Pipeline::from_json_within(json.as_bytes(), BUDGET_BYTES) {
        Ok(pipeline) => pipeline,
        Err(error) => {
            return match error.path.starts_with('/') && error.message.len() < 2000 {
                true => Ok(()),
                false => Err(format!(
                    "a refusal of {} bytes at `{}`",
                    error.message.len(),
                    error.path
                )),
            }
        }
    };
    let mut oracle = Pipeline::from_json_within(json.as_bytes(), BUDGET_BYTES)
        .map_err(|error| format!("the program is refused the second time: {error}"))?;
    oracle.set_engine(Engine::Interpreter);
    let mut packets = [pipeline.new_packet(), oracle.new_packet()];
    for (now, frame) in (0..).step_by(1_000_000).zip(frames) {
        let seen = pass(&mut pipeline, &mut packets[0], frame, now);
        let expected = pass(&mut oracle, &mut packets[1], frame, now);
        if seen != expected {
            return Err(format!("machine code: {seen}\ninterpreter: {expected}"));
        }
    }
    let (state, expected) = (state(&pipeline), state(&oracle));
    if state != expected {
        return Err(format!(
            "machine code leaves {state}\ninterpreter: {expected}"
        ));
    }
    Ok(())
}

/// A frame through everything, and what is seen of it after each part.
fn pass(pipeline: &mut Pipeline, packet: &mut Packet, frame: &[u8], now: u64) -> String {
    let mut fx = Effects::new();
    packet.load(frame);
    pipeline.reset(packet);
    pipeline.std_set(packet, Std::IngressPort, 1);
    pipeline.std_set(packet, Std::PacketLength, frame.len() as u64);
    let mut seen = String::new();
    for part in 0..4 {
        match part {
            0 => pipeline.parse(packet, &mut fx),
            1 => pipeline.ingress(packet, now, &mut fx),
            2 => pipeline.egress(packet, now, &mut fx),
            _ => pipeline.deparse_with(packet, &mut fx),
        }
        let fields = [
            Std::EgressSpec,
            Std::McastGrp,
            Std::ParserError,
            Std::ChecksumError,
        ];
        let fields = fields.map(|field| pipeline.std_get(packet, field));
        let (bytes, payload) = (packet.frame(), packet.payload());
        seen += &format!(
            "{part}: {fields:?} {} {bytes:02x?} {payload:02x?} {fx:?}\n",
            packet.length_bytes()
        );
        fx.clear();
    }
    seen
}

/// What is not zero of registers and counters; of large arrays, their beginnings.
fn state(pipeline: &Pipeline) -> String {
    let schema = pipeline.schema();
    let registers = (0..).map(RegisterId).zip(&schema.registers);
    let registers = registers.map(|(id, register)| {
        let cell = |at| pipeline.register_get(id, at).ok().filter(|v| !v.is_zero());
        cells(&register.name, register.size, cell)
    });
    let counters = (0..).map(CounterId).zip(&schema.counters);
    let counters = counters.map(|(id, counter)| {
        let cell = |at| pipeline.counter_get(id, at).ok().filter(|v| *v != (0, 0));
        cells(&counter.name, counter.size, cell)
    });
    registers.chain(counters).collect()
}

fn cells<T: Debug>(name: &str, size: u32, cell: impl Fn(u32) -> Option<T>) -> String {
    let cells = (0..size.min(1024)).filter_map(|at| Some((at, cell(at)?)));
    format!("{name}: {:?}\n", cells.collect::<Vec<_>>())
}
