// SPDX-License-Identifier: Apache-2.0
//! The command line, checked before anything is opened.

use crate::send::{Plan, Report};
use apps::{App, Bytes, CbrUdp, Distribution, Interactive, OnOff, Video, Web};
use clap::{value_parser, Args, Parser, Subcommand, ValueEnum};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// What a sender's socket takes beyond what was sent: enough for any window, and little at the end.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Of an on/off source, so that what was written before an end is soon gone.
const UNSENT_BYTES_ON_OFF: u32 = 4096;
const BYTES: RangeInclusive<u64> = 1..=1 << 50;
const MSS: RangeInclusive<i64> = 88..=65_483;
const SAMPLE_MS: RangeInclusive<u64> = 1..=60_000;
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
        #[arg(long, value_parser = value_parser!(u64).range(BYTES))]
        bytes: Option<u64>,
        /// Flow i starts i times this later
        #[arg(long, default_value_t = 0.0, value_parser = between(0.0..=3_600_000.0))]
        stagger_ms: f64,
    },
    /// N bytes a flow, on a connection that is opened at the start
    Transfer {
        #[command(flatten)]
        tcp: Tcp,
        #[arg(long, value_parser = value_parser!(u64).range(BYTES))]
        bytes: u64,
        /// Files of each flow, each on its own connection
        #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=100_000))]
        times: u64,
        /// From asking for one to asking for the next
        #[arg(long, value_name = "SECONDS", value_parser = between(0.001..=3600.0))]
        interval_s: Option<f64>,
        /// Set TCP_NODELAY
        #[arg(long)]
        nodelay: bool,
    },
    /// Transfers at random, each on its own connection
    Web {
        #[command(flatten)]
        tcp: Tcp,
        /// Of each flow; Poisson
        #[arg(long, value_parser = between(0.001..=10_000.0))]
        arrivals_per_s: f64,
        #[arg(long, value_parser = value_parser!(u64).range(1..=1 << 40))]
        mean_bytes: u64,
        /// Longest transfer (default: no limit)
        #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(0..=1 << 50))]
        max_bytes: u64,
        #[command(flatten)]
        chance: ChanceOptions,
    },
    /// Greedy while on, silent while off
    Onoff {
        #[command(flatten)]
        tcp: Tcp,
        /// Mean length of on
        #[arg(long, value_name = "SECONDS", value_parser = between(0.001..=DAY_S))]
        on_s: f64,
        /// Mean length of off
        #[arg(long, value_name = "SECONDS", value_parser = between(0.001..=DAY_S))]
        off_s: f64,
        #[command(flatten)]
        chance: ChanceOptions,
    },
    /// A message of N bytes at a fixed interval
    Interactive {
        #[command(flatten)]
        tcp: Tcp,
        /// Of a message
        #[arg(long, value_parser = value_parser!(u64).range(1..=1 << 24))]
        bytes: u64,
        #[arg(long, value_name = "SECONDS", value_parser = between(0.001..=3600.0))]
        interval_s: f64,
    },
    /// A video, segment by segment, at the rates that BBA-0 asks for
    Video {
        #[command(flatten)]
        tcp: Tcp,
        /// The ladder, rising, with commas
        #[arg(long, value_delimiter = ',', required = true, value_parser = value_parser!(u64).range(1000..=400_000_000_000))]
        bitrates_bps: Vec<u64>,
        /// Play time of a segment
        #[arg(long, value_name = "SECONDS", value_parser = between(0.1..=60.0))]
        segment_s: f64,
        /// Play time that the player holds at most
        #[arg(long, value_name = "SECONDS", value_parser = between(0.0..=3.0 * DAY_S))]
        buffer_s: f64,
        /// With no more than this the lowest rate
        #[arg(long, value_name = "SECONDS", value_parser = between(0.0..=DAY_S))]
        reservoir_s: f64,
        /// With this more the highest
        #[arg(long, value_name = "SECONDS", value_parser = between(0.001..=DAY_S))]
        cushion_s: f64,
    },
    /// Datagrams at a constant rate
    Udp {
        #[command(flatten)]
        source: Source,
        /// Of payload, each flow
        #[arg(long, value_parser = value_parser!(u64).range(100..=10_000_000_000))]
        rate_bps: u64,
        /// Bytes of a datagram: one frame of an MTU of 1,500
        #[arg(long, value_name = "BYTES", value_parser = value_parser!(u64).range(1..=1472))]
        payload: u64,
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
    #[arg(long, value_parser = between(0.01..=DAY_S))]
    seconds: Option<f64>,
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=1000))]
    flows: u64,
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(SAMPLE_MS))]
    sample_ms: u64,
    /// File of JSON lines; -: standard output
    #[arg(long, default_value = "-")]
    out: String,
    /// CLOCK_MONOTONIC instant of the start
    #[arg(long, value_name = "MONOTONIC_NS")]
    start_at: Option<u64>,
}

