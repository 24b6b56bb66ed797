// SPDX-License-Identifier: Apache-2.0
//! Random walks of one device: traffic and every change that can end a packet, each step followed by a comparison of what the
//! program counts with what waits.

use device::{
    Accounts, Device, DeviceConfig, DropReason, LinkLayer, Packet, PortConfig, QueueLimits,
    SchedulerKind, Transmit,
};
use std::collections::{BTreeMap, BTreeSet};
use v1model::{
    ActionCall, Bits, Entry, EntryAction, EntryKey, ErrorKind, FieldRef, KeyMatch, Pipeline,
};

/// Ports that are there, beside the CPU port.
pub const PORTS: [u32; 3] = [1, 2, 3];
/// A port that is not there.
pub const NOWHERE: u32 = 77;
pub const CPU: u32 = 510;
pub const DROP: u32 = 511;

/// A field of a key: value, and what else its kind needs.
#[derive(Clone, Copy, Debug)]
pub enum Match {
    Exact(u64),
    Lpm(u64, u32),
    Ternary(u64, u64),
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Nanoseconds go by.
    Wait(u64),
    /// A frame comes in.
    Frame(u32, Vec<u8>),
    /// The interface goes up or down.
    Link(u32, bool),
    /// Other options of a port; queues are never fewer.
    Port(u32, PortConfig),
    /// An entry is inserted or modified; without an action it is deleted. No matches: the default action.
    Write(
        &'static str,
        Vec<Match>,
        i32,
        Option<(&'static str, Vec<u64>)>,
    ),
    /// Frames are lost at reception.
    Lost(u32, u64),
    /// What waits is flushed.
    Flush,
    /// The same program again, which takes over the state.
    Reconcile,
    /// The same program again, empty.
    Reload,
}

/// What a program counts.
pub struct Counted {
    pub program: &'static str,
    /// Not 0 in a packet that was counted in.
    pub flag: &'static str,
    /// Registers by what the metadata `slot` names, and the field that is added, None for one a packet.
    pub of_slots: &'static [(&'static str, Option<&'static str>)],
    /// Registers by the metadata `port`.
    pub of_ports: &'static [(&'static str, Option<&'static str>)],
}

/// A device on its way.
pub struct Walk {
    counted: &'static Counted,
    device: Device,
    now: u64,
    interfaces: Interfaces,
    /// Cells that were ever more than 0.
    seen: BTreeSet<(&'static str, u64)>,
}

/// Every eleventh frame is not taken.
#[derive(Default)]
struct Interfaces {
    offered: u64,
    taken: u64,
    failed: Vec<(u32, u64)>,
}

impl Transmit for Interfaces {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: u64) {
        self.offered += 1;
        match self.offered % 11 {
            0 => self.failed.push((port, packet.frame().len() as u64)),
            _ => self.taken += 1,
        }
    }
}

impl Walk {
    pub fn new(counted: &'static Counted) -> Walk {
        let mut device = Device::new(DeviceConfig {
            buffer: QueueLimits {
                bytes: 30_000,
                ..QueueLimits::packets(40)
            },
            events_max: 8,
            ..DeviceConfig::default()
        });
        for port in PORTS {
            let config = PortConfig {
                rate_bps: 2_000_000,
                queue_limits: QueueLimits::packets(15),
                ..PortConfig::default()
            };
            device.add_port(port, config).unwrap();
        }
        device.load(0, pipeline(counted));
        Walk {
            counted,
            device,
            now: 0,
            interfaces: Interfaces::default(),
            seen: BTreeSet::new(),
        }
    }

    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Wait(ns) => self.now += ns,
            Step::Frame(port, bytes) => self.device.receive(self.now, *port, bytes),
            Step::Link(port, up) => self.device.set_port_up(*port, *up),
            Step::Port(port, config) => {
                let queues = config.queues.max(self.device.port(*port).unwrap().queues);
                let config = PortConfig { queues, ..*config };
                self.device.set_port(self.now, *port, config).unwrap();
            }
            Step::Write(table, matches, priority, action) => {
                let pipeline = self.device.pipeline_mut().unwrap();
                write(pipeline, table, matches, *priority, action.as_ref());
            }
            Step::Lost(port, frames) => {
                let reason = DropReason::RingFull;
                self.device.count_reception_losses(*port, reason, *frames);
            }
            Step::Flush => {
                self.device.flush(self.now);
            }
            Step::Reconcile => {
                // As P4Runtime's RECONCILE_AND_COMMIT.
                self.device.flush(self.now);
                let mut next = pipeline(self.counted);
                let old = self.device.pipeline_mut().unwrap();
                let mut takeover = next.takeover(old.schema());
                next.begin(&mut takeover, old);
                while let Some(piece) = takeover.read(old, 128) {
                    next.take(piece).unwrap();
                }
                next.take_arrays(&takeover, old);
                self.device.load(self.now, next);
            }
            Step::Reload => {
                self.device.load(self.now, pipeline(self.counted));
            }
        }
        self.advance(self.now);
        let mut events = Vec::new();
        // Sometimes the control plane is too slow for its packet-ins.
        if self.now.is_multiple_of(3) {
            self.device.take_events(&mut events);
        }
    }

    fn advance(&mut self, now: u64) {
        self.device.advance(now, &mut self.interfaces);
        for (port, bytes) in self.interfaces.failed.drain(..) {
            self.device.count_transmit_failures(port, 1, bytes);
        }
    }

    /// What waits and was counted in, by register and index.
    fn waiting(&self) -> BTreeMap<(&'static str, u64), u64> {
        let pipeline = self.device.pipeline().unwrap();
        let field = |name| field(pipeline, name);
        let (flag, slot, port) = (field(self.counted.flag), field("slot"), field("port"));
        let mut found = BTreeMap::new();
        let ports = self.device.ports();
        for packet in ports.flat_map(|port| self.device.waiting_packets(port)) {
            if pipeline.field_get(packet, flag) == 0 {
                continue;
            }
            for (registers, index) in [(self.counted.of_slots, slot), (self.counted.of_ports, port)]
            {
                for (register, amount) in registers {
                    let amount = amount.map_or(1, |name| pipeline.field_get(packet, field(name)));
                    let index = pipeline.field_get(packet, index);
                    *found.entry((*register, index)).or_default() += amount;
                }
            }
        }
        found
    }

    /// Whether the program counts what waits, and every packet is accounted for.
    pub fn compare(&mut self) -> Result<(), String> {
        let waiting = self.waiting();
        self.seen.extend(waiting.keys());
        let ports = PORTS.into_iter().chain([0, NOWHERE, CPU, DROP]);
        for port in ports {
            let of_ports = self.counted.of_ports.iter();
            self.seen
                .extend(of_ports.map(|(name, _)| (*name, port.into())));
        }
        for (register, index) in &self.seen {
            let counts = cell(&self.device, register, *index);
            let waits = waiting.get(&(*register, *index)).copied().unwrap_or(0);
            if counts != waits {
                return Err(format!("{register}[{index}] is {counts}, and {waits} wait"));
            }
        }
        let Accounts {
            received,
            copied,
            transmitted,
            packet_ins,
            dropped,
            waiting,
            on_line,
        } = self.device.accounts();
        if received + copied != transmitted + dropped + waiting + on_line
            || transmitted - packet_ins != self.interfaces.taken
        {
            return Err(format!("{:?}", self.device.accounts()));
        }
        Ok(())
    }

    /// All links up, and time enough: nothing waits, and no cell of any register counts anything.
    pub fn end(mut self) -> Result<(), String> {
        for port in PORTS {
            self.device.set_port_up(port, true);
        }
        self.advance(self.now + 3_600_000_000_000);
        self.compare()?;
        let accounts = self.device.accounts();
        if accounts.waiting + accounts.on_line != 0 {
            return Err(format!("at the end {accounts:?}"));
        }
        for (register, _) in self.counted.of_slots.iter().chain(self.counted.of_ports) {
            let pipeline = self.device.pipeline().unwrap();
            let id = pipeline
                .find_register(&register_name(pipeline, register))
                .unwrap();
            for index in 0..pipeline.schema().registers[id.index()].size {
                let left = cell(&self.device, register, index.into());
                if left != 0 {
                    return Err(format!("{register}[{index}] is {left} at the end"));
                }
            }
        }
        Ok(())
    }
}

