// SPDX-License-Identifier: Apache-2.0
//! Samples at a fixed period, in columns: `t_ns`, `flow/<name>/<what>`, `port/<switch>/<port>/<what>`,
//! `register/<switch>/<register>/<index>`.

use crate::calendar::EntityId;
use crate::config::Sample;
use crate::error::{listed, ConfigError};
use crate::region::{Member, Region};
use device::Nanos;
use v1model::{Pipeline, RegisterId};

/// Rows that a column has room for at first.
const ROWS: usize = 4_096;

/// Of each TCP flow; all but `received_bytes`, what its receiver has read, of the connection in use, 0 without one.
const FLOW_COLUMNS: [&str; 5] = ["cwnd", "ssthresh", "srtt_ns", "received_bytes", "in_flight"];

/// Where the values of one or more columns come from.
enum Source {
    /// `waiting_packets` and `tx_bytes`.
    Port { switch: Member, port: u32 },
    Register {
        switch: Member,
        register: RegisterId,
        index: u32,
    },
}

/// The sampler and what it has seen.
pub(crate) struct Sampler {
    pub(crate) entity: EntityId,
    period: Nanos,
    sources: Vec<Source>,
    columns: Vec<Column>,
    /// By region and flow, of the row that is made.
    received_bytes: Vec<Vec<u64>>,
}

struct Column {
    name: String,
    values: Vec<u64>,
}

impl Sampler {
    /// # Errors
    /// [`ConfigError`] for a register that the switch's program does not have.
    pub(crate) fn new(
        sample: &Sample,
        entity: EntityId,
        regions: &[Region],
        (switches, flows): (&[Member], &[Member]),
    ) -> Result<Sampler, ConfigError> {
        let mut sampler = Sampler {
            entity,
            period: sample.period_ns,
            sources: Vec::new(),
            columns: Vec::new(),
            received_bytes: vec![Vec::new(); regions.len()],
        };
        sampler.add_column("t_ns".to_owned());
        let flows = flows
            .iter()
            .map(|at| &regions[at.region].hosts.flows[at.index]);
        for flow in flows.filter(|flow| !flow.app.is_udp()) {
            for what in FLOW_COLUMNS {
                sampler.add_column(format!("flow/{}/{what}", flow.counts.flow));
            }
        }
        let switch = |at: &Member| &regions[at.region].switches[at.index];
        let find = |name: &str| switches.iter().copied().find(|at| switch(at).name == name);
        for sampled in &sample.ports {
            let Some(switch) = find(&sampled.switch) else {
                continue; // checked with the configuration
            };
            for what in ["waiting_packets", "tx_bytes"] {
                let name = format!("port/{}/{}/{what}", sampled.switch, sampled.port);
                sampler.add_column(name);
            }
            let port = sampled.port;
            sampler.sources.push(Source::Port { switch, port });
        }
        for (i, sampled) in sample.registers.iter().enumerate() {
            let Some(at) = find(&sampled.switch) else {
                continue;
            };
            let here = format!("sample.registers[{i}]");
            let pipeline = switch(&at).device.pipeline().ok_or_else(|| {
                let message = format!("switch \"{}\" starts without a program", sampled.switch);
                ConfigError::new(format!("{here}.register"), message)
            })?;
            let register = find_register(pipeline, &sampled.register)
                .map_err(|message| ConfigError::new(format!("{here}.register"), message))?;
            for (j, &index) in sampled.indices.iter().enumerate() {
                pipeline
                    .register_get(register, index)
                    .map_err(|e| ConfigError::new(format!("{here}.indices[{j}]"), e.message))?;
                let (switch_name, register_name) = (&sampled.switch, &sampled.register);
                sampler.add_column(format!("register/{switch_name}/{register_name}/{index}"));
                sampler.sources.push(Source::Register {
                    switch: at,
                    register,
                    index,
                });
            }
        }
        Ok(sampler)
    }

    fn add_column(&mut self, name: String) {
        let values = Vec::with_capacity(ROWS);
        self.columns.push(Column { name, values });
    }

    pub(crate) fn next(&self, now: Nanos) -> Option<Nanos> {
        now.checked_add(self.period)
    }

    /// One row.
    pub(crate) fn sample(&mut self, now: Nanos, regions: &[Region], flows: &[Member]) {
        let mut columns = self.columns.iter_mut();
        let mut push = |value: u64| {
            if let Some(column) = columns.next() {
                column.values.push(value);
            }
        };
        push(now);
        for (region, received_bytes) in regions.iter().zip(&mut self.received_bytes) {
            region.hosts.received_bytes(received_bytes);
        }
        for (place, at) in flows.iter().enumerate() {
            let hosts = &regions[at.region].hosts;
            let flow = &hosts.flows[at.index];
            if flow.app.is_udp() {
                continue;
            }
            if let Some(real) = regions[0].machine.as_ref().and_then(|m| m.flow(place)) {
                let latest = real.latest();
                push(latest.cwnd_packets.into());
                push(real.ssthresh_packets.into());
                push(latest.srtt_ns);
                push(latest.received_bytes);
                push(real.in_flight.into());
                continue;
            }
            let end = flow.current.and_then(|slot| hosts.sockets.get(slot));
            let sender = end.map(|end| end.connection.sender()).unwrap_or_default();
            push(sender.snd_cwnd.into());
            push(sender.snd_ssthresh.into());
            push(sender.srtt_ns);
            let receiver = flow.receiver_in.unwrap_or(*at);
            push(self.received_bytes[receiver.region][receiver.index]);
            push(sender.in_flight.into());
        }
        for source in &self.sources {
            match *source {
                Source::Port { switch, port } => {
                    let switch = &regions[switch.region].switches[switch.index];
                    let machine = regions[0].machine.as_ref();
                    if let Some(line) = machine.and_then(|m| m.line(&switch.name, port)) {
                        push(line.waiting_packets);
                        push(line.sent_bytes);
                        continue;
                    }
                    let waiting = switch.device.port_usage(port);
                    push(waiting.map_or(0, |usage| usage.packets));
                    push(switch.device.port_stats(port).map_or(0, |s| s.tx_bytes));
                }
                Source::Register {
                    switch,
                    register,
                    index,
                } => {
                    let switch = &regions[switch.region].switches[switch.index];
                    let pipeline = switch.device.pipeline();
                    let value = pipeline.and_then(|p| p.register_get(register, index).ok());
                    push(value.and_then(|bits| bits.to_u64()).unwrap_or(0));
                }
            }
        }
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.columns
            .iter()
            .map(|column| (column.name.as_str(), column.values.as_slice()))
    }
}

/// A register by its full name, or by its last part where that is unique.
fn find_register(pipeline: &Pipeline, name: &str) -> Result<RegisterId, String> {
    if let Some(register) = pipeline.find_register(name) {
        return Ok(register);
    }
    let registers = &pipeline.schema().registers;
    let mut alike = registers
        .iter()
        .filter(|register| register.name.rsplit('.').next() == Some(name));
    match (alike.next(), alike.next()) {
        (Some(register), None) => Ok(register.id),
        (Some(_), Some(_)) => Err(format!("\"{name}\" is the end of several names")),
        _ => Err(format!(
            "the program has no register \"{name}\"; it has: {}",
            listed(registers.iter().map(|register| register.name.as_str()))
        )),
    }
}
