// SPDX-License-Identifier: Apache-2.0
//! The command line.

use crate::port_options::PortOptions;
use clap::Parser;
use device::config::PORT_MAX;
use netio::PortBinding;
use std::net::SocketAddr;
use std::path::PathBuf;
use v1model::Engine;
use wire::setup::LoopOptions;

/// A v1model switch on Linux interfaces, controlled by P4Runtime.
#[derive(Parser, Debug, Clone)]
#[command(name = "fairlane-switch", version)]
pub struct Options {
    /// Device id that P4Runtime clients name
    #[arg(long, default_value_t = 1)]
    pub device_id: u64,
    /// Address of the P4Runtime server; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:50051", value_name = "ADDRESS:PORT")]
    pub grpc: SocketAddr,
    /// Certificate of the server, PEM (a chain may follow); the server then speaks TLS only
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// CA of the clients, PEM: a client without a certificate that it signed is refused
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Beyond loopback too, serve clients without a certificate: TLS then encrypts, and whoever reaches the port may write
    #[arg(long, requires = "tls_cert", conflicts_with = "tls_client_ca")]
    pub any_client: bool,
    /// Port of packet-in and packet-out
    #[arg(long, default_value_t = 510, value_parser = clap::value_parser!(u32).range(0..=PORT_MAX as i64))]
    pub cpu_port: u32,
    /// P4 program to start with: BMv2 JSON made by p4c; without it frames are dropped until P4Runtime brings one
    #[arg(long, value_name = "FILE.json", requires = "p4info")]
    pub pipeline: Option<PathBuf>,
    /// P4Info of that program, text format
    #[arg(long, value_name = "FILE.p4info.txtpb", requires = "pipeline")]
    pub p4info: Option<PathBuf>,
    /// What runs the program: native (machine code, made when it is loaded; where that is not possible, the interpreter) or interpreter;
    /// native when neither this nor the variable FAIRLANE_ENGINE says otherwise
    #[arg(long)]
    pub engine: Option<Engine>,
    /// Seed of the program's random() and random selectors, together with the device id; drawn and logged when not given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Memory that a program may take, with its tables, counters, meters and registers when they are full
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = parse_memory)]
    pub program_memory: u64,
    /// Interface of a port, as in 1@s1-eth1; may be given often
    #[arg(short, long = "interface", value_name = "PORT@INTERFACE", value_parser = parse_binding)]
    pub interface: Vec<PortBinding>,
    /// Options of a port, as in 2:rate=51.84Mbit,link_layer=atm,scheduler=wrr,queues=16,port_cells=4000
    #[arg(long = "port", value_name = "PORT:KEY=VALUE,...", value_parser = PortOptions::parse)]
    pub port: Vec<PortOptions>,
    /// Print the program's log_msg lines
    #[arg(long)]
    pub log_msg: bool,
    /// File descriptor to write the line "ready" to, and close, when the switch serves
    #[arg(long, value_name = "N")]
    pub ready_fd: Option<i32>,
    /// Unix-domain socket through which ports are changed and read while the switch runs
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    #[command(flatten)]
    pub process: ProcessOptions,
}

/// All switches and links of a topology in one process; frames between two switches do not leave it
#[derive(Parser, Debug)]
pub struct NetworkOptions {
    /// The switches, each with its name and its arguments, and the links, as JSON
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Unix-domain socket through which links are changed and read, and switches stopped and started
    #[arg(long, value_name = "SOCKET")]
    pub control: PathBuf,
    /// Seed of the links' chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Most frames on all links together (64 to 1048576)
    #[arg(long, default_value_t = 131_072, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    pub frames: u64,
    #[command(flatten)]
    pub process: ProcessOptions,
}

/// Of one switch and of a network alike; what the arguments of a network's switch say of it does nothing.
#[derive(clap::Args, Debug, Clone)]
pub struct ProcessOptions {
    /// File to write the ready line to when the switches serve and the links carry frames
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Least severe messages to print: error, warn, info, debug or trace
    #[arg(long, default_value = "info")]
    pub log_level: tracing::Level,
    /// Form of the messages on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub packets: LoopOptions,
}

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// An object a line: timestamp, level, target (where), message, fields.
    Json,
}

/// A size of memory: a whole number of KiB, MiB or GiB.
fn parse_memory(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1u64 << 30)];
    let in_unit = |(unit, bytes): (&str, u64)| {
        let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(bytes).filter(|&bytes| bytes > 0)
    };
    let bytes = units.into_iter().find_map(in_unit);
    bytes.ok_or_else(|| format!("\"{text}\" is not a size of memory such as 512MiB or 4GiB"))
}

fn parse_binding(text: &str) -> Result<PortBinding, String> {
    let (port, interface) = text
        .split_once('@')
        .ok_or_else(|| format!("\"{text}\" is not PORT@INTERFACE, as in 1@s1-eth1"))?;
    Ok(PortBinding {
        port: parse_port(port)?,
        interface: interface.to_owned(),
    })
}

/// A port number.
pub fn parse_port(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(port) if port <= PORT_MAX => Ok(port),
        _ => Err(format!(
            "\"{text}\" is not a port number from 0 to {PORT_MAX}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_port_at_interface() {
        assert_eq!(
            parse_binding("3@s1-eth3"),
            Ok(PortBinding {
                port: 3,
                interface: "s1-eth3".to_owned()
            })
        );
        assert!(parse_binding("s1-eth3")
            .unwrap_err()
            .contains("PORT@INTERFACE"));
        assert!(parse_binding("511@x").unwrap_err().contains("0 to 510"));
    }

    #[test]
    fn memory_is_a_number_of_binary_units() {
        assert_eq!(parse_memory("512MiB"), Ok(512 << 20));
        assert_eq!(parse_memory("4GiB"), Ok(4 << 30));
        for text in ["", "1", "1GB", "-1GiB", "0KiB", "18446744073709551615GiB"] {
            assert!(
                parse_memory(text).unwrap_err().contains("512MiB or 4GiB"),
                "{text}"
            );
        }
        let options = Options::try_parse_from(["fairlane-switch"]).unwrap();
        assert_eq!(options.program_memory, v1model::BUDGET_BYTES);
    }

    #[test]
    fn the_command_line_of_the_design_is_accepted() {
        let options = Options::try_parse_from(
            "fairlane-switch --device-id 1 --grpc 127.0.0.1:50051 --cpu-port 510 -i 1@s1-eth1 -i 2@s1-eth2 \
             --port 2:rate=2Mbit,queue_packets=50,queues=8 --log-level info --ready-fd 3"
                .split_whitespace(),
        )
        .unwrap();
        assert_eq!(options.interface.len(), 2);
        assert_eq!(options.port[0].config.rate_bps, 2_000_000);
        assert_eq!(options.port[0].config.queue_limits.packets, 50);
    }
}
