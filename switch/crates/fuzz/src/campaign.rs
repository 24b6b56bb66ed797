// SPDX-License-Identifier: Apache-2.0
//! A campaign: executions of one target, from what is known on, until the first finding or the end of time.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::SeedableRng;

use crate::guard::{self, Cover, Limits};
use crate::input::{mutate, Input, Places};
use crate::targets::{self, Outcome, Target};

/// How a campaign runs.
pub struct Options {
    pub seed: u64,
    pub executions: u64,
    pub time: Duration,
    pub limits: Limits,
    /// Keep inputs that reach something new, and go on from them the next time.
    pub grow: bool,
}

/// What a campaign did that found nothing.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub executions: u64,
    time: Duration,
    /// Inputs that reached something new.
    new: usize,
    /// Regions of the code reached, and all; None where the build does not count them.
    reached: Option<(usize, usize)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        write!(f, "{} executions in {seconds:.0} s, ", self.executions)?;
        match self.reached {
            Some((reached, all)) => write!(
                f,
                "{reached} of {all} regions of the code, {} inputs that reached more: ",
                self.new
            )?,
            None => write!(f, "coverage not counted in this build: ")?,
        }
        write!(f, "nothing found")
    }
}

/// A folder or file of this crate or of its build.
fn place(parts: [&str; 3]) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    parts
        .iter()
        .fold(crate_folder.into(), |at, part| at.join(part))
}

/// The findings that are kept for a target: inputs that once were findings, and must be none.
pub fn corpus(target: &str) -> PathBuf {
    place(["corpus", target, ""])
}

/// The input at work: for who finds its process ended.
pub fn current(target: &str) -> PathBuf {
    place(["../../target/fuzz", target, "current"])
}

/// The inputs in a folder, by name; none where there is no folder.
pub fn inputs(folder: &Path) -> Vec<(PathBuf, Input)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path, serde_json::from_str(&text).ok()?))
    };
    paths.into_iter().filter_map(read).collect()
}

fn write(path: &Path, input: &Input) {
    let text = serde_json::to_string_pretty(input).expect("an input is JSON") + "\n";
    let folder = path.parent().expect("a file is in a folder");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Keeps an input under a name that its content gives.
fn keep(folder: &Path, input: &Input) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    let text = serde_json::to_string(&(&input.base, &input.edits)).expect("an input is JSON");
    text.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    write(&path, input);
    path
}

/// Keeps the input of a finding in the corpus: a sentence about both.
pub fn found(target: &str, finding: &str, mut input: Input) -> String {
    input.finding = Some(finding.to_string());
    let path = keep(&corpus(target), &input);
    format!("FOUND {finding}\n  input: {}", path.display())
}

/// Runs a target.
///
/// # Errors
/// The first finding, whose input, made small, is in the corpus.
///
/// # Panics
/// When there is no target of this name.
pub fn run(name: &str, options: &Options) -> Result<Report, String> {
    let (start, current) = (Instant::now(), current(name));
    let mut target = targets::make(name);
    let mut random = SmallRng::seed_from_u64(options.seed);
    let bases = target.bases.iter();
    let places: Vec<Places> = bases.map(|(name, doc)| Places::find(name, doc)).collect();
    let mut cover = Cover::default();
    let mut report = Report::default();
    let mut pool: Vec<Input> = Vec::new();
    let grown = place(["../../target/fuzz", name, "grown"]);
    let folders = [corpus(name), grown.clone()].into_iter();
    let folders = folders.take(if options.grow { 2 } else { 1 });
    let kept = folders.flat_map(|folder| inputs(&folder));
    let bases = target.bases.iter();
    let plain: Vec<Input> = bases.map(|(name, _)| Input::of(name)).collect();
    let mut known = plain.into_iter().chain(kept.map(|(_, input)| input));
    let Target { bases, run } = &mut target;
    let mut execute = |input: &Input| {
        write(&current, input);
        guard::run(options.limits, || run(input.document(bases)))
    };
    while report.executions < options.executions && start.elapsed() < options.time {
        let first = known.next();
        let given = first.is_some();
        let input = first.unwrap_or_else(|| {
            let from = pool.choose(&mut random).expect("the documents are in it");
            mutate(from, &pool, &places, &mut random)
        });
        cover.start();
        if let Err(finding) = execute(&input) {
            let (finding, small) = shrink(execute, finding, input);
            return Err(found(name, &finding, small));
        }
        report.executions += 1;
        if cover.is_new() || given {
            report.new += usize::from(!given);
            if !given && options.grow {
                keep(&grown, &input);
            }
            pool.push(input);
        }
    }
    report.time = start.elapsed();
    report.reached = cover.reached();
    Ok(report)
}

/// The same finding, or another one, with fewer edits.
fn shrink(
    mut execute: impl FnMut(&Input) -> Outcome,
    mut finding: String,
    mut input: Input,
) -> (String, Input) {
    let mut at = 0;
    while at < input.edits.len() {
        let mut less = input.clone();
        less.edits.remove(at);
        match execute(&less) {
            Err(of_less) => (finding, input) = (of_less, less),
            Ok(()) => at += 1,
        }
    }
    (finding, input)
}
