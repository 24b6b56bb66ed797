// SPDX-License-Identifier: Apache-2.0
//! Each target takes its documents as they are, and inputs that once were findings are none any more. `make fuzz-short`: and it
//! takes mutations of these, always the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Mutex, Once};
use std::time::Duration;

use fuzz::input::{mutate, Input};
use fuzz::memory::Counting;
use fuzz::targets;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::SeedableRng;

#[global_allocator]
static MEMORY: Counting = Counting;

/// No input takes nearly so long.
const LIMIT: Duration = Duration::from_secs(60);
/// As many as two slow cores do in some 20 s; by number, so that every machine runs the same inputs.
const EXECUTIONS: [(&str, usize); 6] = [
    ("program", 7_500),
    ("config", 1_500),
    ("requests", 110),
    ("frames", 5_000),
    ("gnmi", 1_100),
    ("wire", 400),
];

/// The first panic of an execution: also one that the switch itself caught, as the net is there for faults.
static PANIC: Mutex<Option<String>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The inputs that are kept for a target.
fn kept(target: &str) -> Vec<Input> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = fs::read_dir(folder.join(target)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).unwrap());
    let read = |path| read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    paths.iter().map(read).collect()
}

/// Runs a target's documents, what is kept for it, and mutations, so many in all if these are more; the first finding.
fn findings(name: &'static str, executions: usize) -> Result<(), String> {
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANIC.lock().unwrap().get_or_insert(panic.to_string());
            print(panic);
        }));
    });
    let (tell, told) = mpsc::channel();
    let work = std::thread::spawn(move || {
        let mut target = targets::make(name);
        let plain = target.bases.iter().map(|(base, _)| Input::of(base));
        let known: Vec<Input> = plain.chain(kept(name)).collect();
        let mut random = SmallRng::seed_from_u64(1);
        let mut next = || mutate(known.choose(&mut random)?, &target.places, &mut random).into();
        let mutated: Vec<Input> = (known.len()..executions).map_while(|_| next()).collect();
        for input in known.into_iter().chain(mutated) {
            tell.send(serde_json::to_string(&input).unwrap()).unwrap();
            if let Err(finding) = target.execute(&input) {
                panic!("{finding}");
            }
            if PANIC.lock().unwrap().is_some() {
                return;
            }
        }
    });
    let mut input = String::new();
    loop {
        match told.recv_timeout(LIMIT) {
            Ok(next) => input = next,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(format!("{name}: more than {LIMIT:?}: {input}"));
            }
        }
    }
    let _ = work.join();
    match PANIC.lock().unwrap().take() {
        Some(text) => Err(format!("{name}: {text}\n  input: {input}")),
        None => Ok(()),
    }
}

fn nothing_is_found(executions: impl Fn(usize) -> usize) {
    assert_eq!(EXECUTIONS.map(|(name, _)| name), targets::names());
    let each = EXECUTIONS.map(|(name, count)| findings(name, executions(count)));
    let all: Vec<String> = each.into_iter().filter_map(Result::err).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn documents_and_old_findings_are_taken() {
    nothing_is_found(|_| 0);
}

#[test]
#[ignore = "takes 2 minutes: make fuzz-short"]
fn mutations_are_taken() {
    nothing_is_found(|count| count);
}
