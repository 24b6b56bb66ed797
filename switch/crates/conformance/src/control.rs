// SPDX-License-Identifier: Apache-2.0
//! The switch under test, and statements for its control plane: what each changes, in the program's own names and widths.
//!
//! A `Device` in virtual time, and what leaves it: the bed of these tests and of the fuzz targets.

use std::collections::BTreeMap;

use anyhow::{bail, ensure, Context, Result};
use device::{
    CloneSession, Device, DeviceConfig, MulticastGroup, Nanos, Packet, PortConfig, Replica,
    Transmit,
};
use v1model::{
    ActionCall, Bits, Entry, EntryAction, Key, MeterConfig, Pipeline, ProfileId, TableId,
};

use crate::stf::{number, Check, Command, RELATIONS};
use crate::tables;

/// Virtual time between two statements.
const STEP_NS: Nanos = 1_000_000;
/// simple_switch takes every port of 9 bits for one that is there; what leaves by 511 is dropped.
pub const PORTS: u32 = 512;

/// Entries that a file may add to those of the program: the size of a table that says none.
const ADDED: u32 = 1024;

/// What a statement changes; members and nodes have simple_switch_CLI's handles: 0, 1, …
#[derive(Clone, Debug)]
pub enum Change<'a> {
    Member(ProfileId, u32, ActionCall),
    Insert(TableId, Entry<Key>),
    SetDefault(TableId, ActionCall),
    /// Takes all entries away but the program's own.
    Clear(TableId),
    /// A command of simple_switch_CLI: words.
    Cli(&'a [String]),
}

/// The switch under test.
pub struct Switch {
    bed: Bed,
    /// Multicast nodes by handle.
    nodes: Vec<Vec<Replica>>,
    /// Entries by the name that the file gives them.
    names: BTreeMap<String, (TableId, Key)>,
    /// The next member of each action profile.
    members: BTreeMap<ProfileId, u32>,
}

impl Switch {
    /// Loads a program's BMv2 JSON; every port is there.
    ///
    /// # Errors
    /// What the loader says.
    pub fn new(json: &[u8]) -> Result<Switch> {
        let pipeline = Pipeline::from_json(json).context("load")?;
        let config = DeviceConfig {
            cpu_port: None,
            ..DeviceConfig::default()
        };
        let mut bed = Bed::new(config, 0..PORTS, PortConfig::default(), usize::MAX);
        bed.device.load(0, pipeline);
        Ok(Switch {
            bed,
            nodes: Vec::new(),
            names: BTreeMap::new(),
            members: BTreeMap::new(),
        })
    }

    /// Lets a file add entries to tables that have the program's own: BMv2 JSON does not say which of them are const. For
    /// BMv2 itself all are.
    ///
    /// # Errors
    /// When that takes too much memory.
    pub fn allow_changes(&mut self) -> Result<()> {
        let pipeline = self.pipeline_mut();
        for table in (0..pipeline.schema().tables.len() as u32).map(TableId) {
            if pipeline.table(table).is_const() {
                let size = pipeline.table(table).max_size().saturating_add(ADDED);
                pipeline.table_allow_changes(table, size)?;
            }
        }
        Ok(())
    }

    pub fn pipeline(&self) -> &Pipeline {
        self.bed.device.pipeline().expect("loaded")
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        self.bed.device.pipeline_mut().expect("loaded")
    }

    /// The time of the next statement.
    pub fn step(&mut self) {
        self.bed.now += STEP_NS;
    }

    /// Lets everything leave that waits, and gives it.
    ///
    /// # Errors
    /// When the device never comes to rest.
    pub fn settle(&mut self) -> Result<Vec<Sent>> {
        let mut wait = 0;
        for _ in 0..1000 {
            match self.bed.pass(wait) {
                Some(due) if due <= self.bed.now + STEP_NS => {
                    wait = due.saturating_sub(self.bed.now);
                }
                _ => return Ok(self.bed.take()),
            }
        }
        bail!("the device never comes to rest")
    }

    /// What one frame brings out.
    ///
    /// # Errors
    /// When the device never comes to rest.
    pub fn packet(&mut self, port: u32, frame: &[u8]) -> Result<Vec<Sent>> {
        self.bed.receive(port, frame);
        self.settle()
    }

