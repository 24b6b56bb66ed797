// SPDX-License-Identifier: Apache-2.0
//! One program on a `Device` and on BMv2: the same entries, the same packets, what leaves compared; and which differences are
//! known, and why they are right.

use std::time::Duration;

use anyhow::Result;

use crate::bmv2::{self, Bmv2};
use crate::control::{Sent, Switch};
use crate::mutate::Input;
use crate::run::by_port;
use crate::stf::{Command, Statement};

/// How long BMv2 may take for what it is expected to send.
const PATIENCE: Duration = Duration::from_secs(3);
/// Nobody expects more of it after this silence, when each packet is watched on its own.
const SILENCE: Duration = Duration::from_millis(150);
/// The same after the last packet.
const LAST_SILENCE: Duration = Duration::from_millis(300);

/// What is done to both.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    Control(&'a Statement),
    Packet(Input),
}

/// The statements of a test, its packets among them, then further packets.
pub fn steps(statements: &[Statement], more: Vec<Input>) -> Vec<Step<'_>> {
    let own = statements.iter().map(|statement| match &statement.command {
        Command::Packet { port, frame } => Step::Packet((*port, frame.clone())),
        _ => Step::Control(statement),
    });
    own.chain(more.into_iter().map(Step::Packet)).collect()
}

/// The first thing that is not the same, and which step it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub step: usize,
    pub text: String,
}

/// Does the steps to both and compares. `watch_all`: every packet has its own time, so that a packet too many is seen
/// at the one that brought it out.
///
/// # Errors
/// When the comparison cannot be made: BMv2 does not take the program, or ended.
pub fn differ(json: &[u8], steps: &[Step], watch_all: bool) -> Result<Option<Difference>> {
    let mut theirs = Bmv2::start(json)?;
    let mut ours = match Switch::new(json) {
        Ok(switch) => switch,
        Err(error) => {
            let text = format!("BMv2 takes the program, we do not: {error:#}");
            return Ok(Some(Difference { step: 0, text }));
        }
    };
    for (index, step) in steps.iter().enumerate() {
        ours.step();
        let text = match step {
            Step::Control(statement) => control(&mut ours, &mut theirs, statement)?,
            Step::Packet((port, frame)) => {
                let last = index + 1 == steps.len();
                let silence = match (last, watch_all) {
                    (true, _) => LAST_SILENCE,
                    (false, true) => SILENCE,
                    (false, false) => Duration::ZERO,
                };
                let ours = ours.packet(*port, frame)?;
                let theirs = exchange(&mut theirs, *port, frame, ours.len(), silence)?;
                let text = compare(&ours, &theirs);
                text.map(|text| format!("packet by port {port}: {}\n{text}", hex::encode(frame)))
            }
        };
        if let Some(text) = text {
            return Ok(Some(Difference { step: index, text }));
        }
    }
    Ok(None)
}

/// What the two make of a statement, when it is not the same.
fn control(ours: &mut Switch, theirs: &mut Bmv2, statement: &Statement) -> Result<Option<String>> {
    let changes = ours.changes(&statement.command)?;
    let texts = changes.iter().map(|c| bmv2::command(ours.pipeline(), c));
    let commands = texts.collect::<Result<Vec<String>>>()?;
    let their_answer = commands.iter().try_for_each(|text| theirs.command(text));
    theirs.alive()?;
    let our_answer = changes.iter().try_for_each(|change| ours.apply(change));
    let line = statement.line;
    Ok(match (our_answer, their_answer) {
        (Ok(()), Err(e)) => Some(format!(
            "line {line} of the test: we take it, BMv2 does not: {e:#}\n      {}",
            commands.join("; ")
        )),
        (Err(e), Ok(())) => Some(format!(
            "line {line} of the test: BMv2 takes it, we do not: {e:#}"
        )),
        _ => None,
    })
}

