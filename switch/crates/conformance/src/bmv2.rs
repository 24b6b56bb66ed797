// SPDX-License-Identifier: Apache-2.0
//! BMv2's simple_switch in a process of its own, without root: frames over its packet port, commands by simple_switch_CLI.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use tempfile::TempDir;

use crate::nanomsg::PacketPort;

const SWITCH: &str = "simple_switch";
const CLI: &str = "simple_switch_CLI";
const PROMPT: &[u8] = b"RuntimeCmd: ";
/// It starts, and answers a command, in less than a second on an idle machine.
const START: Duration = Duration::from_secs(60);
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

/// simple_switch with the folder of its program, its sockets and its log.
struct Switch {
    process: Process,
    folder: TempDir,
}

impl Switch {
    /// # Errors
    /// When it has ended.
    fn alive(&mut self) -> Result<()> {
        let Some(status) = self.process.0.try_wait().context(SWITCH)? else {
            return Ok(());
        };
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        bail!("{SWITCH} ended ({status}): {}", last_line(&log))
    }

    /// Asks until there is an answer, as long as it lives.
    fn until<T>(&mut self, ask: impl Fn() -> Option<T>) -> Result<T> {
        let end = Instant::now() + START;
        loop {
            self.alive()?;
            if let Some(found) = ask() {
                return Ok(found);
            }
            let late = Instant::now() > end;
            ensure!(!late, "{SWITCH} is not ready after {} s", START.as_secs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A running simple_switch; it ends with this value.
pub struct Bmv2 {
    switch: Switch,
    _cli: Process,
    commands: ChildStdin,
    /// What it printed between two prompts.
    answers: Receiver<String>,
    pub packets: PacketPort,
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
        let mut command = Command::new(CLI);
        command
            .args(["--thrift-port", &thrift.to_string()])
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut cli = Process(command.spawn().context(CLI)?);
        let commands = cli.0.stdin.take().expect("piped");
        let output = cli.0.stdout.take().expect("piped");
        let (sender, answers) = channel();
        std::thread::spawn(move || read_answers(output, &sender));
        let mut bmv2 = Bmv2 {
            switch,
            _cli: cli,
            commands,
            answers,
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
        let written = self.commands.write_all(format!("{text}\n").as_bytes());
        written.context(CLI)?;
        let answer = self.answer()?;
        match answer.lines().find(|line| is_refusal(line)) {
            None => Ok(()),
            Some(line) => bail!("{}", line.trim()),
        }
    }

    fn answer(&mut self) -> Result<String> {
        let answer = self.answers.recv_timeout(ANSWER).ok();
        if answer.is_none() {
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

/// Cuts what simple_switch_CLI prints at its prompts, until it ends.
fn read_answers(output: impl Read, answers: &Sender<String>) {
    let mut text = Vec::new();
    for byte in BufReader::new(output).bytes().map_while(Result::ok) {
        text.push(byte);
        if text.ends_with(PROMPT) {
            let answer = String::from_utf8_lossy(&text[..text.len() - PROMPT.len()]).into_owned();
            if answers.send(answer).is_err() {
                return;
            }
            text.clear();
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let (sender, answers) = channel();
        read_answers(
            &b"hello\nRuntimeCmd: Error: no\nRuntimeCmd: rest"[..],
            &sender,
        );
        drop(sender);
        let all: Vec<String> = answers.iter().collect();
        assert_eq!(all, ["hello\n", "Error: no\n"]);
    }

    #[test]
    fn the_last_line_of_a_log_that_says_something() {
        assert_eq!(last_line(b"one\ntwo \n\n"), "two");
        assert_eq!(last_line(b""), "no message");
    }
}
