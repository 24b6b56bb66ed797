// SPDX-License-Identifier: Apache-2.0
//! The command line, checked before anything is opened.

use crate::send::Plan;
use apps::{App, Bytes, CbrUdp, Distribution, Interactive, OnOff, Video, Web};
use clap::builder::RangedU64ValueParser;
use clap::{value_parser, Args, Parser, Subcommand, ValueEnum};
use std::net::{IpAddr, SocketAddr};

const MSS: std::ops::RangeInclusive<i64> = 88..=65_483;
const DAY_S: f64 = 86_400.0;

/// TCP traffic with the congestion control and TCP_INFO on record.
#[derive(Parser)]
#[command(name = "fairlane-traffic", version)]
pub struct Options {
    #[command(subcommand)]
    pub end: End,
}

#[derive(Subcommand)]
pub enum End {
    /// Send greedy flows or N bytes, sample TCP_INFO
    Send {
        #[command(flatten)]
        tcp: Tcp,
        /// Bytes of each flow (default: greedy)
        #[arg(long, value_parser = positive())]
        bytes: Option<u64>,
    },
    /// N bytes a flow, on a connection that is opened at the start
    Transfer {
        #[command(flatten)]
        tcp: Tcp,
        #[arg(long, value_parser = positive())]
        bytes: u64,
        /// Files of each flow, each on its own connection
        #[arg(long, default_value = "1", value_parser = positive())]
        times: u64,
        /// From asking for one to asking for the next
        #[arg(long = "interval-s", value_name = "SECONDS", default_value = "1", value_parser = seconds(0.001))]
        interval_ns: u64,
        /// Set TCP_NODELAY
        #[arg(long)]
        nodelay: bool,
    },
    /// Transfers at random, each on its own connection
    Web {
        #[command(flatten)]
        tcp: Tcp,
        /// Of each flow; Poisson
        #[arg(long, value_parser = between(0.001, 10_000.0))]
        arrivals_per_s: f64,
        #[arg(long, value_parser = positive())]
        mean_bytes: u64,
        /// Longest transfer (0: no limit)
        #[arg(long, default_value = "0")]
        max_bytes: u64,
        #[command(flatten)]
        chance: Chance,
    },
    /// Greedy while on, silent while off
    Onoff {
        #[command(flatten)]
        tcp: Tcp,
        /// Mean length of on
        #[arg(long = "on-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        on_mean_ns: u64,
        /// Mean length of off
        #[arg(long = "off-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        off_mean_ns: u64,
        #[command(flatten)]
        chance: Chance,
    },
    /// A message of N bytes at a fixed interval
    Interactive {
        #[command(flatten)]
        tcp: Tcp,
        /// Of a message
        #[arg(long, value_parser = positive())]
        bytes: u64,
        #[arg(long = "interval-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        interval_ns: u64,
    },
    /// A video, segment by segment, at the rates that BBA-0 asks for
    Video {
        #[command(flatten)]
        tcp: Tcp,
        /// The ladder, rising, with commas
        #[arg(long, value_delimiter = ',', required = true, value_parser = positive())]
        bitrates_bps: Vec<u64>,
        /// Play time of a segment
        #[arg(long = "segment-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        segment_ns: u64,
        /// Play time that the player holds at most
        #[arg(long = "buffer-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        buffer_ns: u64,
        /// With no more than this the lowest rate
        #[arg(long = "reservoir-s", value_name = "SECONDS", value_parser = seconds(0.0))]
        reservoir_ns: u64,
        /// With this more the highest
        #[arg(long = "cushion-s", value_name = "SECONDS", value_parser = seconds(0.001))]
        cushion_ns: u64,
    },
    /// Datagrams at a constant rate
    Udp {
        #[command(flatten)]
        source: Source,
        /// Of payload, each flow
        #[arg(long, value_parser = positive())]
        rate_bps: u64,
        /// Of a datagram: one frame of an MTU of 1,500
        #[arg(long = "payload", value_parser = value_parser!(u64).range(1..=1472))]
        payload_bytes: u64,
    },
    /// Receive, discard and count
    Sink(Sink),
}

#[derive(Args)]
pub struct Source {
    /// Of the sink
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub to: SocketAddr,
    /// End after this time from the start
    #[arg(long = "seconds", value_name = "SECONDS", value_parser = seconds(0.001))]
    pub seconds_ns: Option<u64>,
    #[arg(long, default_value = "1", value_parser = value_parser!(u16).range(1..=1000))]
    pub flows: u16,
    #[arg(long, default_value = "100", value_parser = positive())]
    pub sample_ms: u64,
    /// File of JSON lines; -: standard output
    #[arg(long, default_value = "-")]
    pub out: String,
    /// CLOCK_MONOTONIC instant of the start
    #[arg(long = "start-at", value_name = "MONOTONIC_NS")]
    pub start_at_ns: Option<u64>,
}

#[derive(Args)]
pub struct Tcp {
    #[command(flatten)]
    pub source: Source,
    /// Variant, on a host that is set for it (or --no-sysctl-check), or the kernel's name; several with commas: each flow's in turn
    #[arg(long, value_delimiter = ',')]
    pub cc: Vec<String>,
    /// Payload bytes of a packet (TCP_MAXSEG)
    #[arg(long, value_parser = value_parser!(u32).range(MSS))]
    pub mss: Option<u32>,
}

