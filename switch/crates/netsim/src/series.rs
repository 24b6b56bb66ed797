// SPDX-License-Identifier: Apache-2.0
//! Samples at a fixed period, in columns: `t_ns`, `flow/<name>/<what>`, `port/<switch>/<port>/<what>`,
//! `register/<switch>/<register>/<index>`.

use crate::config::Sample;
use crate::error::{listed, ConfigError};
use crate::hosts::Hosts;
use crate::machine::RealHosts;
use device::Nanos;
use fabric::Switch;
use v1model::{Pipeline, RegisterId};

/// Rows that a column has room for at first.
const ROWS: usize = 4_096;

/// Of each TCP flow; all but `received_bytes`, what its receiver has read, of the connection in use, 0 without one.
const FLOW_COLUMNS: [&str; 5] = ["cwnd", "ssthresh", "srtt_ns", "received_bytes", "in_flight"];

/// Where the values of one or more columns come from.
enum Source {
    /// `waiting_packets` and `tx_bytes`.
    Port { switch: usize, port: u32 },
    Register {
        switch: usize,
        register: RegisterId,
        index: u32,
    },
}

/// The sampler and what it has seen.
pub(crate) struct Sampler {
    period: Nanos,
    sources: Vec<Source>,
    columns: Vec<Column>,
    /// By flow, of the row that is made.
    received_bytes: Vec<u64>,
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
        switches: &[Switch],
        hosts: &Hosts,
    ) -> Result<Sampler, ConfigError> {
        let mut sampler = Sampler {
            period: sample.period_ns,
            sources: Vec::new(),
            columns: Vec::new(),
            received_bytes: Vec::new(),
        };
        sampler.add_column("t_ns".to_owned());
        for flow in hosts.flows.iter().filter(|flow| !flow.app.is_udp()) {
            for what in FLOW_COLUMNS {
                sampler.add_column(format!("flow/{}/{what}", flow.counts.flow));
            }
        }
        let find = |name: &str| switches.iter().position(|s| s.name == name);
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
            let Some(switch) = find(&sampled.switch) else {
                continue;
            };
            let here = format!("sample.registers[{i}]");
            let pipeline = switches[switch].device.pipeline().ok_or_else(|| {
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
                    switch,
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
    pub(crate) fn sample(
        &mut self,
        now: Nanos,
        switches: &[Switch],
        hosts: &Hosts,
        machine: Option<&RealHosts>,
    ) {
        let mut columns = self.columns.iter_mut();
        let mut push = |value: u64| {
            if let Some(column) = columns.next() {
                column.values.push(value);
            }
        };
        push(now);
        self.received_bytes.clear();
        self.received_bytes
            .extend(hosts.flows.iter().map(|flow| flow.counts.received_bytes));
        for end in hosts.sockets.iter().filter(|end| !end.is_sender) {
            self.received_bytes[end.flow as usize] += end.connection.received_bytes();
        }
        for (place, (flow, received_bytes)) in
            hosts.flows.iter().zip(&self.received_bytes).enumerate()
        {
            if flow.app.is_udp() {
                continue;
            }
            if let Some(real) = machine.and_then(|machine| machine.flow(place)) {
                push(real.cwnd_packets.into());
                push(real.ssthresh_packets.into());
                push(real.srtt_ns);
                push(real.received_bytes());
                push(real.in_flight.into());
                continue;
            }
            let end = flow.current.and_then(|slot| hosts.sockets.get(slot));
            let sender = end.map(|end| end.connection.sender()).unwrap_or_default();
            push(sender.snd_cwnd.into());
            push(sender.snd_ssthresh.into());
            push(sender.srtt_ns);
            push(*received_bytes);
            push(sender.in_flight.into());
        }
        for source in &self.sources {
            match *source {
                Source::Port { switch, port } => {
                    let switch = &switches[switch];
                    push(
                        switch
                            .device
                            .port_usage(port)
                            .map_or(0, |usage| usage.packets),
                    );
                    push(switch.device.port_stats(port).map_or(0, |s| s.tx_bytes));
                }
                Source::Register {
                    switch,
                    register,
                    index,
                } => {
                    let pipeline = switches[switch].device.pipeline();
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
