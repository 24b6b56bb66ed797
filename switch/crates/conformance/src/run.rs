// SPDX-License-Identifier: Apache-2.0
//! Runs one STF file against a `Device` in virtual time.

use std::collections::BTreeMap;

use device::{CloneSession, Device, DeviceConfig, MulticastGroup, PortConfig, Replica, Transmit};
use v1model::{Nanos, Pipeline};

use crate::stf::{Command, Statement};
use crate::tables;

/// Virtual time between two statements.
const STEP_NS: Nanos = 1_000_000;
/// Ports 0 to 510: 511 means drop.
const PORTS: u32 = 511;

/// Frames that left, by port.
#[derive(Default)]
struct Sent {
    frames: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl Transmit for Sent {
    fn transmit(&mut self, port: u32, frame: &[u8], _at: Nanos) {
        self.frames.entry(port).or_default().push(frame.to_vec());
    }
}

struct Expected {
    line: usize,
    pattern: Option<String>,
    exact: bool,
}

struct Bed {
    device: Device,
    now: Nanos,
    sent: Sent,
    expected: BTreeMap<u32, Vec<Expected>>,
    /// Ports that the file mentions.
    ports: Vec<u32>,
    /// simple_switch_CLI's multicast nodes by handle.
    nodes: Vec<Vec<Replica>>,
}

/// Loads the program and runs the statements.
///
/// # Errors
/// The first thing that is not as expected.
pub fn run(json: &[u8], statements: &[Statement]) -> Result<(), String> {
    let pipeline = Pipeline::from_json(json).map_err(|e| format!("load: {e}"))?;
    let mut bed = Bed {
        device: Device::new(DeviceConfig {
            cpu_port: None,
            ..DeviceConfig::default()
        }),
        now: 0,
        sent: Sent::default(),
        expected: BTreeMap::new(),
        ports: Vec::new(),
        nodes: Vec::new(),
    };
    bed.device.load(0, pipeline);
    // simple_switch takes every egress port for one that is there; only those that are mentioned are looked at.
    for port in 0..PORTS {
        bed.device
            .add_port(port, PortConfig::default())
            .map_err(|e| e.to_string())?;
    }
    for statement in statements {
        if let Command::Packet { port, .. } | Command::Expect { port, .. } = statement.command {
            if port >= PORTS {
                return Err(format!(
                    "line {}: port {port} is not below {PORTS}",
                    statement.line
                ));
            }
            if !bed.ports.contains(&port) {
                bed.ports.push(port);
            }
        }
    }
    for statement in statements {
        bed.now += STEP_NS;
        bed.statement(statement)
            .map_err(|e| format!("line {}: {e}", statement.line))?;
    }
    bed.settle()?;
    bed.compare()
}

impl Bed {
    fn pipeline(&mut self) -> &mut Pipeline {
        self.device.pipeline_mut().expect("loaded")
    }