/// Sends a frame, and takes what comes: `count` frames are waited for.
fn exchange(
    bmv2: &mut Bmv2,
    port: u32,
    frame: &[u8],
    count: usize,
    silence: Duration,
) -> Result<Vec<Sent>> {
    bmv2.packets.send(port, frame)?;
    let mut out = Vec::new();
    loop {
        let wait = if out.len() < count { PATIENCE } else { silence };
        match bmv2.packets.receive(wait) {
            Ok(Some(sent)) => out.push(sent),
            Ok(None) => return Ok(out),
            Err(error) => {
                std::thread::sleep(Duration::from_millis(100));
                bmv2.alive()?;
                return Err(error);
            }
        }
    }
}

/// Frames in order on every port: what differs, or None.
pub fn compare(ours: &[Sent], theirs: &[Sent]) -> Option<String> {
    let show = |sent: &[Sent]| {
        let port = |(port, frames): (u32, Vec<&[u8]>)| {
            let frames: Vec<String> = frames.iter().map(hex::encode).collect();
            format!("port {port}: {}", frames.join(", "))
        };
        let ports: Vec<String> = by_port(sent).into_iter().map(port).collect();
        match ports.is_empty() {
            true => "nothing".to_string(),
            false => ports.join("; "),
        }
    };
    let (ours, theirs) = (show(ours), show(theirs));
    (ours != theirs).then(|| format!("      we send   {ours}\n      BMv2 sends {theirs}"))
}

/// Differences from BMv2 that are known and right. The table's rows: `| program, program | what differs, and why |`.
const EXPLANATIONS: &str = include_str!("../differences.md");

/// Why the program `name` differs from BMv2, when that is known.
pub fn explanation(name: &str) -> Option<&'static str> {
    rows(EXPLANATIONS).find_map(|(programs, reason)| programs.contains(&name).then_some(reason))
}

fn rows(document: &str) -> impl Iterator<Item = (Vec<&str>, &str)> {
    document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let names = cells.next()?;
        let reason = cells.next()?;
        let names = names.split('`').map(str::trim);
        let programs = names.filter(|n| !n.is_empty() && *n != ",").collect();
        Some((programs, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stf;

    #[test]
    fn order_counts_on_a_port_and_not_between_ports() {
        let (a, b, c) = ((1, vec![1]), (2, vec![2]), (1, vec![3]));
        let all = |frames: &[&Sent]| frames.iter().map(|f| (*f).clone()).collect::<Vec<_>>();
        assert_eq!(compare(&all(&[&a, &b, &c]), &all(&[&b, &a, &c])), None);
        let text = compare(&all(&[&a, &b, &c]), &all(&[&c, &b, &a])).unwrap();
        assert!(
            text.contains("we send   port 1: 01, 03; port 2: 02"),
            "{text}"
        );
        let text = compare(&all(&[&a]), &[]).unwrap();
        assert!(text.contains("BMv2 sends nothing"), "{text}");
        assert_eq!(compare(&[], &[]), None);
    }

    #[test]
    fn the_tests_own_packets_are_steps_in_their_place() {
        let statements = stf::parse("packet 1 01\nadd t k:1 a()\npacket 2 02").unwrap();
        let steps = steps(&statements, vec![(3, vec![3])]);
        let ports: Vec<Option<u32>> = steps
            .iter()
            .map(|s| match s {
                Step::Packet((port, _)) => Some(*port),
                Step::Control(_) => None,
            })
            .collect();
        assert_eq!(ports, [Some(1), None, Some(2), Some(3)]);
    }

    #[test]
    fn a_row_names_programs_and_a_reason() {
        let text = "# x\n| program | what, and why |\n|---|---|\n| `a/b`, `c` | random numbers | yes |\n| d | no |\n";
        let all: Vec<_> = rows(text).collect();
        assert_eq!(all, [(vec!["a/b", "c"], "random numbers")]);
        assert_eq!(explanation("no such program"), None);
    }

    #[test]
    fn a_program_is_named_once() {
        let mut all: Vec<&str> = rows(EXPLANATIONS).flat_map(|(all, _)| all).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