fn pipeline(counted: &Counted) -> Pipeline {
    let path = format!(
        "{}/../../../p4src/compiled/{}.json",
        env!("CARGO_MANIFEST_DIR"),
        counted.program
    );
    Pipeline::from_json(&std::fs::read(path).unwrap()).unwrap()
}

fn field(pipeline: &Pipeline, name: &str) -> FieldRef {
    let found = pipeline.field_by_name(name);
    found.unwrap_or_else(|| panic!("the program has no metadata {name}"))
}

fn ends_with(full: &str, name: &str) -> bool {
    full.rsplit('.').next() == Some(name)
}

fn register_name(pipeline: &Pipeline, name: &str) -> String {
    let mut registers = pipeline.schema().registers.iter();
    let found = registers.find(|r| ends_with(&r.name, name));
    found.expect("the program has the register").name.clone()
}

fn cell(device: &Device, register: &str, index: u64) -> u64 {
    let pipeline = device.pipeline().unwrap();
    let id = pipeline
        .find_register(&register_name(pipeline, register))
        .unwrap();
    pipeline
        .register_get(id, index as u32)
        .unwrap()
        .to_u64()
        .unwrap()
}

/// Writes an entry; that it is there already, or not there, is no error.
fn write(
    pipeline: &mut Pipeline,
    table: &str,
    matches: &[Match],
    priority: i32,
    action: Option<&(&'static str, Vec<u64>)>,
) {
    let schema = pipeline.schema();
    let table = schema.tables.iter().find(|t| ends_with(&t.name, table));
    let schema = table.expect("the program has the table");
    let id = pipeline.find_table(&schema.name).unwrap();
    let of_key = |(one, key): (&Match, &v1model::KeySchema)| {
        let bits = |value| Bits::from_u64(key.width, value).unwrap();
        match *one {
            Match::Exact(value) => KeyMatch::Exact(bits(value)),
            Match::Lpm(value, prefix_len) => KeyMatch::Lpm {
                value: bits(value),
                prefix_len,
            },
            Match::Ternary(value, mask) => KeyMatch::Ternary {
                value: bits(value & mask),
                mask: bits(mask),
            },
        }
    };
    assert_eq!(matches.len(), schema.keys.len(), "{}", schema.name);
    let matches: Vec<_> = matches.iter().zip(&schema.keys).map(of_key).collect();
    let key = EntryKey { matches, priority };
    let call = action.map(|(name, args)| {
        let mut actions = schema.actions.iter();
        let found = actions.find(|a| ends_with(&pipeline.action_schema(**a).name, name));
        let action = *found.expect("the table has the action");
        let params = &pipeline.action_schema(action).params;
        assert_eq!(args.len(), params.len(), "{name}");
        let args = args.iter().zip(params);
        let args = args.flat_map(|(value, p)| Bits::from_u64(p.width, *value).unwrap().to_limbs());
        let args = args.collect();
        ActionCall { action, args }
    });
    let no_key = key.matches.is_empty();
    let written = match call {
        call if no_key => pipeline.table_mut(id).set_default(call.as_ref()),
        None => pipeline.table_delete(id, &key).map(drop),
        Some(call) => {
            let entry = Entry {
                key,
                action: EntryAction::Direct(call),
                idle_timeout: 0,
                cookie: 0,
            };
            match pipeline.table_insert(id, &entry, 0) {
                Err(e) if e.kind == ErrorKind::AlreadyExists => {
                    pipeline.table_modify(id, &entry, 0).map(drop)
                }
                other => other,
            }
        }
    };
    match written {
        Err(e) if e.kind != ErrorKind::NotFound => panic!("{}", e.message),
        _ => {}
    }
}

/// What a frame is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub vids: [Option<u16>; 2],
    pub ether_type: u16,
    pub src: u8,
    pub dst: u8,
    pub src_port: u16,
    pub tos: u8,
    pub len: usize,
}

