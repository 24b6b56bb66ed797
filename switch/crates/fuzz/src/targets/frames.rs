// SPDX-License-Identifier: Apache-2.0
//! Frames and pauses through a device with one of our programs: as many frames leave as came in, were made and not dropped.

use device::Device;
use serde_json::{json, Value};
use v1model::Pipeline;

use super::switch::{self, Sent, PORTS};
use super::{seeds, Outcome, Target};

pub struct Frames {
    bases: Vec<(String, Value)>,
    programs: Vec<(String, String)>,
}

impl Frames {
    pub fn new() -> Frames {
        let programs = seeds::programs();
        let base = |(name, _): &(String, Value)| {
            let frame = |hex: &str| json!({"port": 1, "frame": hex, "after_ns": 1000});
            let frames: Vec<Value> = seeds::FRAMES.into_iter().map(frame).collect();
            (name.clone(), json!({"program": name, "frames": frames}))
        };
        Frames {
            bases: programs.iter().map(base).collect(),
            programs: programs
                .into_iter()
                .map(|(name, json)| (name, json.to_string()))
                .collect(),
        }
    }
}

impl Target for Frames {
    fn name(&self) -> &'static str {
        "frames"
    }

    fn bases(&self) -> &[(String, Value)] {
        &self.bases
    }

    fn run(&mut self, document: Value) -> Outcome {
        let name = document["program"].as_str().unwrap_or_default();
        let program = self.programs.iter().find(|(known, _)| known == name);
        let json = &program.unwrap_or(&self.programs[0]).1;
        let mut device = switch::device();
        let pipeline = Pipeline::from_json(json.as_bytes()).map_err(|e| e.to_string())?;
        device.load(0, pipeline);
        let (mut now, mut sent) = (1_000_000, Sent::default());
        for item in document["frames"]
            .as_array()
            .into_iter()
            .flatten()
            .take(200)
        {
            let port = item["port"].as_u64().unwrap_or(1) as u32;
            let frame = seeds::bytes(item["frame"].as_str().unwrap_or_default());
            device.receive(now, port, &frame);
            now += item["after_ns"].as_u64().unwrap_or(0).min(1_000_000_000);
            device.advance(now, &mut sent);
        }
        for _ in 0..100 {
            now += 1_000_000_000;
            device.advance(now, &mut sent);
        }
        settled(&device)
    }
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
