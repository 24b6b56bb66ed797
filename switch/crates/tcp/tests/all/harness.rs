// SPDX-License-Identifier: Apache-2.0
//! Packet scripts: the test plays the peer, line by line, in virtual time.
//!
//! ```text
//!  +100 inject ack 3001 win 20000 sack 4001:5001   100 ms later this segment comes in
//!       expect data 3001:4001                      the next segment that the endpoint sends
//!       expect none                                and no other
//!       state cwnd 5 ssthresh 5 ca Recovery
//! ```
//! Sequence numbers are relative, both streams begin with 1. Whatever the endpoint sends must be expected before the next
//! `inject`. `ect`, `ect1`, `ce`: the IP header's mark; `ece`, `cwr`: the flags; they stand last in an `expect`. `corrupt` is an `inject` whose checksum is wrong; `ena N` names a corrupted segment. `#` begins a comment.
//! Lines: config, connect, accept, open, write, close, reading, inject, corrupt, expect, state.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tcp::segment::Ecn;
use tcp::{Connection, Flags, Nanos, Options, SackBlocks, Segment, TcpConfig};

const MS: Nanos = 1_000_000;
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10_000);
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5001);
/// The peer's window unless a line says otherwise, not scaled.
const PEER_WINDOW: u16 = 60_000;

pub struct Script {
    config: TcpConfig,
    iss: u32,
    irs: u32,
    now: Nanos,
    connection: Option<Connection>,
    sent: VecDeque<Segment>,
    window: u16,
    ack: u32,
    /// The peer's snd_nxt.
    next: u32,
    line: String,
}

/// Runs a script with sequence numbers far from the wrap.
pub fn script(config: &str, text: &str) -> Script {
    script_from(1_000_000, 5_000_000, config, text)
}

/// Runs a script whose SYNs carry `iss` (ours) and `irs` (the peer's). `config` is `key=value` pairs over 1000-byte segments.
pub fn script_from(iss: u32, irs: u32, config: &str, text: &str) -> Script {
    let mut script = Script {
        config: parse_config(config),
        iss,
        irs,
        now: 0,
        connection: None,
        sent: VecDeque::new(),
        window: PEER_WINDOW,
        ack: 1,
        next: 1,
        line: String::new(),
    };
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or("").trim();
        if !code.is_empty() {
            script.line = format!("line {}: {code}", number + 1);
            script.execute(code);
        }
    }
    assert!(
        script.sent.is_empty(),
        "at the end of the script: not expected: {:?}",
        script.sent
    );
    script
}

fn parse_config(text: &str) -> TcpConfig {
    let mut pairs = vec![
        r#""mss_bytes": 1000"#.to_string(),
        r#""rto_rule": "rfc6298""#.to_string(),
    ];
    for pair in text.split_whitespace() {
        let (key, value) = pair.split_once('=').expect("key=value");
        let plain = value.parse::<u64>().is_ok() || value == "true" || value == "false";
        pairs.push(if plain {
            format!("{key:?}: {value}")
        } else {
            format!("{key:?}: {value:?}")
        });
    }
    let mut object = serde_json::Map::new();
    for pair in pairs {
        object.extend(
            serde_json::from_str::<serde_json::Map<_, _>>(&format!("{{{pair}}}")).expect("a pair"),
        );
    }
    let config: TcpConfig = serde_json::from_value(object.into()).expect("a configuration");
    config.validate().expect("a valid configuration");
    config
}