    /// What a statement changes; nothing when it is not for the control plane.
    ///
    /// # Errors
    /// What is not as the program says.
    pub fn changes<'a>(&mut self, command: &'a Command) -> Result<Vec<Change<'a>>> {
        let pipeline = self.bed.device.pipeline().expect("loaded");
        Ok(match command {
            Command::Add {
                table,
                priority,
                keys,
                call,
                handle,
            } => {
                let table = tables::table(pipeline, table)?;
                let call = tables::call(pipeline, table, call)?;
                let key = tables::key(pipeline, table, *priority, keys)?;
                if let Some(name) = handle {
                    self.names.insert(name.clone(), (table, key.clone()));
                }
                let insert = |action| {
                    let entry = Entry {
                        key,
                        action,
                        idle_timeout: 0,
                        cookie: 0,
                    };
                    Change::Insert(table, entry)
                };
                let Some(profile) = pipeline.table_schema(table).profile else {
                    return Ok(vec![insert(EntryAction::Direct(call))]);
                };
                let next = self.members.entry(profile).or_default();
                let member = *next;
                *next += 1;
                let made = Change::Member(profile, member, call);
                vec![made, insert(EntryAction::Member(member))]
            }
            Command::SetDefault { table, call } => {
                let table = tables::table(pipeline, table)?;
                vec![Change::SetDefault(
                    table,
                    tables::call(pipeline, table, call)?,
                )]
            }
            Command::RemoveAll => {
                let all = pipeline.schema().tables.iter().map(|t| t.id);
                let ours = all.filter(|t| !pipeline.table(*t).is_const());
                ours.map(Change::Clear).collect()
            }
            Command::Cli(words) => vec![Change::Cli(words)],
            Command::Packet { .. }
            | Command::Expect { .. }
            | Command::CheckCounter { .. }
            | Command::NoPacket
            | Command::Wait => Vec::new(),
        })
    }

    /// # Errors
    /// Why the switch refuses it.
    pub fn apply(&mut self, change: &Change) -> Result<()> {
        let now = self.bed.now;
        let pipeline = self.pipeline_mut();
        match change {
            Change::Member(profile, member, call) => {
                pipeline
                    .profile_mut(*profile)
                    .insert_member(*member, call)?;
            }
            Change::Insert(table, entry) => pipeline.table_insert(*table, entry, now)?,
            Change::SetDefault(table, call) => {
                pipeline.table_mut(*table).set_default(Some(call))?
            }
            Change::Clear(table) => {
                pipeline.table_clear(*table)?;
                let own = pipeline.table_schema(*table).const_entries.clone();
                for entry in own.iter().flatten() {
                    pipeline.table_insert(*table, entry, now)?;
                }
            }
            Change::Cli(words) => self.cli(words)?,
        }
        Ok(())
    }

    /// Packets and bytes of a counter: of an element, or of an entry by its handle (`$A`).
    fn counter(&self, name: &str, index: &str) -> Result<(u64, u64)> {
        let pipeline = self.pipeline();
        let Some(handle) = index.strip_prefix('$') else {
            let counter = tables::counter(pipeline, name)?;
            return Ok(pipeline.counter_get(counter, number(index, "index")?)?);
        };
        let entry = self.names.get(handle);
        let (table, key) = entry.with_context(|| format!("no entry has the name `{handle}`"))?;
        let direct = pipeline.table_schema(*table).direct_counter.as_deref();
        let is_it = direct.is_some_and(|direct| tables::is_named(direct, name));
        let has = direct.map_or("no direct counter".to_string(), |d| format!("`{d}`"));
        ensure!(
            is_it,
            "the table of entry `{handle}` has {has}, not `{name}`"
        );
        Ok(pipeline.table(*table).count(key)?)
    }

    /// # Errors
    /// When the counter is another one than the check wants, or is not there.
    pub fn check_counter(&self, name: &str, index: &str, check: &Option<Check>) -> Result<()> {
        let (packets, bytes) = self.counter(name, index)?;
        let Some(Check {
            bytes: of_bytes,
            relation,
            number,
        }) = check
        else {
            return Ok(());
        };
        let value = if *of_bytes { bytes } else { packets };
        let mut relations = RELATIONS.iter();
        let holds = relations.any(|(text, holds)| text == relation && holds(value.cmp(number)));
        ensure!(
            holds,
            "counter {name}({index}) is {value}, expected {relation} {number}"
        );
        Ok(())
    }

    fn cli(&mut self, words: &[String]) -> Result<()> {
        let text = |i: usize| words.get(i).context("an argument is missing");
        let number = |i: usize| number::<u32>(text(i)?, "number");
        let replication = self.bed.device.replication_mut();
        let no_group = |id| format!("there is no multicast group {id}");
        match words[0].as_str() {
            "mirroring_add" => {
                let port = number(2)?;
                let replicas = vec![Replica { port, instance: 0 }];
                replication.insert(session(number(1)?, replicas))?;
            }
            "mirroring_add_mc" => {
                let id = number(2)?;
                let group = replication.group(id).with_context(|| no_group(id))?;
                let session = session(number(1)?, group.replicas.clone());
                replication.insert(session)?;
            }
            "mirroring_delete" => replication.delete::<CloneSession>(number(1)?)?,
            "mc_mgrp_create" => replication.insert(MulticastGroup {
                id: number(1)?,
                replicas: Vec::new(),
            })?,
            "mc_node_create" => {
                let instance = number(1)? as u16;
                let replica = |i| {
                    Ok(Replica {
                        port: number(i)?,
                        instance,
                    })
                };
                let node: Result<_> = (2..words.len()).map(replica).collect();
                self.nodes.push(node?);
            }
            "mc_node_associate" => {
                let (id, node) = (number(1)?, number(2)? as usize);
                let group = replication.group(id).cloned();
                let mut group = group.with_context(|| no_group(id))?;
                let node = self.nodes.get(node);
                let node = node.with_context(|| format!("there is no node {}", words[2]))?;
                group.replicas.extend(node);
                replication.modify(group)?;
            }
            // They print, and p4c's driver does not look.
            "register_read" | "counter_read" | "mirroring_get" | "meter_get_rates" => {}
            command => {
                let name = text(1)?;
                let pipeline = self.pipeline_mut();
                match command {
                    "register_write" => {
                        let (index, value) = (number(2)?, text(3)?);
                        let register = tables::register(pipeline, name)?;
                        let width = pipeline.schema().registers[register.index()].width;
                        pipeline.register_set(register, index, &tables::bits(width, value)?)?;
                    }
                    "register_reset" => {
                        let register = tables::register(pipeline, name)?;
                        let schema = pipeline.schema().registers[register.index()].clone();
                        let zero = Bits::zero(schema.width);
                        for index in 0..schema.size {
                            pipeline.register_set(register, index, &zero)?;
                        }
                    }
                    "counter_write" => {
                        let (index, packets, bytes) = (number(2)?, number(3)?, number(4)?);
                        let counter = tables::counter(pipeline, name)?;
                        pipeline.counter_set(counter, index, packets.into(), bytes.into())?;
                    }
                    "meter_set_rates" => {
                        let (index, rates) = (number(2)?, meter_rates(&words[3..])?);
                        let meter = tables::meter(pipeline, name)?;
                        pipeline.meter_set(meter, index, Some(rates))?;
                    }
                    "meter_array_set_rates" => {
                        let rates = meter_rates(words.get(2..).unwrap_or_default())?;
                        let meter = tables::meter(pipeline, name)?;
                        for index in 0..pipeline.schema().meters[meter.index()].size {
                            pipeline.meter_set(meter, index, Some(rates))?;
                        }
                    }
                    other => bail!("command `{other}` is not supported"),
                }
            }
        }
        Ok(())
    }
}

