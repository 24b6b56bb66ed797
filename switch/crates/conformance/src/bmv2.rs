// SPDX-License-Identifier: Apache-2.0
//! BMv2's simple_switch in a process of its own, without root: frames over its packet port, commands by simple_switch_CLI.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, Instant};

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

/// A running simple_switch; it ends with this value.
pub struct Bmv2 {
    switch: Child,
    cli: Child,
    commands: ChildStdin,
    /// What it printed between two prompts.
    answers: Receiver<String>,
    pub packets: PacketPort,
    folder: PathBuf,
}

/// Ends a process when it is dropped before it is part of a [`Bmv2`].
struct Guard(Option<Child>, PathBuf);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
            let _ = std::fs::remove_dir_all(&self.1);
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Bmv2 {
    /// Starts it on a program's BMv2 JSON.
    ///
    /// # Errors
    /// What it says when it does not take the program.
    pub fn start(json: &[u8]) -> Result<Bmv2, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("differential-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let file = folder.join("program.json");
        std::fs::write(&file, json).map_err(|e| format!("{}: {e}", file.display()))?;
        let log = std::fs::File::create(folder.join("log")).map_err(|e| e.to_string())?;
        let thrift = free_port()?;
        let address = |name: &str| format!("ipc://{}", folder.join(name).display());
        let switch = Command::new(SWITCH)
            .args(["--device-id", &number.to_string()])
            .args(["--thrift-port", &thrift.to_string()])
            .args(["--packet-in", &address("packets")])
            .args(["--notifications-addr", &address("notifications")])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|e| e.to_string())?)
            .stderr(log)
            .spawn()
            .map_err(|e| format!("{SWITCH}: {e}"))?;
        let mut guard = Guard(Some(switch), folder.clone());
        let packets = until(|| {
            alive(guard.0.as_mut().expect("started"), &folder)?;
            Ok(PacketPort::connect(&folder.join("packets")).ok())
        })?;
        until(|| {
            alive(guard.0.as_mut().expect("started"), &folder)?;
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, thrift)).ok())
        })?;
        let mut cli = Command::new(CLI)
            .args(["--thrift-port", &thrift.to_string()])
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{CLI}: {e}"))?;
        let commands = cli.stdin.take().expect("piped");
        let output = cli.stdout.take().expect("piped");
        let (sender, answers) = channel();
        std::thread::spawn(move || read_answers(output, &sender));
        let mut bmv2 = Bmv2 {
            switch: guard.0.take().expect("started"),
            cli,
            commands,
            answers,
            packets,
            folder,
        };
        bmv2.answer()?;
        Ok(bmv2)
    }

    /// Gives a command to simple_switch_CLI.
    ///
    /// # Errors
    /// Its refusal.
    pub fn command(&mut self, text: &str) -> Result<(), String> {
        let written = self.commands.write_all(format!("{text}\n").as_bytes());
        written.map_err(|e| format!("{CLI}: {e}"))?;
        let answer = self.answer()?;
        let refused = answer.lines().find(|line| is_refusal(line));
        refused.map_or(Ok(()), |line| Err(line.trim().to_string()))
    }

    fn answer(&mut self) -> Result<String, String> {
        match self.answers.recv_timeout(ANSWER) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                alive(&mut self.switch, &self.folder)?;
                Err(format!("{CLI} does not answer"))
            }
        }
    }

    /// # Errors
    /// When it has ended.
    pub fn alive(&mut self) -> Result<(), String> {
        alive(&mut self.switch, &self.folder)
    }
}

impl Drop for Bmv2 {
    fn drop(&mut self) {
        end(&mut self.cli);
        end(&mut self.switch);
        let _ = std::fs::remove_dir_all(&self.folder);
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

fn alive(switch: &mut Child, folder: &Path) -> Result<(), String> {
    match switch.try_wait() {
        Ok(None) => Ok(()),
        Ok(Some(status)) => {
            let log = std::fs::read(folder.join("log")).unwrap_or_default();
            Err(format!("{SWITCH} ended ({status}): {}", last_line(&log)))
        }
        Err(e) => Err(format!("{SWITCH}: {e}")),
    }
}

/// Asks until there is an answer.
fn until<T>(mut ask: impl FnMut() -> Result<Option<T>, String>) -> Result<T, String> {
    let end = Instant::now() + START;
    loop {
        if let Some(found) = ask()? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(format!("{SWITCH} is not ready after {} s", START.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    Ok(address.port())
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
