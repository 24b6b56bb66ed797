// SPDX-License-Identifier: Apache-2.0
//! Options of one port on the command line: `2:rate=2Mbit,queue_packets=50`, numbers with their units.

use crate::control::change_of;
use crate::options::parse_port;
use device::{PortChange, PortConfig};
use serde_json::{Map, Value};

/// A port and its options.
#[derive(Clone, Debug, PartialEq)]
pub struct PortOptions {
    /// The port.
    pub port: u32,
    /// Its options; those not named have their defaults.
    pub config: PortConfig,
    /// What is named of them.
    pub change: PortChange,
}

impl PortOptions {
    /// Parses `PORT:KEY=VALUE,...`: the keys are those of the control socket, with units, and `rate` for `rate_bps`. A rate that is
    /// a function of time comes last.
    ///
    /// # Errors
    /// A sentence naming the part that is wrong and what is allowed.
    pub fn parse(text: &str) -> Result<PortOptions, String> {
        let (port, list) = text
            .split_once(':')
            .ok_or_else(|| format!("\"{text}\" is not PORT:KEY=VALUE,..."))?;
        let port = parse_port(port)?;
        let named = |e: String| format!("port {port}: {e}");
        let mut keys = Map::new();
        let (list, series) = list
            .find("rate={")
            .map_or((list, ""), |at| list.split_at(at));
        if let Some((_, series)) = series.split_once('=') {
            let series = serde_json::from_str(series).map_err(|e| named(format!("rate: {e}")))?;
            keys.insert("rate_bps".to_owned(), series);
        }
        let (list, has_series) = match keys.is_empty() {
            true => (list, false),
            false => (list.trim_end_matches(','), true),
        };
        let parts = list.split(',');
        for part in parts.filter(|part| !(part.is_empty() && has_series)) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| named(format!("\"{part}\" is not KEY=VALUE")))?;
            let number = match key {
                "rate" => rate_bps(value),
                "queue_bytes" | "port_bytes" => bytes(value),
                "queues" | "queue_packets" | "queue_cells" | "port_packets" | "port_cells" => {
                    count(value)
                }
                _ => {
                    keys.insert(key.to_owned(), Value::from(value));
                    continue;
                }
            };
            let number = number.map_err(|e| named(format!("{key}: {e}")))?;
            let key = if key == "rate" { "rate_bps" } else { key };
            keys.insert(key.to_owned(), Value::from(number));
        }
        let change = change_of(keys).map_err(named)?;
        let config = change.applied_to(&PortConfig::default());
        config.check(port).map_err(|e| e.message)?;
        Ok(PortOptions {
            port,
            config,
            change,
        })
    }
}

/// A rate in bit/s: a number and `bit`, `kbit`, `Mbit`, `Gbit` (decimal; `bps` for `bit` too), or a bare number of bit/s.
///
/// # Errors
/// A sentence naming the text and what is allowed.
fn rate_bps(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let number = lower
        .strip_suffix("bit/s")
        .or_else(|| lower.strip_suffix("bit"))
        .or_else(|| lower.strip_suffix("bps"));
    scaled(number.unwrap_or(&lower), number.is_some()).ok_or_else(|| {
        format!("\"{text}\" is not a rate such as 2Mbit, 1.5Gbit, 500kbit or 2000000")
    })
}

/// A size in bytes: a number and `B`, `kB`, `MB`, `GB` (decimal), or a bare number.
///
/// # Errors
/// A sentence naming the text and what is allowed.
fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let number = lower.strip_suffix('b');
    scaled(number.unwrap_or(&lower), number.is_some())
        .ok_or_else(|| format!("\"{text}\" is not a size such as 75000, 64kB or 1.5MB"))
}

/// A whole number.
///
/// # Errors
/// A sentence naming the text and what is allowed.
fn count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("\"{text}\" is not a whole number"))
}

