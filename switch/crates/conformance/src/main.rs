// SPDX-License-Identifier: Apache-2.0
//! fairlane-conformance: packet tests of v1model programs through the embedded switch, or through it and BMv2.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{bail, ensure, Context, Result};
use clap::Parser;
use conformance::corpus::{self, Test};
use conformance::differ::{differ, explanation, steps, Step};
use conformance::{bmv2, mutate, run, stf};

/// Runs the STF tests of v1model programs through the embedded switch: what leaves is what the files expect. With --bmv2
/// instead: what leaves is what leaves BMv2's simple_switch, packet by packet.
#[derive(Parser)]
struct Options {
    /// p4c's source trees (testdata/p4_16_samples and p4_14_samples are read), or any folders of STF files and programs.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Compare with BMv2.
    #[arg(long)]
    bmv2: bool,
    /// With --bmv2: P4 programs without an STF file as well, with no entries but the program's own.
    #[arg(long, requires = "bmv2")]
    untested: bool,
    /// With --bmv2: packets a program, besides those of its test.
    #[arg(long, default_value_t = 60)]
    packets: usize,
    /// With --bmv2: another number makes other packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also looks here for the program of an STF file (P4Testgen writes its tests into a folder of their own).
    #[arg(long)]
    programs: Vec<PathBuf>,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// The compiler.
    #[arg(long, default_value = "p4c-bm2-ss")]
    p4c_bm2_ss: PathBuf,
    /// Tests at a time.
    #[arg(short, default_value_t = 2)]
    jobs: usize,
    /// Where compiled programs are kept.
    #[arg(long, default_value = "/tmp/conformance-cache")]
    cache: PathBuf,
    /// Also writes the report here.
    #[arg(long)]
    report: Option<PathBuf>,
}

/// How a test went, in a word.
const PASSED: &str = "passed";
/// Not as expected, and an explanation says why.
const KNOWN: &str = "explained";
/// No difference, though one is explained.
const NOT_SEEN: &str = "not seen";
const FAILED: &str = "FAILED";
const DIFFERS: &str = "DIFFERS";
/// No comparison: the STF parser or BMv2 says why.
const NOT_RUN: &str = "not run";
/// p4c does not compile the program: says nothing about the switch.
const NOT_COMPILED: &str = "not compiled";
/// An STF file without a program.
const ORPHAN: &str = "no program";

/// A difference is made sure of by as many runs in which every packet is watched on its own.
const CONFIRM: usize = 2;