#[derive(Args)]
pub struct Tcp {
    #[command(flatten)]
    source: Source,
    /// Variant, on a host that is set for it (or --no-sysctl-check), or the kernel's name; several with commas: each flow's in turn
    #[arg(long, value_delimiter = ',')]
    cc: Vec<String>,
    /// Payload bytes of a packet (TCP_MAXSEG)
    #[arg(long, value_parser = value_parser!(u32).range(MSS))]
    mss: Option<u32>,
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS", value_parser = between(0.001..=3600.0))]
    connect_timeout: f64,
}

#[derive(Args)]
pub struct ChanceOptions {
    /// fixed, exponential, pareto, web_search or data_mining
    #[arg(long, default_value = "exponential", value_parser = distribution)]
    distribution: Distribution,
    /// Of pareto, above 1: below there is no mean
    #[arg(long, default_value_t = 1.2, value_parser = between(1.000_001..=100.0))]
    shape: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The flows' names, from which their chance follows too
    #[arg(long, value_delimiter = ',', default_value = "flow")]
    names: Vec<String>,
}

#[derive(Args)]
pub struct Sink {
    /// 0: any free one, see --ready-file
    #[arg(long)]
    pub port: u16,
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    pub bind: IpAddr,
    #[arg(long, value_parser = between(0.01..=DAY_S))]
    pub seconds: Option<f64>,
    /// End after this many connections have ended
    #[arg(long, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub connections: Option<u64>,
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(SAMPLE_MS))]
    pub sample_ms: u64,
    /// File of JSON lines; -: standard output
    #[arg(long, default_value = "-")]
    pub out: String,
    /// When to acknowledge
    #[arg(long, value_enum, default_value = "kernel")]
    pub ack: Ack,
    /// The MSS to advertise
    #[arg(long, value_parser = value_parser!(u32).range(MSS))]
    pub mss: Option<u32>,
    /// Most bytes that it offers to take
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u32).range(1152..=1 << 30))]
    pub window: Option<u32>,
    /// Let data wait so long (default: read at once)
    #[arg(long, default_value_t = 0.0, value_parser = between(0.0..=60_000.0))]
    pub read_after_ms: f64,
    /// Count datagrams
    #[arg(long)]
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
    pub fn plan(&self) -> Result<Plan, String> {
        match self {
            End::Send {
                tcp,
                bytes,
                stagger_ms,
            } => {
                let app = match *bytes {
                    None => App::Greedy,
                    Some(bytes) => file(bytes, 1, 0.0, false),
                };
                let plan = tcp.plan(app, Report::Nothing, bytes.is_some())?;
                Ok(Plan {
                    stagger_ns: to_ns(stagger_ms / 1000.0),
                    ..plan
                })
            }
            End::Transfer {
                tcp,
                bytes,
                times,
                interval_s,
                nodelay,
            } => {
                if *times > 1 && interval_s.is_none() {
                    return Err("--times needs --interval-s".into());
                }
                let app = file(*bytes, *times, interval_s.unwrap_or(0.0), *nodelay);
                tcp.plan(app, Report::Files, true)
            }
            End::Web {
                tcp,
                arrivals_per_s,
                mean_bytes,
                max_bytes,
                chance,
            } => {
                let app = App::Web(Web {
                    arrivals_per_s: *arrivals_per_s,
                    mean_bytes: *mean_bytes,
                    distribution: chance.distribution,
                    shape: chance.shape,
                    max_bytes: *max_bytes,
                });
                chance.plan(tcp.plan(app, Report::Files, false)?)
            }
            End::Onoff {
                tcp,
                on_s,
                off_s,
                chance,
            } => {
                let app = App::OnOff(OnOff {
                    on_mean_ns: to_ns(*on_s),
                    off_mean_ns: to_ns(*off_s),
                    distribution: chance.distribution,
                    shape: chance.shape,
                });
                let plan = tcp.plan(app, Report::Nothing, false)?;
                chance.plan(Plan {
                    unsent_bytes: UNSENT_BYTES_ON_OFF,
                    ..plan
                })
            }
            End::Interactive {
                tcp,
                bytes,
                interval_s,
            } => {
                let app = App::Interactive(Interactive {
                    bytes: *bytes,
                    interval_ns: to_ns(*interval_s),
                });
                tcp.plan(app, Report::Messages, false)
            }
            End::Video {
                tcp,
                bitrates_bps,
                segment_s,
                buffer_s,
                reservoir_s,
                cushion_s,
            } => {
                if bitrates_bps.len() < 2 || bitrates_bps.windows(2).any(|two| two[0] >= two[1]) {
                    let message = format!("{bitrates_bps:?} is not two or more rates that rise");
                    return Err(format!("--bitrates-bps {message}"));
                }
                let least_s = reservoir_s + cushion_s + segment_s;
                if *buffer_s < least_s {
                    let sum = "reservoir, cushion and a segment";
                    return Err(format!("--buffer-s {buffer_s} is below {sum}: {least_s}"));
                }
                let app = App::Video(Video {
                    bitrates_bps: bitrates_bps.clone(),
                    segment_ns: to_ns(*segment_s),
                    buffer_ns: to_ns(*buffer_s),
                    reservoir_ns: to_ns(*reservoir_s),
                    cushion_ns: to_ns(*cushion_s),
                });
                tcp.plan(app, Report::Messages, false)
            }
            End::Udp {
                source,
                rate_bps,
                payload,
            } => {
                let app = App::CbrUdp(CbrUdp {
                    rate_bps: *rate_bps,
                    payload_bytes: *payload,
                });
                source.plan(app, Report::Nothing, false)
            }
            End::Sink(_) => Err("a sink sends nothing".into()),
        }
    }
}