#[derive(Args)]
pub struct Chance {
    /// fixed, exponential, pareto, web_search or data_mining
    #[arg(long, default_value = "exponential", value_parser = distribution)]
    distribution: Distribution,
    /// Of pareto, above 1: below there is no mean
    #[arg(long, default_value = "1.2", value_parser = between(1.0 + f64::EPSILON, 100.0))]
    shape: f64,
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// The flows' names, from which their chance follows too
    #[arg(long, value_delimiter = ',', default_value = "flow")]
    pub names: Vec<String>,
}

#[derive(Args)]
pub struct Sink {
    /// 0: any free one, see --ready-file
    #[arg(long)]
    pub port: u16,
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    pub bind: IpAddr,
    /// End after this many connections have ended
    #[arg(long, value_parser = positive())]
    pub connections: Option<u64>,
    #[arg(long, default_value = "100", value_parser = positive())]
    pub sample_ms: u64,
    /// File of JSON lines; -: standard output
    #[arg(long, default_value = "-")]
    pub out: String,
    #[arg(long, value_enum, default_value = "kernel")]
    pub ack: Ack,
    /// The MSS to advertise
    #[arg(long, value_parser = value_parser!(u32).range(MSS))]
    pub mss: Option<u32>,
    /// Most bytes that it offers to take; below 1152 the kernel has its own
    #[arg(long, value_parser = value_parser!(u32).range(1152..=1 << 30))]
    pub window: Option<u32>,
    /// Let data wait so long; 0: read at once
    #[arg(long, default_value = "0", value_parser = between(0.0, 60_000.0))]
    pub read_after_ms: f64,
    /// Count datagrams
    #[arg(long, conflicts_with = "connections")]
    pub udp: bool,
    /// Written with the port number when listening
    #[arg(long)]
    pub ready_file: Option<String>,
}

/// When a sink acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ack {
    /// Delayed as Linux has it
    Kernel,
    /// Delayed from the first segment on
    Delayed,
    /// Each segment
    Every,
}

impl End {
    /// What a sending end is to do. An error is a sentence.
    pub fn plan(self) -> Result<Plan, String> {
        let plan = |tcp, app| Plan {
            tcp,
            app,
            chance: None,
            opens_at_start: false,
        };
        let plan = match self {
            End::Send { tcp, bytes: None } => plan(tcp, App::Greedy),
            End::Send {
                tcp,
                bytes: Some(bytes),
            } => plan(tcp, App::Bytes(file(bytes))),
            End::Transfer {
                tcp,
                bytes,
                times,
                interval_ns,
                nodelay,
            } => {
                let app = Bytes {
                    times,
                    interval_ns,
                    nodelay,
                    ..file(bytes)
                };
                Plan {
                    opens_at_start: true,
                    ..plan(tcp, App::Bytes(app))
                }
            }
            End::Web {
                tcp,
                arrivals_per_s,
                mean_bytes,
                max_bytes,
                chance,
            } => {
                let app = Web {
                    arrivals_per_s,
                    mean_bytes,
                    distribution: chance.distribution,
                    shape: chance.shape,
                    max_bytes,
                };
                Plan {
                    opens_at_start: true,
                    chance: Some(chance),
                    ..plan(tcp, App::Web(app))
                }
            }
            End::Onoff {
                tcp,
                on_mean_ns,
                off_mean_ns,
                chance,
            } => {
                let app = OnOff {
                    on_mean_ns,
                    off_mean_ns,
                    distribution: chance.distribution,
                    shape: chance.shape,
                };
                Plan {
                    chance: Some(chance),
                    ..plan(tcp, App::OnOff(app))
                }
            }
            End::Interactive {
                tcp,
                bytes,
                interval_ns,
            } => plan(tcp, App::Interactive(Interactive { bytes, interval_ns })),
            End::Video {
                tcp,
                bitrates_bps,
                segment_ns,
                buffer_ns,
                reservoir_ns,
                cushion_ns,
            } => {
                if bitrates_bps.len() < 2 || !bitrates_bps.is_sorted_by(|low, high| low < high) {
                    return Err("--bitrates-bps wants two or more rates that rise".into());
                }
                if buffer_ns < reservoir_ns + cushion_ns + segment_ns {
                    return Err("--buffer-s is below reservoir, cushion and a segment".into());
                }
                let app = Video {
                    bitrates_bps,
                    segment_ns,
                    buffer_ns,
                    reservoir_ns,
                    cushion_ns,
                };
                plan(tcp, App::Video(app))
            }
            End::Udp {
                source,
                rate_bps,
                payload_bytes,
            } => {
                let (cc, mss) = (Vec::new(), None);
                let app = CbrUdp {
                    rate_bps,
                    payload_bytes,
                };
                plan(Tcp { source, cc, mss }, App::CbrUdp(app))
            }
            End::Sink(_) => return Err("a sink sends nothing".into()),
        };
        plan.check()
    }
}

fn file(bytes: u64) -> Bytes {
    Bytes {
        bytes,
        times: 1,
        interval_ns: 0,
        nodelay: false,
    }
}

fn positive() -> RangedU64ValueParser {
    value_parser!(u64).range(1..1 << 62)
}

fn distribution(text: &str) -> Result<Distribution, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// Parses a number of a range.
fn between(low: f64, high: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("{text} is not a number from {low} to {high}")),
    }
}

/// Parses a time in seconds, up to three days; returns nanoseconds.
fn seconds(low: f64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    let number = between(low, 3.0 * DAY_S);
    move |text| number(text).map(|seconds| (seconds * 1e9).round() as u64)
}
