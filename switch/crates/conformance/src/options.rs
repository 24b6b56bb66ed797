// SPDX-License-Identifier: Apache-2.0
//! What both programs can be asked to do, and what both do with many tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

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

impl Common {
    /// Those of `tests` that the filter chooses.
    ///
    /// # Errors
    /// None is chosen.
    pub fn choose(&self, mut tests: Vec<Test>) -> Result<Vec<Test>, String> {
        tests.retain(|t| t.name.contains(&self.filter));
        match tests.is_empty() {
            true => Err(format!("no test has `{}` in its name", self.filter)),
            false => Ok(tests),
        }
    }

    /// The BMv2 JSON of a test's program.
    ///
    /// # Errors
    /// The first line of p4c's message.
    pub fn compile(&self, test: &Test) -> Result<Vec<u8>, String> {
        compile::compile(test, &self.p4c_bm2_ss, &self.cache).map_err(|text| first_line(&text))
    }

    /// Runs each test, some at a time: the outcomes in the tests' order.
    ///
    /// # Panics
    /// When `run` does.
    pub fn run_all<R: Send>(&self, tests: &[Test], run: impl Fn(&Test) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let outcomes: Mutex<Vec<Option<R>>> = Mutex::new(tests.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(test) = tests.get(index) else {
                        break;
                    };
                    let outcome = run(test);
                    outcomes.lock().expect("no panic")[index] = Some(outcome);
                });
            }
        });
        let outcomes = outcomes.into_inner().expect("no panic");
        outcomes.into_iter().flatten().collect()
    }

    /// Prints the report, lines in order of name and then the summary, and writes it where it is wanted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn report(&self, mut lines: Vec<String>, summary: String) -> Result<(), String> {
        lines.sort();
        lines.push(summary);
        let text = lines.join("\n") + "\n";
        print!("{text}");
        let write = |path: &Path| std::fs::write(path, &text).map_err(|e| (path.to_owned(), e));
        let written = self.report.as_deref().map_or(Ok(()), write);
        written.map_err(|(path, error)| format!("{}: {error}", path.display()))
    }
}

/// The first line of a message that is not empty.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|l| !l.trim().is_empty());
    line.unwrap_or("(no message)").to_string()
}
