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
use serde::{Deserialize, Serialize};

use crate::cover::Cover;
use crate::guard::{self, Limits};
use crate::input::Input;
use crate::mutate::{mutate, Places};
use crate::targets::Target;

/// How a campaign runs.
pub struct Options {
    pub seed: u64,
    pub executions: u64,
    pub time: Duration,
    pub limits: Limits,
    /// Where the input at work is written, for who finds this process ended.
    pub current: PathBuf,
    /// Inputs that reached something new are kept here, and taken from here; None: neither.
    pub grown: Option<PathBuf>,
}

/// What a campaign did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub executions: u64,
    pub seconds: f64,
    /// Inputs that reached something new.
    pub corpus: usize,
    /// Regions of the code reached, and all; None where the build does not count them.
    pub reached: Option<(usize, usize)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} executions in {:.0} s, ",
            self.executions, self.seconds
        )?;
        match self.reached {
            Some((reached, all)) => write!(
                f,
                "{reached} of {all} regions of the code, {} inputs that reached more: ",
                self.corpus
            )?,
            None => write!(f, "coverage not counted in this build: ")?,
        }
        write!(f, "nothing found")
    }
}

/// Where a process leaves the input at work, and what it keeps for the next time.
pub fn workplace(target: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/fuzz")
        .join(target);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// The findings that are kept for a target: inputs that once were findings, and must be none.
pub fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
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

/// Keeps an input under a name that its content gives.
pub fn keep(folder: &Path, input: &Input) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&(&input.base, &input.edits))
        .unwrap_or_default()
        .hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    let text = serde_json::to_string_pretty(input).unwrap_or_default() + "\n";
    let kept = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
    kept.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// Runs a target.
///
/// # Errors
/// The first finding: its input, made small, with the sentence.
pub fn run(name: &str, target: &mut Target, options: &Options) -> Result<Report, Box<Input>> {
    let start = Instant::now();
    let mut random = SmallRng::seed_from_u64(options.seed);
    let places = target.bases.iter();
    let places: Vec<Places> = places.map(|(name, doc)| Places::find(name, doc)).collect();
    let mut cover = Cover::default();
    let mut report = Report::default();
    let mut pool: Vec<Input> = Vec::new();
    let kept = inputs(&corpus(name)).into_iter();
    let grown = options.grown.iter().flat_map(|folder| inputs(folder));
    let kept = kept.chain(grown).map(|(_, input)| input);
    let plain: Vec<Input> = target
        .bases
        .iter()
        .map(|(name, _)| Input::of(name))
        .collect();
    let mut known = plain.into_iter().chain(kept);
    while report.executions < options.executions && start.elapsed() < options.time {
        let first = known.next();
        let given = first.is_some();
        let input = match first {
            Some(input) => input,
            None => {
                let from = pool.choose(&mut random).expect("the documents are in it");
                mutate(from, &pool, &places, &mut random)
            }
        };
        cover.start();
        if let Err(finding) = execute(target, &input, options) {
            let small = shrink(target, input, options);
            return Err(Box::new(Input {
                finding: Some(finding),
                ..small
            }));
        }
        report.executions += 1;
        if cover.is_new() || given {
            if !given {
                report.corpus += 1;
                if let Some(grown) = &options.grown {
                    keep(grown, &input);
                }
            }
            pool.push(input);
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    report.reached = cover.reached();
    Ok(report)
}

fn execute(target: &mut Target, input: &Input, options: &Options) -> Result<(), String> {
    let text = serde_json::to_string_pretty(input).map_err(|e| e.to_string())?;
    fs::write(&options.current, text).map_err(|e| format!("{}: {e}", options.current.display()))?;
    let Target { bases, run } = target;
    guard::run(options.limits, || run(input.document(bases)))
}

/// The same finding, or another one, with fewer edits.
fn shrink(target: &mut Target, mut input: Input, options: &Options) -> Input {
    let mut at = 0;
    while at < input.edits.len() {
        let mut less = input.clone();
        less.edits.remove(at);
        match execute(target, &less, options) {
            Err(_) => input = less,
            Ok(()) => at += 1,
        }
    }
    input
}
