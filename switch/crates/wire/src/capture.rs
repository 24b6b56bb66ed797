// SPDX-License-Identifier: Apache-2.0
//! Captures of links by the control socket: what is running, and where its frames come from.

use crate::network::{Network, DIRECTIONS};
use crate::request::{missing, nothing_left, take_number, take_word, Fields};
use ::capture::{Interface, Limits, Live, Recorder, SNAP_BYTES, SNAP_BYTES_ALLOWED};
use fabric::{Passage, See, Tap};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use traffic::link::Range;
use traffic::Nanos;

/// Captures at a time: each costs a thread and its memory.
const CAPTURES_MAX: usize = 16;
const ENDS: [&str; 2] = ["a", "b"];
const DURATION_US: Range = Range::new(1e3, 86_400e6, " µs", false);
const PACKETS: Range = Range::new(1.0, 1e12, " packets", true);
const SNAP: Range = Range::new(
    *SNAP_BYTES_ALLOWED.start() as f64,
    *SNAP_BYTES_ALLOWED.end() as f64,
    " bytes",
    true,
);

/// A capture that has begun.
struct Running {
    live: Live,
    file: PathBuf,
    /// Of its taps.
    id: u64,
    link: usize,
}

/// The captures of a network.
#[derive(Default)]
pub struct Captures {
    running: Vec<Running>,
    begun: u64,
}

impl Captures {
    /// `capture`: begins one of `link`. The file is created by its thread: `capture_state` says what is wrong with it.
    ///
    /// # Errors
    /// One sentence that says what cannot be taken.
    pub(crate) fn begin(
        network: &mut Network,
        link: usize,
        directions: std::ops::Range<usize>,
        mut request: Fields,
        now: Nanos,
    ) -> Result<Fields, String> {
        let file = take_file(&mut request)?;
        let end = take_word(&mut request, "at", &ENDS)?.unwrap_or_default();
        let mut optional = |key: &str, range: Range| take_number(&mut request, key, range);
        let packets = optional("packets", PACKETS)?.map(|packets| packets as u64);
        let duration = optional("duration_us", DURATION_US)?;
        let snap_bytes = optional("snap_bytes", SNAP)?.map_or(SNAP_BYTES, |bytes| bytes as u32);
        nothing_left(
            &request,
            "op, link, direction, at, file, packets, duration_us, snap_bytes",
        )?;
        let captures = &network.captures.running;
        if captures.iter().any(|one| one.file == file) {
            let file = file.display();
            return Err(format!("{file} is the file of another capture already"));
        }
        if captures.len() >= CAPTURES_MAX {
            return Err(format!("{CAPTURES_MAX} captures run already, no more can"));
        }
        let name = &network.names()[link];
        let interfaces = directions
            .clone()
            .map(|direction| Interface::of_link(name, DIRECTIONS[direction], ENDS[end]));
        let limits = Limits {
            packets,
            duration: duration.map(|us| Duration::from_nanos((us * 1e3) as u64)),
        };
        let begun = Live::start(file.clone(), interfaces.collect(), snap_bytes, limits);
        let (live, recorder) = begun.map_err(|e| format!("a thread for the capture: {e}"))?;
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let offset = (unix.unwrap_or_default().as_nanos() as Nanos).saturating_sub(now);
        let recorder = Arc::new(Mutex::new(recorder));
        network.captures.begun += 1;
        let id = network.captures.begun;
        for (interface, direction) in (0..).zip(directions) {
            let tap = Tap {
                passage: Passage::at_end(end, direction),
                id,
                see: seeing(recorder.clone(), interface, offset),
            };
            network.taps(2 * link + direction).push(tap);
        }
        network.captures.running.push(Running {
            live,
            file,
            id,
            link,
        });
        Ok(Fields::new())
    }

    /// `capture_state`: how far one is, which may be told to stop. One that is over is forgotten with that.
    ///
    /// # Errors
    /// There is no such capture, or a key that cannot be taken.
    pub(crate) fn state(network: &mut Network, mut request: Fields) -> Result<Fields, String> {
        let file = take_file(&mut request)?;
        let stop = match request.shift_remove("stop") {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(other) => return Err(format!("stop: {other} is not known; allowed: true, false")),
        };
        nothing_left(&request, "op, file, stop")?;
        let running = &network.captures.running;
        let at = running.iter().position(|one| one.file == file);
        let at = at.ok_or_else(|| format!("there is no capture into {}", file.display()))?;
        let live = &running[at].live;
        if stop {
            live.stop();
        }
        let progress = live.progress();
        if progress.is_done {
            let ended = network.captures.running.swap_remove(at);
            Self::untap(network, &ended);
        }
        let shown = json!({"packets": progress.packets, "lost": progress.lost, "done": progress.is_done, "error": progress.error});
        Ok(shown.as_object().cloned().unwrap_or_default())
    }

    /// Forgets those that ended because nobody asked for them any more.
    pub(crate) fn tidy(network: &mut Network) {
        let running = std::mem::take(&mut network.captures.running);
        let (left, over): (Vec<_>, Vec<_>) = running
            .into_iter()
            .partition(|one| !one.live.is_abandoned());
        network.captures.running = left;
        over.iter().for_each(|one| Self::untap(network, one));
    }

    fn untap(network: &mut Network, ended: &Running) {
        for direction in 0..2 {
            let taps = network.taps(2 * ended.link + direction);
            taps.retain(|tap| tap.id != ended.id);
        }
    }
}

fn seeing(recorder: Arc<Mutex<Recorder>>, interface: u32, offset: Nanos) -> See {
    Box::new(move |at, frame| {
        // The packet thread alone has it.
        let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.record(interface, at + offset, frame);
    })
}

fn take_file(request: &mut Fields) -> Result<PathBuf, String> {
    match request.shift_remove("file") {
        Some(Value::String(path)) if path.starts_with('/') => Ok(PathBuf::from(path)),
        Some(other) => Err(format!(
            "file: {other} is not a file; allowed: a whole path"
        )),
        None => Err(missing("file")),
    }
}
