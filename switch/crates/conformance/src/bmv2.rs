// SPDX-License-Identifier: Apache-2.0
//! BMv2's simple_switch in a process of its own, without root: frames over its packet port, commands by simple_switch_CLI.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use tempfile::TempDir;
use v1model::{ActionCall, Bits, EntryAction, EntryKey, KeyMatch, Pipeline};

use crate::control::{Change, Sent};

const SWITCH: &str = "simple_switch";
const CLI: &str = "simple_switch_CLI";
const PROMPT: &[u8] = b"RuntimeCmd: ";
/// It starts, and answers a command, in less than a second on an idle machine.
const ANSWER: Duration = Duration::from_secs(60);

/// What is missing on the PATH, if anything.
pub fn missing() -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &&str| std::env::split_paths(&path).any(|p| p.join(name).is_file());
    [SWITCH, CLI].into_iter().find(|name| !is_there(name))
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running simple_switch; it ends with this value.
pub struct Bmv2 {
    switch: Switch,
    _cli: Process,
    /// simple_switch_CLI's input and output.
    commands: BufReader<UnixStream>,
    pub packets: PacketPort,
}

/// simple_switch with the folder of its program, its sockets and its log.
struct Switch {
    process: Process,
    folder: TempDir,
}

impl Switch {
    fn alive(&mut self) -> Result<()> {
        let Some(status) = self.process.0.try_wait().context(SWITCH)? else {
            return Ok(());
        };
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        bail!("{SWITCH} ended ({status}): {}", last_line(&log))
    }