fn file(bytes: u64, times: u64, interval_s: f64, nodelay: bool) -> App {
    App::Bytes(Bytes {
        bytes,
        times,
        interval_ns: to_ns(interval_s),
        nodelay,
    })
}

impl Source {
    fn plan(&self, app: App, report: Report, has_end: bool) -> Result<Plan, String> {
        if self.seconds.is_none() && !has_end {
            return Err("say how much: --bytes N, --seconds S or both".into());
        }
        Ok(Plan {
            to: self.to,
            seconds_ns: self.seconds.map(to_ns),
            flows: self.flows as usize,
            sample_ns: self.sample_ms * 1_000_000,
            out: self.out.clone(),
            start_at_ns: self.start_at,
            stagger_ns: 0,
            app,
            report,
            seed: 1,
            names: Vec::new(),
            congestion_controls: Vec::new(),
            mss_bytes: None,
            bind: None,
            connect_timeout_ns: 0,
            unsent_bytes: UNSENT_BYTES,
        })
    }
}

impl Tcp {
    fn plan(&self, app: App, report: Report, has_end: bool) -> Result<Plan, String> {
        Ok(Plan {
            congestion_controls: self.cc.clone(),
            mss_bytes: self.mss,
            bind: self.bind,
            connect_timeout_ns: to_ns(self.connect_timeout),
            ..self.source.plan(app, report, has_end)?
        })
    }
}

impl ChanceOptions {
    fn plan(&self, plan: Plan) -> Result<Plan, String> {
        let (names, flows) = (self.names.len(), plan.flows);
        if names != flows {
            return Err(format!("--names has {names} names for {flows} flows"));
        }
        Ok(Plan {
            seed: self.seed,
            names: self.names.clone(),
            ..plan
        })
    }
}

pub fn to_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn distribution(text: &str) -> Result<Distribution, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// Parses a number of a range.
fn between(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("{text} is not in {range:?}")),
    }
}
