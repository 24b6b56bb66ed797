// SPDX-License-Identifier: Apache-2.0
//! What both programs can be asked to do, and what both do with many tests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{ensure, Context, Result};

use crate::compile;
use crate::corpus::Test;

/// Options of both programs.
#[derive(clap::Args)]
pub struct Common {
    /// Also looks here for the program of an STF file (P4Testgen writes its tests into a folder of their own).
    #[arg(long)]
    pub programs: Vec<PathBuf>,
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

/// How a test went, in a word, and what there is to say: nothing where all is well.
pub type Verdict = (&'static str, String);

/// p4c does not compile the program: says nothing about the switch.
pub const NOT_COMPILED: &str = "not compiled";

/// How all tests went.
#[derive(Default)]
pub struct Verdicts {
    counts: BTreeMap<&'static str, usize>,
    pub lines: Vec<String>,
}

impl Verdicts {
    /// How many tests went so.
    pub fn count(&self, word: &str) -> usize {
        self.counts.get(word).copied().unwrap_or_default()
    }

    fn add(&mut self, test: &Test, (word, text): Verdict) {
        *self.counts.entry(word).or_default() += 1;
        // Of those without a test nobody expects that they are compiled.
        if !text.is_empty() && (word != NOT_COMPILED || test.stf.is_some()) {
            self.lines
                .push(format!("  {word:13} {}: {text}", test.name));
        }
    }
}

impl Common {
    /// Judges those of `tests` that the filter chooses by their programs' BMv2 JSON, some at a time.
    ///
    /// # Errors
    /// None is chosen.
    ///
    /// # Panics
    /// When `judge` does.
    pub fn judge(
        &self,
        mut tests: Vec<Test>,
        judge: impl Fn(&Test, &[u8]) -> Verdict + Sync,
    ) -> Result<Verdicts> {
        tests.retain(|t| t.name.contains(&self.filter));
        ensure!(
            !tests.is_empty(),
            "no test has `{}` in its name",
            self.filter
        );
        let next = Mutex::new(tests.iter());
        let verdicts = Mutex::new(Verdicts::default());
        let work = || loop {
            let Some(test) = next.lock().expect("no panic").next() else {
                return;
            };
            let verdict = match compile::compile(test, &self.p4c_bm2_ss, &self.cache) {
                Ok(json) => judge(test, &json),
                Err(error) => (NOT_COMPILED, first_line(&error)),
            };
            verdicts.lock().expect("no panic").add(test, verdict);
        };
        std::thread::scope(|scope| {
            (0..self.jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
        });
        Ok(verdicts.into_inner().expect("no panic"))
    }

    /// Prints the report, lines in order of name and then the summary, and writes it where it is wanted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn report(&self, verdicts: Verdicts, summary: &str) -> Result<()> {
        let mut lines = verdicts.lines;
        lines.sort();
        let lines: String = lines.into_iter().map(|line| line + "\n").collect();
        let text = format!("{lines}{summary}\n");
        print!("{text}");
        let Some(path) = &self.report else {
            return Ok(());
        };
        std::fs::write(path, text).with_context(|| path.display().to_string())
    }
}

/// The exit code of a program: 0, 1 when something is not as it should be, 2 when it could not work.
pub fn exit(program: &str, result: Result<usize>) -> ExitCode {
    match result {
        Ok(bad) => ExitCode::from(u8::from(bad > 0)),
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The first line of an error that is not empty.
pub fn first_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines();
    let line = lines.find(|l| !l.trim().is_empty());
    line.unwrap_or("(no message)").to_string()
}