/// A frame with right lengths and checksums where it is IPv4.
pub fn frame(shape: Shape) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, shape.src];
    for vid in shape.vids.into_iter().flatten() {
        frame.extend([0x81, 0]);
        frame.extend((vid | 3 << 13).to_be_bytes());
    }
    frame.extend(shape.ether_type.to_be_bytes());
    let l2 = frame.len();
    frame.resize(shape.len.max(l2 + 40), 0);
    if shape.ether_type != 0x0800 {
        frame[l2 + 2] = shape.src;
        return frame;
    }
    let total = (frame.len() - l2) as u16;
    let ip = &mut frame[l2..];
    ip[0] = 0x45;
    ip[1] = shape.tos;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[8..10].copy_from_slice(&[64, 6]);
    ip[12..20].copy_from_slice(&[10, 0, 1, shape.src, 10, 0, 0, shape.dst]);
    let sum: u32 = ip[..20]
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    ip[20..22].copy_from_slice(&shape.src_port.to_be_bytes());
    ip[22..24].copy_from_slice(&5001u16.to_be_bytes());
    ip[32] = 0x50;
    frame
}

/// A packet-out for a port: the program's header, 9 bits of port and 7 of nothing, before the frame.
pub fn packet_out(port: u32, frame: &[u8]) -> Vec<u8> {
    let mut bytes = ((port << 7) as u16).to_be_bytes().to_vec();
    bytes.extend(frame);
    bytes
}

/// A link's probe on its way out, as a controller makes it.
pub fn probe(nonce: u8) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 9, 0x88, 0xb5, 0xfa, 0x1a, 1, 0, 0, 0, 0, nonce,
    ];
    frame.resize(60, 0);
    frame
}

/// Options of a port that the walks use.
pub fn port_config(rate: usize, packets: u64, port_packets: u64, scheduler: usize) -> PortConfig {
    PortConfig {
        rate_bps: [500_000, 2_000_000, 10_000_000, 0][rate],
        link_layer: LinkLayer::None,
        scheduler: [
            SchedulerKind::Strict,
            SchedulerKind::Wrr,
            SchedulerKind::Drr,
        ][scheduler],
        queues: 8,
        queue_limits: QueueLimits::packets(packets),
        port_limits: QueueLimits::packets(port_packets),
    }
}
