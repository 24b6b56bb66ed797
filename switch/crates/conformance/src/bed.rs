// SPDX-License-Identifier: Apache-2.0
//! A `Device` in virtual time, to which the statements of an STF file are done.

use std::collections::BTreeMap;

use device::{
    CloneSession, Device, DeviceConfig, MulticastGroup, Packet, PortConfig, Replica, Transmit,
};
use v1model::{
    Bits, Entry, EntryAction, EntryKey, MeterConfig, Nanos, Pipeline, ProfileId, TableId,
};

use crate::stf::{Check, Command};
use crate::tables;

/// Virtual time between two statements.
pub const STEP_NS: Nanos = 1_000_000;
/// simple_switch takes every port of 9 bits for one that is there; what leaves by 511 is dropped.
pub const PORTS: u32 = 512;

/// Entries that a file may add to those of the program: the size of a table that says none.
const ADDED: u32 = 1024;

/// A frame that left, and by which port.
pub type Sent = (u32, Vec<u8>);

#[derive(Default)]
struct Wire(Vec<Sent>);

impl Transmit for Wire {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        self.0.push((port, packet.frame().to_vec()));
    }
}

/// The switch under test.
pub struct Bed {
    device: Device,
    now: Nanos,
    wire: Wire,
    /// simple_switch_CLI's multicast nodes by handle.
    nodes: Vec<Vec<Replica>>,
    /// Entries by the name that the file gives them.
    handles: BTreeMap<String, (TableId, EntryKey)>,
    /// The next member of each action profile.
    members: BTreeMap<ProfileId, u32>,
}

impl Bed {
    /// Loads a program's BMv2 JSON; every port is there.
    ///
    /// # Errors
    /// What the loader says.
    pub fn new(json: &[u8]) -> Result<Bed, String> {
        let pipeline = Pipeline::from_json(json).map_err(|e| format!("load: {e}"))?;
        let mut device = Device::new(DeviceConfig {
            cpu_port: None,
            ..DeviceConfig::default()
        });
        device.load(0, pipeline);
        for port in 0..PORTS {
            device
                .add_port(port, PortConfig::default())
                .map_err(|e| e.to_string())?;
        }
        Ok(Bed {
            device,
            now: 0,
            wire: Wire::default(),
            nodes: Vec::new(),
            handles: BTreeMap::new(),
            members: BTreeMap::new(),
        })
    }

