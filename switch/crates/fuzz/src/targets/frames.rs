// SPDX-License-Identifier: Apache-2.0
//! Frames and pauses through a device with one of our programs: as many frames leave as came in, were made and not dropped.

use device::Device;
use serde_json::{json, Value};
use v1model::Pipeline;

use super::switch::{self, PORTS};
use super::{seeds, Outcome, Target};

pub fn target() -> Target {
    let programs = seeds::programs();
    let base = |(name, _): &(String, Value)| {
        let frame = |hex: &str| json!({"port": 1, "frame": hex, "after_ns": 1000});
        let frames: Vec<Value> = seeds::FRAMES.into_iter().map(frame).collect();
        (name.clone(), json!({"program": name, "frames": frames}))
    };
    let bases = programs.iter().map(base).collect();
    let text = |(name, json): (String, Value)| (name, json.to_string());
    let programs: Vec<(String, String)> = programs.into_iter().map(text).collect();
    Target::new(bases, move |document| run(&programs, &document))
}

fn run(programs: &[(String, String)], document: &Value) -> Outcome {
    let json = seeds::named(programs, document["program"].as_str().unwrap_or_default());
    let pipeline = Pipeline::from_json(json.as_bytes()).map_err(|e| e.to_string())?;
    let mut bed = switch::bed();
    bed.device.load(0, pipeline);
    bed.now = 1_000_000;
    let frames = document["frames"].as_array();
    for item in frames.into_iter().flatten().take(200) {
        let port = item["port"].as_u64().unwrap_or(1) as u32;
        let frame = seeds::bytes(item["frame"].as_str().unwrap_or_default());
        bed.receive(port, &frame);
        bed.pass(item["after_ns"].as_u64().unwrap_or(0).min(1_000_000_000));
    }
    for _ in 0..100 {
        bed.pass(1_000_000_000);
    }
    settled(&bed.device)
}

/// Nothing waits when everything had time to leave.
fn settled(device: &Device) -> Outcome {
    for port in PORTS {
        let usage = device.port_usage(port).unwrap_or_default();
        if usage.packets != 0 || usage.bytes != 0 {
            return Err(format!("port {port} still has {usage:?}"));
        }
    }
    let stats = device.stats();
    let (came, went) = (
        stats.received + stats.copied,
        stats.transmitted + stats.dropped_total(),
    );
    match came == went {
        true => Ok(()),
        false => Err(format!(
            "{came} packets came or were made, {went} left or were dropped: {stats:?}"
        )),
    }
}