    /// Asks until there is an answer, as long as it lives.
    fn until<T>(&mut self, ask: impl Fn() -> Option<T>) -> Result<T> {
        let end = Instant::now() + ANSWER;
        loop {
            self.alive()?;
            if let Some(found) = ask() {
                return Ok(found);
            }
            let late = Instant::now() > end;
            ensure!(!late, "{SWITCH} is not ready after {} s", ANSWER.as_secs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Bmv2 {
    /// Starts it on a program's BMv2 JSON.
    ///
    /// # Errors
    /// What it says when it does not take the program.
    pub fn start(json: &[u8]) -> Result<Bmv2> {
        let folder = TempDir::with_prefix("differential-")?;
        let at = |name: &str| folder.path().join(name);
        fs::write(at("program.json"), json).context("program.json")?;
        let log = File::create(at("log"))?;
        // Free now.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let thrift = listener.local_addr()?.port();
        drop(listener);
        let address = |name: &str| format!("ipc://{}", at(name).display());
        let mut command = Command::new(SWITCH);
        command
            .args(["--device-id", &thrift.to_string()])
            .args(["--thrift-port", &thrift.to_string()])
            .args(["--packet-in", &address("packets")])
            .args(["--notifications-addr", &address("notifications")])
            .arg(at("program.json"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let process = Process(command.spawn().context(SWITCH)?);
        let port = at("packets");
        let mut switch = Switch { process, folder };
        let packets = switch.until(|| PacketPort::connect(&port).ok())?;
        switch.until(|| TcpStream::connect((Ipv4Addr::LOCALHOST, thrift)).ok())?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER))?;
        let theirs = OwnedFd::from(theirs);
        let mut command = Command::new(CLI);
        command
            .args(["--thrift-port", &thrift.to_string()])
            .env("PYTHONUNBUFFERED", "1")
            .stdin(theirs.try_clone()?)
            .stdout(theirs)
            .stderr(Stdio::null());
        let cli = Process(command.spawn().context(CLI)?);
        drop(command); // which holds their end
        let mut bmv2 = Bmv2 {
            switch,
            _cli: cli,
            commands: BufReader::new(ours),
            packets,
        };
        bmv2.answer()?;
        Ok(bmv2)
    }

    /// Gives a command to simple_switch_CLI: its refusal, if it refuses.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn command(&mut self, text: &str) -> Result<()> {
        let commands = self.commands.get_mut();
        let written = commands.write_all(format!("{text}\n").as_bytes());
        written.context(CLI)?;
        let answer = self.answer()?;
        match answer.lines().find(|line| is_refusal(line)) {
            None => Ok(()),
            Some(line) => bail!("{}", line.trim()),
        }
    }

    fn answer(&mut self) -> Result<String> {
        let answer = read_answer(&mut self.commands);
        if answer.is_err() {
            self.alive()?;
        }
        answer.with_context(|| format!("{CLI} does not answer"))
    }

    /// # Errors
    /// When it has ended.
    pub fn alive(&mut self) -> Result<()> {
        self.switch.alive()
    }
}

/// What simple_switch_CLI prints before its next prompt.
fn read_answer(output: &mut impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    while !text.ends_with(PROMPT) {
        let mut byte = [0];
        output.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    text.truncate(text.len() - PROMPT.len());
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A line of simple_switch_CLI that says no.
fn is_refusal(line: &str) -> bool {
    ["Invalid", "Error", "***"]
        .iter()
        .any(|start| line.trim_start().starts_with(start))
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().rev();
    let line = lines.find(|l| !l.trim().is_empty());
    line.unwrap_or("no message").trim().to_string()
}

const GREETING: [u8; 8] = [0, b'S', b'P', 0, 0, 0x10, 0, 0];
const PACKET_IN: u32 = 3;
const PACKET_OUT: u32 = 4;
/// No message of BMv2's is longer.
const LONGEST: u64 = 1 << 20;
/// For its greeting, the rest of a message, and until it takes one.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// BMv2's packet port (`--packet-in`): frames over a nanomsg PAIR socket on a Unix socket.
///
/// Scalability Protocols over IPC: both ends send `00 'S' 'P' 00`, the protocol and two zeros; then each message is the
/// byte 1, its length in 8 bytes and the message. BMv2's messages are a type, a port and a length, 4 bytes each in the
/// machine's order, and the frame.
pub struct PacketPort(BufReader<UnixStream>);

impl PacketPort {
    /// # Errors
    /// When nobody listens at `path`, or no nanomsg PAIR.
    fn connect(path: &Path) -> Result<PacketPort> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(PATIENCE)?;
        stream.set_write_timeout(PATIENCE)?;
        stream.write_all(&GREETING)?;
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting)?;
        ensure!(greeting == GREETING, "no nanomsg PAIR: {greeting:02x?}");
        Ok(PacketPort(BufReader::new(stream)))
    }

    /// # Errors
    /// When the other end is gone.
    pub fn send(&mut self, port: u32, frame: &[u8]) -> Result<()> {
        let sent = self.0.get_mut().write_all(&message(port, frame));
        sent.context("packet port")
    }

    /// The next frame and its port; None when none comes within `wait`. Messages about ports are nothing that was asked for.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Sent>> {
        loop {
            // 0 would be no limit.
            let wait = wait.max(Duration::from_micros(1));
            self.0.get_ref().set_read_timeout(Some(wait))?;
            match self.0.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                begun => drop(begun.context("packet port")?),
            }
            self.0.get_ref().set_read_timeout(PATIENCE)?;
            if let Some(frame) = read_message(&mut self.0)? {
                return Ok(Some(frame));
            }
        }
    }
}

/// A message with a frame.
fn message(port: u32, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut out = vec![1];
    out.extend((12 + u64::from(length)).to_be_bytes());
    for word in [PACKET_IN, port, length] {
        out.extend(word.to_ne_bytes());
    }
    out.extend(frame);
    out
}

/// The frame of the next message; None when it has none.
fn read_message(input: &mut impl Read) -> Result<Option<Sent>> {
    let mut header = [0; 9];
    let read = input.read_exact(&mut header);
    read.context("BMv2 closed the packet port")?;
    let length = u64::from_be_bytes(header[1..].try_into().expect("8 bytes"));
    ensure!(
        header[0] == 1 && length <= LONGEST,
        "no nanomsg message: {header:02x?}"
    );
    let mut body = vec![0; length as usize];
    input.read_exact(&mut body).context("packet port")?;
    let Some((head, frame)) = body.split_first_chunk::<12>() else {
        return Ok(None);
    };
    let word = |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    Ok((word(0) == PACKET_OUT).then(|| (word(4), frame.to_vec())))
}

/// simple_switch serves the smallest priority first, STF the largest: as p4c's driver turns them around.
const PRIORITY_TOP: i64 = 10_000;

/// The command of simple_switch_CLI that makes a change.
///
/// # Errors
/// A name that it cannot write.
pub fn command(pipeline: &Pipeline, change: &Change) -> Result<String> {
    let name = |table| word(&pipeline.table_schema(table).name);
    Ok(match change {
        Change::Member(profile, _, call) => {
            let profile = word(&pipeline.schema().profiles[profile.index()].name)?;
            let (action, args) = call_text(pipeline, call)?;
            format!("act_prof_create_member {profile} {action}{args}")
        }
        Change::Insert(table, entry) => {
            let key = entry.key.describe(&pipeline.table_schema(*table).keys);
            let (name, mut keys) = (name(*table)?, keys_text(&key));
            if !keys.is_empty() {
                keys.push(' ');
            }
            let priority = match pipeline.table_schema(*table).needs_priority() {
                true => format!(" {}", PRIORITY_TOP + 1 - i64::from(key.priority)),
                false => String::new(),
            };
            match &entry.action {
                EntryAction::Direct(call) => {
                    let (action, args) = call_text(pipeline, call)?;
                    format!("table_add {name} {action} {keys}=>{args}{priority}")
                }
                EntryAction::Member(member) => {
                    format!("table_indirect_add {name} {keys}=> {member}{priority}")
                }
                other => bail!("simple_switch_CLI cannot write {other:?}"),
            }
        }
        Change::SetDefault(table, call) => {
            let (action, args) = call_text(pipeline, call)?;
            format!("table_set_default {} {action}{args}", name(*table)?)
        }
        Change::Clear(table) => format!("table_clear {}", name(*table)?),
        Change::Cli(words) => words.join(" "),
    })
}

/// simple_switch_CLI splits at spaces and knows no quotation marks.
fn word(name: &str) -> Result<&str> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        bail!("simple_switch_CLI cannot write the name `{name}`");
    }
    Ok(name)
}

