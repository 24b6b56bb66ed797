// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-wire: options, start-up, exit codes.

use clap::Parser;
use netio::poll::Poller;
use netio::socket::{Interface, RingOptions, TxSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::config::{self, LinkConfig};
use wire::control::Control;
use wire::emulator::Emulator;
use wire::pool::FramePool;
use wire::port::Port;
use wire::realtime::Realtime;
use wire::run::{Signals, Wire, CONTROL_TOKEN};
use wire::wakeup::WakeupLatency;

/// Ethernet header and two VLAN tags.
const LINK_HEADER_MAX: usize = 14 + 8;
/// Kernel memory that all receive rings share out among them.
const RING_BYTES_TOTAL: usize = 64 << 20;
const RING_FRAMES_MIN: usize = 128;
const RING_FRAMES_MAX: usize = 4096;
/// Address space of the frame pool; it becomes memory only as far as frames are on the links.
const POOL_BYTES_MAX: usize = 512 << 20;

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
    /// Real-time scheduling of the one thread.
    #[arg(long, value_enum, default_value = "auto")]
    realtime: Realtime,
    /// Wake up to this much before an instant, as the machine's latency asks for, and look for the rest (0 to 1000).
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
    let interfaces = find_interfaces(&links)?;
    let poller = Poller::new().map_err(|e| format!("epoll: {e}"))?;

    let mtu = interfaces.iter().map(|i| i.mtu as usize).max().unwrap_or(0);
    let slot_len = (mtu + LINK_HEADER_MAX).next_multiple_of(64);
    let frames = (options.frames as usize).min(POOL_BYTES_MAX / slot_len);
    let emulator = Emulator::new(&links, options.seed, FramePool::new(frames, slot_len))
        .map_err(|e| e.to_string())?;

    let ring_frames = RING_BYTES_TOTAL / slot_len.next_power_of_two() / interfaces.len();
    let ring_options = RingOptions {
        frames: ring_frames.clamp(RING_FRAMES_MIN, RING_FRAMES_MAX),
    };
    let ports = interfaces
        .iter()
        .zip(0..)
        .map(|(interface, token)| Port::open(interface, ring_options, token, &poller))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let tx = TxSocket::open().map_err(|e| format!("opening a packet socket failed: {e}"))?;
    let control = Control::bind(&options.control, CONTROL_TOKEN, &poller)
        .map_err(|e| format!("control socket {}: {e}", options.control.display()))?;

    netio::thread::no_timer_slack();
    let scheduling = match options.realtime {
        Realtime::Off => Ok("ordinary"),
        _ => netio::thread::schedule_realtime().map(|()| "realtime"),
    };
    let scheduling = match scheduling {
        Err(e) if options.realtime == Realtime::On => {
            return Err(format!("real-time scheduling is not permitted: {e}"))
        }
        other => other.unwrap_or("ordinary"),
    };
    let ready = format!(
        "fairlane-wire: ready links={} scheduling={scheduling} control={}",
        links.len(),
        options.control.display()
    );
    println!("{ready}");
    if let Some(path) = &options.ready_file {
        write_whole(path, &ready).map_err(|e| format!("ready file {}: {e}", path.display()))?;
    }
    let wire = Wire {
        emulator,
        ports,
        tx,
        control,
        poller,
        wakeup: WakeupLatency::new(options.spin_us * 1000),
    };
    Ok((wire, signals))
}

fn find_interfaces(links: &[LinkConfig]) -> Result<Vec<Interface>, String> {
    links
        .iter()
        .flat_map(|link| link.interfaces.iter().map(move |name| (link, name)))
        .map(|(link, name)| {
            Interface::find(name).map_err(|e| format!("link \"{}\": {e}", link.name))
        })
        .collect()
}

/// The file appears with its whole content, or not at all.
fn write_whole(path: &Path, line: &str) -> std::io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, format!("{line}\n"))?;
    std::fs::rename(&draft, path)
}