fn scaled(text: &str, prefixed: bool) -> Option<u64> {
    let (number, scale) = match text.char_indices().last() {
        Some((at, 'k')) if prefixed => (&text[..at], 1e3),
        Some((at, 'm')) if prefixed => (&text[..at], 1e6),
        Some((at, 'g')) if prefixed => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain)? * scale;
    (value <= 1e15).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_understood() {
        let text = "3:rate=10Mbit,queues=4,queue_packets=50,queue_bytes=75kB,queue_cells=1600,\
                    port_packets=100,port_bytes=1MB,port_cells=9999,scheduler=wrr,link_layer=atm";
        let config = PortOptions::parse(text).unwrap().config;
        assert_eq!(config.rate_bps, 10_000_000);
        assert_eq!(config.queues, 4);
        assert_eq!(config.queue_limits.bytes, 75_000);
        assert_eq!(config.port_limits.cells, 9_999);
        assert_eq!(config.scheduler, device::SchedulerKind::Wrr);
        assert_eq!(config.link_layer, device::LinkLayer::Atm);
    }

    #[test]
    fn a_rate_may_be_a_function_of_time() {
        let text = r#"3:queues=4,rate={"steps": [[0, 1e6], [1, 3e6]], "repeat_s": 2}"#;
        let options = PortOptions::parse(text).unwrap();
        assert_eq!(
            (options.config.rate_bps, options.config.queues),
            (2_000_000, 4)
        );
        assert!(matches!(
            options.change.rate_bps,
            Some(device::Rate::Follows(_))
        ));
        assert!(PortOptions::parse(r#"3:rate={"trace": [1]}"#).is_ok());
        let wrong = PortOptions::parse(r#"3:rate={"uniform": [1e6, 2e6]}"#).unwrap_err();
        assert_eq!(wrong, "port 3: rate_bps: uniform: every_s is missing");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (text, part) in [
            ("rate=1Mbit", "PORT:KEY=VALUE"),
            ("x:rate=1Mbit", "not a port number from 0 to 510"),
            (
                "1:speed=1Mbit",
                "port 1: speed: unknown field `speed`, expected one of `rate_bps`, `link_layer`, ",
            ),
            (
                "1:scheduler=fifo",
                "port 1: scheduler: scheduler \"fifo\" is unknown; allowed: strict, wrr, drr, calendar, fq",
            ),
            (
                "1:link_layer=ip",
                "port 1: link_layer: link_layer \"ip\" is unknown; allowed: none, ethernet, atm",
            ),
            ("1:port_cells=0", "a port capacity of 0 cells"),
            ("1:queues=4097", "4097 queues; 1 to 4096 are allowed"),
            ("1:rate", "\"rate\" is not KEY=VALUE"),
            (
                "1:rate=fast",
                "port 1: rate: \"fast\" is not a rate such as 2Mbit",
            ),
            ("1:queues=0", "0 queues; 1 to 4096 are allowed"),
            ("1:queue_packets=0", "a queue capacity of 0 packets"),
            ("1:rate=2000Gbit", "is above 1000000000000 bit/s"),
        ] {
            let error = PortOptions::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn rates_have_decimal_units() {
        assert_eq!(rate_bps("2Mbit"), Ok(2_000_000));
        assert_eq!(rate_bps("1.5Gbit/s"), Ok(1_500_000_000));
        assert_eq!(rate_bps("500kbps"), Ok(500_000));
        assert_eq!(rate_bps("1544000"), Ok(1_544_000));
        assert_eq!(rate_bps("0"), Ok(0));
        for bad in [
            "", "fast", "-1Mbit", "2M", "1e3", "Mbit", "2 Mbit", "nan", "inf",
        ] {
            assert!(rate_bps(bad).unwrap_err().contains("2Mbit"), "{bad}");
        }
    }

    #[test]
    fn sizes_have_decimal_units() {
        assert_eq!(bytes("64kB"), Ok(64_000));
        assert_eq!(bytes("75000"), Ok(75_000));
        assert!(bytes("64KiB").is_err());
    }
}
