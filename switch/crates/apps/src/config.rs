// SPDX-License-Identifier: Apache-2.0
//! What a flow's application does: one kind, with the settings of that kind only.

use crate::Nanos;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::ops::RangeInclusive;

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

/// A setting that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAllowed {
    pub key: &'static str,
    pub value: String,
    pub allowed: String,
}

/// Largest payload of UDP in IPv4.
const UDP_PAYLOAD_MAX: u64 = 65_535 - 28;
const RATES_BPS: RangeInclusive<u64> = 1..=400_000_000_000;
/// Arrivals of one web source: its 45,000 ports are not used again within 60 s.
const ARRIVALS_PER_S_MAX: f64 = 700.0;

fn allow(
    is_allowed: bool,
    key: &'static str,
    value: impl ToString,
    allowed: impl ToString,
) -> Result<(), NotAllowed> {
    match is_allowed {
        true => Ok(()),
        false => Err(NotAllowed {
            key,
            value: value.to_string(),
            allowed: allowed.to_string(),
        }),
    }
}

fn positive(key: &'static str, value: u64) -> Result<(), NotAllowed> {
    allow(value > 0, key, 0, "1 or more")
}

impl Distribution {
    /// Whether it has a mean with this shape.
    fn check(self, shape: f64) -> Result<(), NotAllowed> {
        let has_mean = shape > 1.0 && shape <= 100.0;
        let allowed = "above 1 (below, a Pareto distribution has no mean), at most 100";
        let is_allowed = self != Distribution::Pareto || has_mean;
        allow(is_allowed, "shape", shape, allowed)
    }
}

impl App {
    /// Checks the ranges of its settings.
    ///
    /// # Errors
    /// The first one that is not allowed.
    pub fn check(&self) -> Result<(), NotAllowed> {
        match self {
            App::Greedy => Ok(()),
            App::Command(app) => {
                let allowed = "the file of a static program, then its arguments";
                allow(!app.sender.is_empty(), "sender", "[]", allowed)
            }
            App::Bytes(app) => {
                positive("bytes", app.bytes)?;
                positive("times", app.times)?;
                match app.times {
                    1 => Ok(()),
                    _ => positive("interval_ns", app.interval_ns),
                }
            }
            App::OnOff(app) => {
                positive("on_mean_ns", app.on_mean_ns)?;
                positive("off_mean_ns", app.off_mean_ns)?;
                app.distribution.check(app.shape)
            }
            App::Web(app) => {
                let rate = app.arrivals_per_s;
                let is_allowed = rate > 0.0 && rate <= ARRIVALS_PER_S_MAX;
                let allowed =
                    format!("above 0, at most {ARRIVALS_PER_S_MAX} (a flow's ports rest for 60 s)");
                allow(is_allowed, "arrivals_per_s", rate, allowed)?;
                positive("mean_bytes", app.mean_bytes)?;
                app.distribution.check(app.shape)
            }
            App::Interactive(app) => {
                positive("bytes", app.bytes)?;
                positive("interval_ns", app.interval_ns)
            }
            App::Video(app) => app.check(),
            App::CbrUdp(app) => {
                let (rate, bytes) = (app.rate_bps, app.payload_bytes);
                let is_allowed = RATES_BPS.contains(&rate);
                allow(is_allowed, "rate_bps", rate, "1 to 400000000000 bit/s")?;
                let is_allowed = (1..=UDP_PAYLOAD_MAX).contains(&bytes);
                let allowed = format_args!("1 to {UDP_PAYLOAD_MAX}");
                allow(is_allowed, "payload_bytes", bytes, allowed)
            }
        }
    }
}

impl Video {
    fn check(&self) -> Result<(), NotAllowed> {
        let rates = &self.bitrates_bps;
        let rise = rates.len() >= 2 && rates.windows(2).all(|pair| pair[0] < pair[1]);
        let is_allowed = rise && rates.iter().all(|rate| RATES_BPS.contains(rate));
        let allowed = "two or more rates of 1 to 400000000000 bit/s, each above the one before";
        allow(is_allowed, "bitrates_bps", format!("{rates:?}"), allowed)?;
        positive("segment_ns", self.segment_ns)?;
        positive("cushion_ns", self.cushion_ns)?;
        let bits = u128::from(rates[0]) * u128::from(self.segment_ns);
        let allowed = "at least a byte at the lowest rate";
        allow(
            bits >= 8_000_000_000,
            "segment_ns",
            self.segment_ns,
            allowed,
        )?;
        let times = [self.reservoir_ns, self.cushion_ns, self.segment_ns];
        let least = times.map(u128::from).iter().sum::<u128>();
        let allowed =
            "at least reservoir_ns + cushion_ns + segment_ns: it asks when a segment has room";
        let is_allowed = least <= self.buffer_ns.into();
        allow(is_allowed, "buffer_ns", self.buffer_ns, allowed)
    }
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