    /// Lets a file add entries to tables that have the program's own: BMv2 JSON does not say which of them are const. For
    /// BMv2 itself all are.
    ///
    /// # Errors
    /// When that takes too much memory.
    pub fn allow_changes(&mut self) -> Result<(), String> {
        let pipeline = self.pipeline_mut();
        for table in (0..pipeline.schema().tables.len() as u32).map(TableId) {
            if pipeline.table(table).is_const() {
                let size = pipeline.table(table).max_size().saturating_add(ADDED);
                let done = pipeline.table_allow_changes(table, size);
                done.map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }

    pub fn pipeline(&self) -> &Pipeline {
        self.device.pipeline().expect("loaded")
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        self.device.pipeline_mut().expect("loaded")
    }

    /// The time of the next statement.
    pub fn step(&mut self) {
        self.now += STEP_NS;
    }

    /// Lets everything leave that waits, and gives it.
    ///
    /// # Errors
    /// When the device never comes to rest.
    pub fn settle(&mut self) -> Result<Vec<Sent>, String> {
        for _ in 0..1000 {
            match self.device.advance(self.now, &mut self.wire) {
                Some(due) if due <= self.now + STEP_NS => self.now = self.now.max(due),
                _ => return Ok(std::mem::take(&mut self.wire.0)),
            }
        }
        Err("the device never comes to rest".to_string())
    }

    /// What one frame brings out.
    ///
    /// # Errors
    /// When the device never comes to rest.
    pub fn packet(&mut self, port: u32, frame: &[u8]) -> Result<Vec<Sent>, String> {
        self.device.receive(self.now, port, frame);
        self.settle()
    }

    /// Does a statement for the control plane; others do nothing.
    ///
    /// # Errors
    /// What is not as the program or the file says.
    pub fn control(&mut self, command: &Command) -> Result<(), String> {
        let now = self.now;
        match command {
            Command::Add {
                table,
                priority,
                keys,
                call,
                handle,
            } => {
                let pipeline = self.pipeline();
                let table = tables::table(pipeline, table)?;
                let call = tables::call(pipeline, table, call)?;
                let key = tables::key(pipeline, table, *priority, keys)?;
                let profile = pipeline.table_schema(table).profile;
                let action = match profile {
                    Some(profile) => EntryAction::Member(self.member(profile, &call)?),
                    None => EntryAction::Direct(call),
                };
                if let Some(name) = handle {
                    self.handles.insert(name.clone(), (table, key.clone()));
                }
                let entry = Entry {
                    key,
                    action,
                    idle_timeout: 0,
                    cookie: 0,
                };
                let done = self.pipeline_mut().table_insert(table, &entry, now);
                done.map_err(|e| e.to_string())
            }
            Command::SetDefault { table, call } => {
                let pipeline = self.pipeline_mut();
                let table = tables::table(pipeline, table)?;
                let call = tables::call(pipeline, table, call)?;
                let done = pipeline.table_mut(table).set_default(Some(&call));
                done.map_err(|e| e.to_string())
            }
            Command::RemoveAll => {
                let pipeline = self.pipeline_mut();
                for table in pipeline.schema().tables.clone() {
                    if pipeline.table(table.id).is_const() {
                        continue;
                    }
                    pipeline.table_clear(table.id).map_err(|e| e.to_string())?;
                    for entry in table.const_entries.iter().flatten() {
                        let done = pipeline.table_insert(table.id, entry, now);
                        done.map_err(|e| e.to_string())?;
                    }
                }
                Ok(())
            }
            Command::CheckCounter { name, index, check } => self.check_counter(name, index, check),
            Command::Cli(words) => self.cli(words),
            Command::Packet { .. } | Command::Expect { .. } => Ok(()),
            Command::NoPacket | Command::Wait => Ok(()),
        }
    }

    /// A new member of an action profile, as simple_switch_CLI's handles: 0, 1, …
    fn member(&mut self, profile: ProfileId, call: &v1model::ActionCall) -> Result<u32, String> {
        let next = self.members.entry(profile).or_default();
        let member = *next;
        *next += 1;
        self.pipeline_mut()
            .profile_mut(profile)
            .insert_member(member, call)
            .map_err(|e| e.to_string())?;
        Ok(member)
    }

    /// Packets and bytes of a counter: of an element, or of an entry by its handle (`$A`).
    fn counter(&self, name: &str, index: &str) -> Result<(u64, u64), String> {
        let pipeline = self.pipeline();
        if let Some(handle) = index.strip_prefix('$') {
            let (table, key) = self
                .handles
                .get(handle)
                .ok_or_else(|| format!("no entry has the name `{handle}`"))?;
            let direct = pipeline.table_schema(*table).direct_counter.as_deref();
            if !direct.is_some_and(|direct| tables::is_named(direct, name)) {
                return Err(format!(
                    "the table of entry `{handle}` has {}, not `{name}`",
                    direct.map_or("no direct counter".to_string(), |d| format!("`{d}`"))
                ));
            }
            return pipeline.table(*table).count(key).map_err(|e| e.to_string());
        }
        let counter = tables::counter(pipeline, name)?;
        let index = index
            .parse()
            .map_err(|_| format!("`{index}` is no index"))?;
        pipeline
            .counter_get(counter, index)
            .map_err(|e| e.to_string())
    }

    fn check_counter(&self, name: &str, index: &str, check: &Option<Check>) -> Result<(), String> {
        let (packets, bytes) = self.counter(name, index)?;
        let Some(check) = check else {
            return Ok(());
        };
        let (value, number) = (if check.bytes { bytes } else { packets }, check.number);
        let holds = match check.relation.as_str() {
            "==" => value == number,
            "!=" => value != number,
            "<" => value < number,
            "<=" => value <= number,
            ">" => value > number,
            ">=" => value >= number,
            other => return Err(format!("`{other}` is no relation")),
        };
        if holds {
            return Ok(());
        }
        Err(format!(
            "counter {name}({index}) is {value}, expected {} {number}",
            check.relation
        ))
    }

    fn cli(&mut self, words: &[String]) -> Result<(), String> {
        let text = |i: usize| words.get(i).ok_or("an argument is missing".to_string());
        let number = |i: usize| -> Result<u32, String> {
            let word = text(i)?;
            word.parse().map_err(|_| format!("`{word}` is no number"))
        };
        let control = |result: Result<(), v1model::ControlError>| result.map_err(|e| e.to_string());
        match words[0].as_str() {
            "mirroring_add" => {
                let port = number(2)?;
                self.session(number(1)?, vec![Replica { port, instance: 0 }])
            }
            "mirroring_add_mc" => {
                let group = number(2)?;
                let replicas = self
                    .device
                    .replication()
                    .group(group)
                    .map(|g| g.replicas.clone());
                let replicas = replicas.ok_or(format!("there is no multicast group {group}"))?;
                self.session(number(1)?, replicas)
            }
            "mirroring_delete" => control(self.device.replication_mut().delete_session(number(1)?)),
            "mc_mgrp_create" => {
                control(self.device.replication_mut().insert_group(MulticastGroup {
                    id: number(1)?,
                    replicas: Vec::new(),
                    metadata: Vec::new(),
                }))
            }
            "mc_node_create" => {
                let instance = number(1)? as u16;
                let ports: Result<Vec<u32>, String> = (2..words.len()).map(number).collect();
                let node = ports?.into_iter().map(|port| Replica { port, instance });
                self.nodes.push(node.collect());
                Ok(())
            }
            "mc_node_associate" => {
                let (id, node) = (number(1)?, number(2)? as usize);
                let group = self.device.replication().group(id).cloned();
                let mut group = group.ok_or(format!("there is no multicast group {id}"))?;
                let node = self.nodes.get(node);
                group
                    .replicas
                    .extend(node.ok_or(format!("there is no node {}", words[2]))?);
                control(self.device.replication_mut().modify_group(group))
            }
            "register_write" => {
                let (index, value) = (number(2)?, text(3)?);
                let pipeline = self.pipeline_mut();
                let register = tables::register(pipeline, text(1)?)?;
                let width = pipeline.schema().registers[register.index()].width;
                let value = tables::bits(width, value)?;
                control(pipeline.register_set(register, index, &value))
            }
            "register_reset" => {
                let pipeline = self.pipeline_mut();
                let register = tables::register(pipeline, text(1)?)?;
                let schema = pipeline.schema().registers[register.index()].clone();
                let zero = Bits::zero(schema.width);
                (0..schema.size)
                    .try_for_each(|i| control(pipeline.register_set(register, i, &zero)))
            }
            "counter_write" => {
                let (index, packets, bytes) = (number(2)?, number(3)?, number(4)?);
                let pipeline = self.pipeline_mut();
                let counter = tables::counter(pipeline, text(1)?)?;
                control(pipeline.counter_set(counter, index, packets.into(), bytes.into()))
            }
            "meter_set_rates" => {
                let (index, rates) = (number(2)?, meter_rates(&words[3..])?);
                let pipeline = self.pipeline_mut();
                let meter = tables::meter(pipeline, text(1)?)?;
                control(pipeline.meter_set(meter, index, Some(rates)))
            }
            "meter_array_set_rates" => {
                let rates = meter_rates(&words[2..])?;
                let pipeline = self.pipeline_mut();
                let meter = tables::meter(pipeline, text(1)?)?;
                let size = pipeline.schema().meters[meter.index()].size;
                (0..size).try_for_each(|i| control(pipeline.meter_set(meter, i, Some(rates))))
            }
            // They print, and p4c's driver does not look.
            "register_read" | "counter_read" | "mirroring_get" | "meter_get_rates" => Ok(()),
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
        let done = self.device.replication_mut().insert_session(session);
        done.map_err(|e| e.to_string())
    }
}

/// `rate:burst rate:burst` of simple_switch_CLI, rates in units per microsecond: committed first, then peak.
fn meter_rates(words: &[String]) -> Result<MeterConfig, String> {
    let pair = |word: &String| -> Result<(u64, u64), String> {
        let wrong = || format!("`{word}` is not rate:burst");
        let (rate, burst) = word.split_once(':').ok_or_else(wrong)?;
        let rate: f64 = rate.parse().map_err(|_| wrong())?;
        Ok((
            (rate * 1e6).round() as u64,
            burst.parse().map_err(|_| wrong())?,
        ))
    };
    let [committed, peak] = words else {
        return Err("two of rate:burst are needed, committed and peak".to_string());
    };
    let ((cir, cburst), (pir, pburst)) = (pair(committed)?, pair(peak)?);
    Ok(MeterConfig {
        cir,
        cburst,
        pir,
        pburst,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_rates_are_per_microsecond() {
        let words = ["0.5:2".to_string(), "2:30".to_string()];
        let rates = meter_rates(&words).unwrap();
        assert_eq!((rates.cir, rates.cburst), (500_000, 2));
        assert_eq!((rates.pir, rates.pburst), (2_000_000, 30));
        assert!(meter_rates(&words[..1]).unwrap_err().contains("two of"));
        assert!(meter_rates(&["a:1".to_string(), "1".to_string()])
            .unwrap_err()
            .contains("`a:1` is not rate:burst"));
    }
}
