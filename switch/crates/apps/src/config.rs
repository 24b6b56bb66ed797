// SPDX-License-Identifier: Apache-2.0
//! What a flow's application does: one kind, with the settings of that kind only.

use crate::Nanos;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;

/// How a random size or time is distributed around its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Always the mean.
    Fixed,
    #[default]
    Exponential,
    /// With `shape` (above 1, so that it has a mean): P(X > x) = (x_min / x)^shape.
    Pareto,
    /// Flow sizes of a data centre's web search (Alizadeh et al., DCTCP, SIGCOMM 2010), scaled to the mean.
    WebSearch,
    /// Flow sizes of a data centre's data mining (Greenberg et al., VL2, SIGCOMM 2009), scaled to the mean.
    DataMining,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum App {
    /// Always has something to send.
    Greedy,
    Bytes(Bytes),
    OnOff(OnOff),
    Web(Web),
    Interactive(Interactive),
    Video(Video),
    CbrUdp(CbrUdp),
    Command(Command),
}

/// A file of `bytes`, then FIN; `times` of them, each on a connection of its own, one asked for each `interval_ns`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    pub bytes: u64,
    #[serde(default = "once")]
    pub times: u64,
    #[serde(default)]
    pub interval_ns: Nanos,
    /// TCP_NODELAY: what is written goes at once, and the FIN by itself where no data waits for it.
    #[serde(default)]
    pub nodelay: bool,
}

/// Greedy while on, silent while off.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    pub on_mean_ns: Nanos,
    pub off_mean_ns: Nanos,
    #[serde(default)]
    pub distribution: Distribution,
    #[serde(default = "default_shape")]
    pub shape: f64,
}

/// Poisson arrivals of transfers, each on a connection of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    pub arrivals_per_s: f64,
    pub mean_bytes: u64,
    #[serde(default)]
    pub distribution: Distribution,
    #[serde(default = "default_shape")]
    pub shape: f64,
    /// Longest transfer; 0: no limit.
    #[serde(default)]
    pub max_bytes: u64,
}

/// A message of `bytes` each `interval_ns` on one connection.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Interactive {
    pub bytes: u64,
    pub interval_ns: Nanos,
}

/// A video in segments of `segment_ns` on one connection, each at a rate of the ladder `bitrates_bps` (rising), chosen by BBA-0 (`video`).
/// The next one is asked for when the last byte of the one before is acknowledged and the buffer has room for it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    pub bitrates_bps: Vec<u64>,
    pub segment_ns: Nanos,
    /// Of play time, as the two below: what the player holds at most.
    pub buffer_ns: Nanos,
    /// With no more than this the lowest rate is asked for …
    pub reservoir_ns: Nanos,
    /// … and with this more than the reservoir the highest.
    pub cushion_ns: Nanos,
}

/// UDP datagrams at a constant rate.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CbrUdp {
    /// Of payload.
    pub rate_bps: u64,
    pub payload_bytes: u64,
}

/// Programs of the user's, of real hosts: the first word is a static program's file, the others are its arguments.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub sender: Vec<String>,
    /// Started before the experiment; empty: none.
    #[serde(default)]
    pub receiver: Vec<String>,
}

fn default_shape() -> f64 {
    1.2
}

fn once() -> u64 {
    1
}

const KINDS: &str = "greedy, bytes, on_off, web, interactive, video, cbr_udp, command";

// By hand, so that an error within names its key: an internally tagged enum would lose the path.
impl<'de> Deserialize<'de> for App {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<App, D::Error> {
        let mut settings = Map::deserialize(reader)?;
        let kind = settings
            .remove("kind")
            .ok_or_else(|| within("kind", format_args!("is missing; allowed: {KINDS}")))?;
        match kind.as_str() {
            Some("greedy") => settings_of::<Nothing, _>(settings).map(|_| App::Greedy),
            Some("bytes") => settings_of(settings).map(App::Bytes),
            Some("on_off") => settings_of(settings).map(App::OnOff),
            Some("web") => settings_of(settings).map(App::Web),
            Some("interactive") => settings_of(settings).map(App::Interactive),
            Some("video") => settings_of(settings).map(App::Video),
            Some("cbr_udp") => settings_of(settings).map(App::CbrUdp),
            Some("command") => settings_of(settings).map(App::Command),
            _ => Err(within(
                "kind",
                format_args!("{kind} is not allowed; allowed: {KINDS}"),
            )),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Reads an object whose path is the reader's.
///
/// # Errors
/// The reader's, with the path below.
pub fn settings_of<T: DeserializeOwned, E: Error>(settings: Map<String, Value>) -> Result<T, E> {
    serde_path_to_error::deserialize(Value::Object(settings)).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => E::custom(error.inner()),
            path => within(path, error.inner()),
        }
    })
}

/// Begins the message of an error whose path goes on within the application: `PATH: MESSAGE` follows.
pub const PATH_GOES_ON: char = '\u{1}';

/// An error at a path below the reader's.
pub fn within<E: Error>(path: &str, message: impl Display) -> E {
    E::custom(format!("{PATH_GOES_ON}{path}: {message}"))
}