fn session(id: u32, replicas: Vec<Replica>) -> CloneSession {
    CloneSession {
        id,
        replicas,
        class_of_service: 0,
        packet_length_bytes: 0,
    }
}

/// `rate:burst rate:burst` of simple_switch_CLI, rates in units per microsecond: committed first, then peak.
fn meter_rates(words: &[String]) -> Result<MeterConfig> {
    let pair = |word: &String| {
        let pair = word.split_once(':').and_then(|(rate, burst)| {
            let rate = rate.parse::<f64>().ok()? * 1e6;
            Some((rate.round() as u64, burst.parse().ok()?))
        });
        pair.with_context(|| format!("`{word}` is not rate:burst"))
    };
    let [committed, peak] = words else {
        bail!("two of rate:burst are needed, committed and peak");
    };
    let ((cir, cburst), (pir, pburst)) = (pair(committed)?, pair(peak)?);
    Ok(MeterConfig {
        cir,
        cburst,
        pir,
        pburst,
    })
}

/// A frame that left, and by which port.
pub type Sent = (u32, Vec<u8>);

/// A device, its time, and the frames that left it.
pub struct Bed {
    pub device: Device,
    /// Virtual time in nanoseconds; never runs backwards.
    pub now: Nanos,
    sent: Wire,
}

struct Wire {
    sent: Vec<Sent>,
    most: usize,
}

impl Transmit for Wire {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        if self.sent.len() < self.most {
            self.sent.push((port, packet.frame().to_vec()));
        }
    }
}

impl Bed {
    /// A device with these ports and no program. Of the frames that nobody takes, only the first `most` are kept.
    ///
    /// # Panics
    /// When a port is given twice, or is none that a device may have.
    pub fn new(
        config: DeviceConfig,
        ports: impl IntoIterator<Item = u32>,
        port: PortConfig,
        most: usize,
    ) -> Bed {
        let mut device = Device::new(config);
        for number in ports {
            device.add_port(number, port).expect("a port");
        }
        let sent = Wire {
            sent: Vec::new(),
            most,
        };
        Bed {
            device,
            now: 0,
            sent,
        }
    }

    /// Lets so many nanoseconds pass; frames leave. When something is due next.
    pub fn pass(&mut self, time: Nanos) -> Option<Nanos> {
        self.now += time;
        self.device.advance(self.now, &mut self.sent)
    }

    /// A frame comes in at a port, now.
    pub fn receive(&mut self, port: u32, frame: &[u8]) {
        self.device.receive(self.now, port, frame);
    }

    /// What left since it was asked for last.
    pub fn take(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent.sent)
    }
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
        let refusal = |words: &[String]| meter_rates(words).unwrap_err().to_string();
        assert!(refusal(&words[..1]).contains("two of"));
        let wrong = ["a:1".to_string(), "1".to_string()];
        assert!(refusal(&wrong).contains("`a:1` is not rate:burst"));
    }
}