fn call_text<'a>(pipeline: &'a Pipeline, call: &ActionCall) -> Result<(&'a str, String)> {
    let action = pipeline.action_schema(call.action);
    let args = action.values(&call.args);
    let args = args.map(|a| format!(" {a}")).collect();
    Ok((word(&action.name)?, args))
}

fn keys_text(key: &EntryKey) -> String {
    let text = |one: &KeyMatch| match one {
        KeyMatch::Exact(value) => value.to_string(),
        KeyMatch::Lpm { value, prefix_len } => format!("{value}/{prefix_len}"),
        KeyMatch::Ternary { value, mask } => format!("{value}&&&{mask}"),
        KeyMatch::Range { low, high } => format!("{low}->{high}"),
        // p4c writes an optional key as a ternary one.
        KeyMatch::Optional(Some(value)) => {
            format!("{value}&&&{}", Bits::ones(value.width()))
        }
        KeyMatch::Optional(None) => "0x0&&&0x0".to_string(),
    };
    let texts: Vec<String> = key.matches.iter().map(text).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn refusals_are_told_from_answers() {
        assert!(is_refusal("Invalid table operation (DUPLICATE_ENTRY)"));
        assert!(is_refusal("Error: Invalid table name (x)"));
        assert!(is_refusal("*** Unknown syntax: x"));
        assert!(!is_refusal("Entry has been added with handle 0"));
        assert!(!is_refusal("action:              MyIngress.Error"));
    }

    #[test]
    fn answers_end_at_the_prompt() {
        let mut output = &b"hello\nRuntimeCmd: Error: no\nRuntimeCmd: rest"[..];
        assert_eq!(read_answer(&mut output).unwrap(), "hello\n");
        assert_eq!(read_answer(&mut output).unwrap(), "Error: no\n");
        assert!(read_answer(&mut output).is_err());
    }

    #[test]
    fn the_last_line_of_a_log_that_says_something() {
        assert_eq!(last_line(b"one\ntwo \n\n"), "two");
        assert_eq!(last_line(b""), "no message");
    }

    /// What BMv2 sends for a frame.
    fn out(port: u32, frame: &[u8]) -> Vec<u8> {
        let mut message = message(port, frame);
        message[9..13].copy_from_slice(&PACKET_OUT.to_ne_bytes());
        message
    }

    #[test]
    fn what_is_no_message_is_told() {
        let error = |mut bytes: &[u8]| read_message(&mut bytes).unwrap_err().to_string();
        assert_eq!(error(&[]), "BMv2 closed the packet port");
        assert!(error(&[2; 9]).starts_with("no nanomsg message"));
        assert!(error(&[1, 255, 0, 0, 0, 0, 0, 0, 0]).starts_with("no nanomsg message"));
        assert_eq!(error(&out(5, &[1, 2])[..20]), "packet port");
    }

    #[test]
    fn frames_go_to_and_fro_and_other_messages_are_passed_over() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("packets");
        let listener = UnixListener::bind(&path).unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = vec![0; 8 + 9 + 12 + 2];
            stream.write_all(&GREETING).unwrap();
            stream.read_exact(&mut got).unwrap();
            let mut other = message(0, &[]);
            other[9..13].copy_from_slice(&6u32.to_ne_bytes());
            let all = [other, out(7, &got[29..]), out(511, &[])].concat();
            stream.write_all(&all).unwrap();
            got
        });
        let mut port = PacketPort::connect(&path).unwrap();
        assert_eq!(port.receive(Duration::ZERO).unwrap(), None);
        port.send(3, &[0xaa, 0xbb]).unwrap();
        let mut receive = || port.receive(Duration::from_secs(10));
        assert_eq!(receive().unwrap(), Some((7, vec![0xaa, 0xbb])));
        assert_eq!(receive().unwrap(), Some((511, vec![])));
        let got = peer.join().unwrap();
        assert_eq!(got[8..17], [1, 0, 0, 0, 0, 0, 0, 0, 14]);
        assert!(receive().is_err());
    }

    #[test]
    fn keys_are_written_as_the_cli_reads_them() {
        let bits = |width, value: u64| Bits::from_limbs(width, &[value]);
        let key = EntryKey {
            matches: vec![
                KeyMatch::Exact(bits(9, 0)),
                KeyMatch::Lpm {
                    value: bits(32, 0x0a00_0000),
                    prefix_len: 8,
                },
                KeyMatch::Ternary {
                    value: bits(16, 0x100),
                    mask: bits(16, 0xff00),
                },
                KeyMatch::Range {
                    low: bits(16, 1),
                    high: bits(16, 0x1f),
                },
                KeyMatch::Optional(Some(bits(9, 3))),
                KeyMatch::Optional(None),
            ],
            priority: 3,
        };
        assert_eq!(
            keys_text(&key),
            "0x00 0x0a000000/8 0x0100&&&0xff00 0x01->0x1f 0x03&&&0x01ff 0x0&&&0x0"
        );
    }
}
