// SPDX-License-Identifier: Apache-2.0
//! A BMv2 JSON: refused with a place, or taken; then it runs frames.

use serde_json::Value;
use v1model::{Effects, Pipeline, Std};

use super::{seeds, Outcome, Target};

/// Memory that a program may take: far less than an execution may.
const BUDGET_BYTES: u64 = 256 << 20;

pub struct Program {
    bases: Vec<(String, Value)>,
    frames: Vec<Vec<u8>>,
}

impl Program {
    pub fn new() -> Program {
        Program {
            bases: seeds::programs(),
            frames: seeds::FRAMES.map(seeds::bytes).into(),
        }
    }
}

impl Target for Program {
    fn name(&self) -> &'static str {
        "program"
    }

    fn bases(&self) -> &[(String, Value)] {
        &self.bases
    }

    fn run(&mut self, document: Value) -> Outcome {
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
        let (mut packet, mut fx) = (pipeline.new_packet(), Effects::new());
        for (now, frame) in (0..).step_by(1_000_000).zip(&self.frames) {
            fx.clear();
            packet.load(frame);
            pipeline.reset(&mut packet);
            pipeline.std_set(&mut packet, Std::IngressPort, 1);
            pipeline.std_set(&mut packet, Std::PacketLength, frame.len() as u64);
            pipeline.parse(&mut packet, &mut fx);
            pipeline.ingress(&mut packet, now, &mut fx);
            pipeline.egress(&mut packet, now, &mut fx);
            pipeline.deparse(&mut packet);
        }
        Ok(())
    }
}