impl Script {
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a connection")
    }

    fn endpoint(&mut self) -> &mut Connection {
        self.connection
            .as_mut()
            .unwrap_or_else(|| panic!("{}: no connection yet", self.line))
    }

    fn execute(&mut self, code: &str) {
        let mut words: Vec<&str> = code.split_whitespace().collect();
        if let Some(delay) = words[0].strip_prefix('+') {
            self.advance(delay.parse().expect("milliseconds"));
            words.remove(0);
        }
        let Some(&verb) = words.first() else { return };
        let words = &words[1..];
        let now = self.now;
        match verb {
            "connect" => {
                self.connection = Some(Connection::connect(
                    &self.config,
                    LOCAL,
                    REMOTE,
                    self.iss,
                    now,
                ))
            }
            "accept" => {
                let syn = self.segment(&[&["syn"], words].concat());
                self.connection = Some(Connection::accept(
                    &self.config,
                    LOCAL,
                    REMOTE,
                    self.iss,
                    now,
                    &syn,
                ));
            }
            "open" => self.open(words),
            "write" => {
                let bytes = if words[0] == "greedy" {
                    u64::MAX
                } else {
                    words[0].parse().expect("bytes")
                };
                self.endpoint().write(now, bytes);
            }
            "close" => self.endpoint().close(now),
            "reading" => self.endpoint().set_reading(now, words[0] == "on"),
            "inject" => {
                assert!(
                    self.sent.is_empty(),
                    "{}: not expected before it: {:?}",
                    self.line,
                    self.sent
                );
                let segment = self.segment(words);
                self.endpoint().on_segment(now, &segment);
            }
            "corrupt" => {
                let (next, ack) = (self.next, self.ack);
                let segment = self.segment(words);
                (self.next, self.ack) = (next, ack);
                let mut bytes = vec![0; segment.wire_len()];
                segment.encode(REMOTE.ip(), LOCAL.ip(), &mut bytes);
                let at = if segment.payload_len > 0 {
                    bytes.len() - 1
                } else {
                    15
                }; // payload, or the window
                bytes[at] ^= 1;
                assert!(Segment::parse(REMOTE.ip(), LOCAL.ip(), &bytes).is_err());
                self.endpoint().on_corrupted(now, &bytes);
            }
            "expect" => self.expect(words),
            "state" => self.check_state(words),
            other => panic!("{}: unknown verb {other}", self.line),
        }
        self.drain();
    }

    /// Lets time go by; timers run when they are due.
    fn advance(&mut self, delay_ms: u64) {
        let end = self.now + delay_ms * MS;
        while let Some(at) = self
            .connection
            .as_ref()
            .and_then(Connection::next_timer)
            .filter(|&at| at <= end)
        {
            self.now = self.now.max(at);
            let now = self.now;
            self.endpoint().on_timer(now);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        while let Some(segment) = connection.poll_transmit(self.now) {
            let mut bytes = vec![0xff; segment.wire_len()];
            segment.encode(LOCAL.ip(), REMOTE.ip(), &mut bytes);
            let parsed = Segment::parse(LOCAL.ip(), REMOTE.ip(), &bytes);
            assert_eq!(
                parsed,
                Ok(Segment {
                    ecn: Ecn::NotEct,
                    ..segment
                }),
                "a segment survives the wire"
            );
            self.sent.push_back(segment);
        }
    }

    /// connect, SYN, SYN-ACK after `rtt` (100) ms with the given options, ACK.
    fn open(&mut self, words: &[&str]) {
        let (mut rtt_ms, mut options) = (100, words);
        if words.first() == Some(&"rtt") {
            rtt_ms = words[1].parse().expect("milliseconds");
            options = &words[2..];
        }
        self.connection = Some(Connection::connect(
            &self.config,
            LOCAL,
            REMOTE,
            self.iss,
            self.now,
        ));
        self.drain();
        assert!(
            self.sent
                .pop_front()
                .is_some_and(|syn| syn.flags.contains(Flags::SYN) && !syn.flags.ack()),
            "{}",
            self.line
        );
        self.advance(rtt_ms);
        let synack = self.segment(&[&["synack"], options].concat());
        let now = self.now;
        self.endpoint().on_segment(now, &synack);
        self.drain();
        assert!(
            self.sent
                .pop_front()
                .is_some_and(|ack| ack.flags == Flags::ACK && ack.payload_len == 0),
            "{}",
            self.line
        );
    }

    /// A segment of the peer: `ack N`, `data A:B`, `fin N`, `syn`, `synack`, `rst N`, then `ack N win W sack A:B… mss N …`.
    fn segment(&mut self, words: &[&str]) -> Segment {
        let mut segment = Segment {
            src_port: REMOTE.port(),
            dst_port: LOCAL.port(),
            flags: Flags::ACK,
            ..Segment::default()
        };
        segment.seq = self.irs.wrapping_add(self.next);
        let mut words = words.iter().copied().peekable();
        let mut syn = false;
        while let Some(word) = words.next() {
            let mut number = || -> u32 {
                words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .expect("a number")
            };
            match word {
                "ack" => self.ack = number(),
                "win" => self.window = number() as u16,
                "seq" => segment.seq = self.irs.wrapping_add(number()),
                "fin" => {
                    segment.seq = self.irs.wrapping_add(number());
                    segment.flags = segment.flags | Flags::FIN;
                }
                "rst" => {
                    segment.seq = self.irs.wrapping_add(number());
                    segment.flags = Flags::RST | Flags::ACK;
                }
                "syn" => {
                    syn = true;
                    segment.flags = Flags::SYN;
                }
                "synack" => {
                    syn = true;
                    segment.flags = Flags::SYN | Flags::ACK;
                }
                "mss" => segment.options.mss = Some(number() as u16),
                "wscale" => segment.options.window_scale = Some(number() as u8),
                "ena" => segment.options.ena = Some(self.iss.wrapping_add(number())),
                "sport" => segment.src_port = number() as u16,
                "ece" => segment.flags = segment.flags | Flags::ECE,
                "cwr" => segment.flags = segment.flags | Flags::CWR,
                "ect" => segment.ecn = Ecn::Ect0,
                "ect1" => segment.ecn = Ecn::Ect1,
                "ce" => segment.ecn = Ecn::Ce,
                "sackok" => segment.options.sack_permitted = true,
                "ts" => segment.options.timestamps = Some((number(), number())),
                "data" => {
                    let (from, to) = range(words.next().expect("a range"));
                    segment.seq = self.irs.wrapping_add(from);
                    segment.payload_len = to - from;
                }
                "sack" => {
                    while let Some(block) = words.next_if(|word| word.contains(':')) {
                        let (left, right) = range(block);
                        segment
                            .options
                            .sack
                            .push(self.iss.wrapping_add(left), self.iss.wrapping_add(right));
                    }
                }
                other => panic!("{}: unknown word {other}", self.line),
            }
        }
        if syn {
            segment.seq = self.irs;
            segment.options.mss.get_or_insert(1460);
        }
        if segment.flags.ack() {
            segment.ack = self.iss.wrapping_add(self.ack);
        }
        let end = segment
            .seq
            .wrapping_add(segment.seq_len())
            .wrapping_sub(self.irs);
        self.next = self.next.max(end);
        segment.window = self.window;
        segment
    }

    fn expect(&mut self, words: &[&str]) {
        if words == ["none"] {
            assert!(
                self.sent.is_empty(),
                "{}: but sent {:?}",
                self.line,
                self.sent
            );
            return;
        }
        if words[0] == "data" && words.len() > 2 && words[1..].iter().all(|word| word.contains(':'))
        {
            for block in &words[1..] {
                self.expect(&["data", block]);
            }
            return;
        }
        let Some(sent) = self.sent.pop_front() else {
            panic!("{}: nothing was sent", self.line)
        };
        let seen = self.describe(&sent);
        // What stands behind `…` is the end of what was sent.
        let wanted = words.join(" ");
        let (wanted, end) = wanted.split_once(" … ").unwrap_or((&wanted, ""));
        assert!(seen.ends_with(end), "{}: sent {seen:?}", self.line);
        assert!(seen.starts_with(wanted), "{}: sent {seen:?}", self.line);
        let next = seen.as_bytes().get(wanted.len());
        assert!(
            next.is_none_or(|&byte| byte == b' '),
            "{}: sent {seen:?}",
            self.line
        );
    }

    /// `data A:B fin`, `ack N win W sack …`, `fin N`, `syn …`, `synack …`, `probe`, `rst N`.
    fn describe(&self, segment: &Segment) -> String {
        let seq = segment.seq.wrapping_sub(self.iss);
        let ack = format!(
            "ack {} win {}",
            segment.ack.wrapping_sub(self.irs),
            segment.window
        );
        let head = match segment.flags {
            flags if flags.rst() => format!("rst {seq}"),
            flags if flags.syn() && flags.ack() => "synack".to_string(),
            flags if flags.syn() => "syn".to_string(),
            flags if flags.fin() && segment.payload_len == 0 => format!("fin {seq} {ack}"),
            _ if segment.payload_len > 0 => {
                let fin = if segment.flags.fin() { " fin" } else { "" };
                format!("data {seq}:{}{fin} {ack}", seq + segment.payload_len)
            }
            _ if seq == self.connection().acked_bytes() as u32 => format!("probe {ack}"),
            _ => ack,
        };
        let mut marks = String::new();
        for (flag, word) in [(Flags::ECE, " ece"), (Flags::CWR, " cwr")] {
            marks += if segment.flags.contains(flag) {
                word
            } else {
                ""
            };
        }
        marks += match segment.ecn {
            Ecn::Ect0 => " ect",
            Ecn::Ect1 => " ect1",
            _ => "",
        };
        head + &self.describe_options(&segment.options) + &marks
    }

    fn describe_options(&self, options: &Options) -> String {
        let mut text = String::new();
        text += &options
            .mss
            .map_or(String::new(), |mss| format!(" mss {mss}"));
        text += &options
            .window_scale
            .map_or(String::new(), |shift| format!(" wscale {shift}"));
        text += if options.sack_permitted {
            " sackok"
        } else {
            ""
        };
        text += &options
            .timestamps
            .map_or(String::new(), |(value, echo)| format!(" ts {value} {echo}"));
        text += &options.ena.map_or(String::new(), |seq| {
            format!(" ena {}", seq.wrapping_sub(self.irs))
        });
        let blocks: &SackBlocks = &options.sack;
        if !blocks.is_empty() {
            text += " sack";
        }
        for (left, right) in blocks.as_slice() {
            text += &format!(
                " {}:{}",
                left.wrapping_sub(self.irs),
                right.wrapping_sub(self.irs)
            );
        }
        text
    }

    fn check_state(&mut self, words: &[&str]) {
        for pair in words.chunks(2) {
            let (connection, wanted) = (self.connection(), pair[1]);
            let (view, stats) = (connection.sender(), connection.stats());
            let seen = match pair[0] {
                "cwnd" => view.snd_cwnd.to_string(),
                "ssthresh" => view.snd_ssthresh.to_string(),
                "ca" => format!("{:?}", view.ca_state),
                "in_flight" => view.in_flight.to_string(),
                "rto" => (view.rto_ns / MS).to_string(),
                "srtt" => (view.srtt_ns / MS).to_string(),
                "conn" => format!("{:?}", connection.state()),
                "retransmits" => stats.retransmits.to_string(),
                "timeouts" => stats.timeouts.to_string(),
                "fast_retransmits" => stats.fast_retransmits.to_string(),
                "spurious_timeouts" => stats.spurious_timeouts.to_string(),
                "spurious_recoveries" => stats.spurious_recoveries.to_string(),
                "bw_est" => stats.bw_est_pps.to_string(),
                "erto_probes" => stats.erto_probes.to_string(),
                "data_sent" => stats.data_segments_sent.to_string(),
                "reductions" => stats.window_reductions.to_string(),
                "ena_corrupted" => stats.ena_corrupted.to_string(),
                "ena_notified" => stats.ena_notified.to_string(),
                "ena_kept" => stats.ena_kept.to_string(),
                "ena_reduced" => stats.ena_reduced.to_string(),
                "ena_allowed" => stats.ena_allowed.to_string(),
                "ena_restored" => stats.ena_restored.to_string(),
                "delivered_ce" => stats.delivered_ce.to_string(),
                "dupacks" => stats.dupacks.to_string(),
                "acked" => connection.acked_bytes().to_string(),
                "received" => connection.received_bytes().to_string(),
                other => panic!("{}: unknown state {other}", self.line),
            };
            assert_eq!(seen, wanted, "{}: {}", self.line, pair[0]);
        }
    }
}

fn range(word: &str) -> (u32, u32) {
    let (left, right) = word.split_once(':').expect("A:B");
    (
        left.parse().expect("a number"),
        right.parse().expect("a number"),
    )
}
