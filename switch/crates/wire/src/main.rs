// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-wire: options, start-up, exit codes.

use clap::Parser;
use netio::thread::Scheduling;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::config;
use wire::run::{Signals, Wire};
use wire::setup::Setup;

/// Emulates links: moves Ethernet frames between interface pairs with delay, jitter, rate, loss and bit errors.
#[derive(Parser)]
#[command(name = "fairlane-wire", version)]
struct Options {
    /// The links, as JSON.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to make the control socket.
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Written when the links carry frames.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    scheduling: Scheduling,
    /// Wake up to this much before an instant, as the machine's latency asks for, and poll for the rest (0 to 1000).
    #[arg(long, default_value_t = 100, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1000))]
    spin_us: u64,
    /// Most frames on all links together (64 to 1048576).
    #[arg(long, default_value_t = 131_072, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    frames: u64,
}

fn main() -> ExitCode {
    netio::panics::end_at_a_panic();
    let options = Options::parse();
    match start(&options) {
        Ok((wire, signals)) => match wire.run(&signals) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("fairlane-wire: waiting for frames failed: {error}");
                ExitCode::FAILURE
            }
        },
        Err(message) => {
            eprintln!("fairlane-wire: {message}");
            ExitCode::from(2)
        }
    }
}

/// Makes everything ready, or says in one sentence what is wrong.
fn start(options: &Options) -> Result<(Wire, Signals), String> {
    let links = config::read(&options.config).map_err(|e| e.to_string())?;
    let signals = Signals::block().map_err(|e| format!("signals: {e}"))?;
    let setup = Setup {
        seed: options.seed,
        spin_us: options.spin_us,
        frames: options.frames as usize,
        control: &options.control,
    };
    let (wire, _) = setup.wire(&links, &[], |_| None)?;
    let scheduling = options.scheduling.apply()?;
    let ready = format!(
        "fairlane-wire: ready links={} scheduling={scheduling} control={}",
        links.len(),
        options.control.display()
    );
    println!("{ready}");
    if let Some(path) = &options.ready_file {
        write_whole(path, &ready).map_err(|e| format!("ready file {}: {e}", path.display()))?;
    }
    Ok((wire, signals))
}

/// The file appears with its whole content, or not at all.
fn write_whole(path: &Path, line: &str) -> std::io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, format!("{line}\n"))?;
    std::fs::rename(&draft, path)
}