/// A word, and what there is to say: nothing where all is well.
type Verdict = (&'static str, String);

/// How all tests went.
#[derive(Default)]
struct Report {
    counts: BTreeMap<&'static str, usize>,
    packets: usize,
    lines: Vec<String>,
}

impl Report {
    fn count(&self, word: &str) -> usize {
        self.counts.get(word).copied().unwrap_or_default()
    }

    fn add(&mut self, name: &str, (word, text): Verdict) {
        *self.counts.entry(word).or_default() += 1;
        let line = match word {
            ORPHAN => format!("  {word:13} {name}.stf"),
            _ if text.is_empty() => return,
            _ => format!("  {word:13} {name}: {text}"),
        };
        self.lines.push(line);
    }
}

impl Options {
    /// The verdict on a test by its program's BMv2 JSON, and the packets that were compared.
    fn judge(&self, test: &Test, json: &[u8]) -> (usize, Verdict) {
        if self.bmv2 {
            return self.compare(test, json);
        }
        let run = || stf::read(test.stf.as_deref()).and_then(|all| run::run(json, &all));
        let verdict = match (catch_unwind(run), run::explanation(&test.name)) {
            (Ok(Ok(())), _) => (PASSED, String::new()),
            (Ok(Err(_)), Some(why)) => (KNOWN, why.to_string()),
            (Ok(Err(error)), None) => (FAILED, format!("{error:#}")),
            (Err(_), _) => (FAILED, "the switch panicked".to_string()),
        };
        (0, verdict)
    }

    fn compare(&self, test: &Test, json: &[u8]) -> (usize, Verdict) {
        let verdict = match (self.difference(test, json), explanation(&test.name)) {
            (Ok((packets, None)), explained) => {
                let verdict = match explained {
                    None => (PASSED, String::new()),
                    Some(_) => (NOT_SEEN, "no difference with these packets; switch/crates/conformance/differences.md explains one".to_string()),
                };
                return (packets, verdict);
            }
            (_, Some(why)) => (KNOWN, why.to_string()),
            (Ok((_, Some(difference))), None) => (DIFFERS, difference),
            (Err(why), None) => (NOT_RUN, first_line(&why)),
        };
        (0, verdict)
    }

    /// Packets, and the difference that is found again when every packet is watched.
    fn difference(&self, test: &Test, json: &[u8]) -> Result<(usize, Option<String>)> {
        let statements = stf::read(test.stf.as_deref())?;
        let more = mutate::packets(&test.name, &statements, self.seed, self.packets);
        let steps = steps(&statements, more);
        let is_packet = |step: &&Step| matches!(step, Step::Packet(_));
        let count = steps.iter().filter(is_packet).count();
        let Some(first) = differ(json, &steps, false)? else {
            return Ok((count, None));
        };
        // One that came late shows at a later packet: the same steps again, each with time of its own.
        let until = (first.step + 1).min(steps.len());
        for _ in 0..CONFIRM {
            if let Some(found) = differ(json, &steps[..until], true)? {
                return Ok((count, Some(found.text)));
            }
        }
        Ok((count, None))
    }

    /// Judges the tests that the filter chooses, some at a time.
    fn report(&self) -> Result<Report> {
        let (mut tests, mut report) = (Vec::new(), Report::default());
        for folder in &self.folders {
            let found = corpus::find(folder, &self.programs, self.untested)?;
            tests.extend(found.tests);
            for name in found.orphans.iter().filter(|_| !self.bmv2) {
                report.add(name, (ORPHAN, String::new()));
            }
        }
        let filter = &self.filter;
        tests.retain(|t| t.name.contains(filter));
        ensure!(!tests.is_empty(), "no test has `{filter}` in its name");
        let (next, report) = (Mutex::new(tests.iter()), Mutex::new(report));
        let work = || loop {
            let Some(test) = next.lock().expect("no panic").next() else {
                return;
            };
            let (packets, verdict) = match corpus::compile(test, &self.p4c_bm2_ss, &self.cache) {
                Ok(json) => self.judge(test, &json),
                // Of those without a test nobody expects that they are compiled.
                Err(_) if test.stf.is_none() => (0, (NOT_COMPILED, String::new())),
                Err(error) => (0, (NOT_COMPILED, first_line(&error))),
            };
            let mut report = report.lock().expect("no panic");
            report.packets += packets;
            report.add(&test.name, verdict);
        };
        std::thread::scope(|scope| {
            (0..self.jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
        });
        Ok(report.into_inner().expect("no panic"))
    }

    /// Runs the tests and prints the report, lines in order of name and then a summary; true when all is as it should be.
    fn run(&self) -> Result<bool> {
        if let Some(name) = bmv2::missing().filter(|_| self.bmv2) {
            bail!("{name} is not on the PATH: a comparison with BMv2 needs simple_switch and simple_switch_CLI (docs/bmv2.md)");
        }
        let mut report = self.report()?;
        let words = [
            PASSED,
            NOT_SEEN,
            FAILED,
            DIFFERS,
            KNOWN,
            NOT_RUN,
            NOT_COMPILED,
        ];
        let count = words.map(|word| report.count(word));
        let [passed, not_seen, failed, differ, known, not_run, not_compiled] = count;
        let summary = match self.bmv2 {
            true => format!(
                "{} programs with {} packets (seed {}) as on BMv2, {differ} differ, {known} differ as switch/crates/conformance/differences.md explains, \
                 {not_run} not run, {not_compiled} not compiled by p4c\n",
                passed + not_seen,
                report.packets,
                self.seed,
            ),
            false => format!(
                "{passed} of {} passed, {failed} failed, {known} cannot pass, {not_compiled} are not compiled by p4c\n",
                count.iter().sum::<usize>(),
            ),
        };
        report.lines.sort();
        report.lines.push(summary);
        let text = report.lines.join("\n");
        print!("{text}");
        if let Some(path) = &self.report {
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        Ok(failed + differ == 0)
    }
}

/// The first line of an error that is not empty.
fn first_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines();
    let line = lines.find(|l| !l.trim().is_empty());
    line.unwrap_or("(no message)").to_string()
}

/// 0, 1 when something is not as it should be, 2 when it could not work.
fn main() -> ExitCode {
    match Options::parse().run() {
        Ok(is_good) => ExitCode::from(u8::from(!is_good)),
        Err(error) => {
            eprintln!("fairlane-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}