    /// Lets everything leave that waits.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..1000 {
            match self.device.advance(self.now, &mut self.sent) {
                Some(due) if due <= self.now + STEP_NS => self.now = self.now.max(due),
                _ => return Ok(()),
            }
        }
        Err("the device never comes to rest".to_string())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), String> {
        let now = self.now;
        match &statement.command {
            Command::Packet { port, frame } => {
                self.device.receive(now, *port, frame);
                self.settle()?;
            }
            Command::Expect {
                port,
                pattern,
                exact,
            } => {
                let expected = Expected {
                    line: statement.line,
                    pattern: pattern.clone(),
                    exact: *exact,
                };
                self.expected.entry(*port).or_default().push(expected);
            }
            Command::Add {
                table,
                priority,
                keys,
                call,
            } => {
                let pipeline = self.pipeline();
                let table = tables::table(pipeline, table)?;
                let call = tables::call(pipeline, table, call)?;
                let entry = tables::entry(pipeline, table, *priority, keys, call)?;
                pipeline
                    .table_insert(table, &entry, now)
                    .map_err(|e| e.to_string())?;
            }
            Command::SetDefault { table, call } => {
                let pipeline = self.pipeline();
                let table = tables::table(pipeline, table)?;
                let call = tables::call(pipeline, table, call)?;
                pipeline
                    .table_set_default(table, Some(call))
                    .map_err(|e| e.to_string())?;
            }
            Command::CheckCounter { name, index, check } => {
                self.check_counter(name, index, check)?
            }
            Command::Cli(words) => self.cli(words)?,
            Command::NoPacket | Command::Wait => self.settle()?,
        }
        Ok(())
    }

    fn check_counter(
        &mut self,
        name: &str,
        index: &str,
        check: &Option<(bool, String, u64)>,
    ) -> Result<(), String> {
        let pipeline = self.pipeline();
        let counter = tables::counter(pipeline, name)?;
        let index = index
            .parse()
            .map_err(|_| format!("`{index}` is no index"))?;
        let (packets, bytes) = pipeline
            .counter_get(counter, index)
            .map_err(|e| e.to_string())?;
        let Some((in_bytes, relation, number)) = check else {
            return Ok(());
        };
        let value = if *in_bytes { bytes } else { packets };
        let holds = match relation.as_str() {
            "==" => value == *number,
            "!=" => value != *number,
            "<" => value < *number,
            "<=" => value <= *number,
            ">" => value > *number,
            ">=" => value >= *number,
            other => return Err(format!("`{other}` is no relation")),
        };
        if holds {
            Ok(())
        } else {
            Err(format!(
                "counter {name}({index}) is {value}, expected {relation} {number}"
            ))
        }
    }

    fn cli(&mut self, words: &[String]) -> Result<(), String> {
        let number = |i: usize| -> Result<u32, String> {
            let word = words.get(i).ok_or("an argument is missing")?;
            word.parse().map_err(|_| format!("`{word}` is no number"))
        };
        let control = |result: Result<(), v1model::ControlError>| result.map_err(|e| e.to_string());
        match words[0].as_str() {
            "mirroring_add" => {
                let replicas = vec![Replica {
                    port: number(2)?,
                    instance: 0,
                }];
                self.session(number(1)?, replicas)
            }
            "mirroring_add_mc" => {
                let group = number(2)?;
                let replicas = self.device.mcast_group(group).map(|g| g.replicas.clone());
                self.session(
                    number(1)?,
                    replicas.ok_or(format!("there is no multicast group {group}"))?,
                )
            }
            "mirroring_delete" => control(self.device.clone_session_delete(number(1)?)),
            "mc_mgrp_create" => {
                let group = MulticastGroup {
                    id: number(1)?,
                    replicas: Vec::new(),
                    metadata: Vec::new(),
                };
                control(self.device.mcast_group_insert(group))
            }
            "mc_node_create" => {
                let instance = number(1)? as u16;
                let ports: Result<Vec<u32>, String> = (2..words.len()).map(number).collect();
                self.nodes.push(
                    ports?
                        .into_iter()
                        .map(|port| Replica { port, instance })
                        .collect(),
                );
                Ok(())
            }
            "mc_node_associate" => {
                let (id, node) = (number(1)?, number(2)? as usize);
                let mut group = self
                    .device
                    .mcast_group(id)
                    .cloned()
                    .ok_or(format!("there is no multicast group {id}"))?;
                group.replicas.extend(
                    self.nodes
                        .get(node)
                        .ok_or(format!("there is no node {node}"))?,
                );
                control(self.device.mcast_group_modify(group))
            }
            "register_write" => {
                let index = number(2)?;
                let value_text = words.get(3).ok_or("a value is missing")?.clone();
                let pipeline = self.pipeline();
                let register = tables::register(pipeline, &words[1])?;
                let width = pipeline.schema().registers[register.0 as usize].width;
                let value = tables::bits(width, &value_text)?;
                control(pipeline.register_set(register, index, &value))
            }
            "register_reset" => {
                let pipeline = self.pipeline();
                let register = tables::register(pipeline, &words[1])?;
                let schema = pipeline.schema().registers[register.0 as usize].clone();
                for index in 0..schema.size {
                    control(pipeline.register_set(
                        register,
                        index,
                        &v1model::Bits::zero(schema.width),
                    ))?;
                }
                Ok(())
            }
            "counter_write" => {
                let (index, packets, bytes) = (number(2)?, number(3)?, number(4)?);
                let pipeline = self.pipeline();
                let counter = tables::counter(pipeline, &words[1])?;
                control(pipeline.counter_set(counter, index, packets.into(), bytes.into()))
            }
            // They print, and p4c's driver does not look.
            "register_read" | "counter_read" => Ok(()),
            other => Err(format!("command `{other}` is not supported")),
        }
    }

    fn session(&mut self, id: u32, replicas: Vec<Replica>) -> Result<(), String> {
        let session = CloneSession {
            id,
            replicas,
            class_of_service: 0,
            packet_length_bytes: 0,
        };
        self.device
            .clone_session_insert(session)
            .map_err(|e| e.to_string())
    }

    /// As p4c's driver: packets in order on every port that the file mentions.
    fn compare(&self) -> Result<(), String> {
        let (none, silence) = (Vec::new(), Vec::new());
        for port in &self.ports {
            let expected = self.expected.get(port).unwrap_or(&none);
            let sent = self.sent.frames.get(port).unwrap_or(&silence);
            if expected.iter().any(|e| e.pattern.is_none())
                && expected.len() == 1
                && !sent.is_empty()
            {
                continue;
            }
            if expected.len() != sent.len() {
                return Err(format!(
                    "port {port}: expected {} packets, got {}{}",
                    expected.len(),
                    sent.len(),
                    show(sent)
                ));
            }
            for (expected, frame) in expected.iter().zip(sent) {
                if let Some(pattern) = &expected.pattern {
                    compare(pattern, expected.exact, frame)
                        .map_err(|e| format!("line {}: port {port}: {e}", expected.line))?;
                }
            }
        }
        Ok(())
    }
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|b| format!("{b:02x}")).collect()
}

fn show(frames: &[Vec<u8>]) -> String {
    frames
        .first()
        .map_or(String::new(), |f| format!("; the first is {}", hex(f)))
}

fn compare(pattern: &str, exact: bool, frame: &[u8]) -> Result<(), String> {
    let got = hex(frame);
    let differs = pattern
        .chars()
        .zip(got.chars())
        .any(|(p, g)| p != '*' && p != g);
    if got.len() < pattern.len() || exact && got.len() != pattern.len() || differs {
        let end = if exact { "$" } else { "" };
        return Err(format!("expected {pattern}{end}\n      got      {got}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_end_takes_more() {
        assert!(compare("0a*b", false, &[0x0a, 0x1b, 0xff]).is_ok());
        assert!(compare("0a*b", true, &[0x0a, 0x1b, 0xff]).is_err());
        assert!(compare("0a*b", false, &[0x0a]).is_err());
        assert!(compare("0a*b", false, &[0x0a, 0x1c])
            .unwrap_err()
            .contains("got      0a1c"));
    }
}
