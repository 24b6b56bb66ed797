// SPDX-License-Identifier: Apache-2.0
//! Captures of links into files. What the network does never depends on them: when a file cannot be written any more, that is
//! kept for the report, and the run goes on.

use crate::config::CaptureConfig;
use crate::error::ConfigError;
use capture::{CaptureFile, Frame, Interface};
use device::Nanos;
use fabric::{Passage, Tap};
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a capture has come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    pub file: PathBuf,
    /// Frames in it.
    pub packets: u64,
    /// Why it has no more.
    pub error: Option<String>,
}

/// A file that is being written, for the taps at both directions and for the simulation.
#[derive(Clone)]
pub(crate) struct Capture(Arc<Mutex<Records>>);

struct Records {
    report: CaptureReport,
    file: CaptureFile,
    snap_bytes: usize,
    /// Frames come from several regions: each in order, but not among each other.
    is_apart: bool,
    /// Frames that others may still come before.
    pending: Vec<Record>,
}

struct Record {
    at: Nanos,
    interface: u32,
    len_bytes: u32,
    bytes: Box<[u8]>,
}

impl Capture {
    /// Creates the file.
    ///
    /// # Arguments
    /// * `regions` - how many the network has.
    ///
    /// # Errors
    /// [`ConfigError`] with the system's error.
    pub(crate) fn create(config: &CaptureConfig, regions: usize) -> Result<Capture, ConfigError> {
        let interfaces: Vec<Interface> = config
            .direction
            .names()
            .map(|name| Interface::of_link(&config.link, name, config.at.name()))
            .collect();
        let snap_bytes = config.snap_bytes.unwrap_or(capture::SNAP_BYTES);
        let file = CaptureFile::create(&config.file, &interfaces, snap_bytes);
        let file = file.map_err(|error| {
            let message = format!("{} cannot be written: {error}", config.file.display());
            ConfigError::new("captures", message)
        })?;
        Ok(Capture(Arc::new(Mutex::new(Records {
            report: CaptureReport {
                file: config.file.clone(),
                packets: 0,
                error: None,
            },
            file,
            snap_bytes: snap_bytes as usize,
            is_apart: regions > 1,
            pending: Vec::new(),
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees frames as those of an interface of the file.
    pub(crate) fn tap(&self, interface: u32, passage: Passage) -> Tap {
        let capture = self.clone();
        Tap {
            passage,
            id: 0,
            see: Box::new(move |at, frame| capture.lock().take(interface, at, frame)),
        }
    }

    /// No frame will come that was seen before this instant.
    pub(crate) fn settle(&self, before: Nanos) {
        self.lock().settle(before);
    }

    /// What it has come to; the file has all of that.
    pub(crate) fn report(&self) -> CaptureReport {
        let mut records = self.lock();
        records.settle(Nanos::MAX);
        let flushed = records.file.flush();
        records.look(flushed);
        records.report.clone()
    }
}

impl Records {
    fn take(&mut self, interface: u32, at: Nanos, frame: &[u8]) {
        let len_bytes = frame.len() as u32;
        let bytes = &frame[..frame.len().min(self.snap_bytes)];
        match self.is_apart {
            true => self.pending.push(Record {
                at,
                interface,
                len_bytes,
                bytes: bytes.into(),
            }),
            false => self.write(Frame {
                at,
                interface,
                len_bytes,
                bytes,
            }),
        }
    }

    fn settle(&mut self, before: Nanos) {
        let mut pending = std::mem::take(&mut self.pending);
        // Stable: each direction's are in order.
        pending.sort_by_key(|record| (record.at, record.interface));
        let due = pending.partition_point(|record| record.at < before);
        for record in pending.drain(..due) {
            self.write(Frame {
                at: record.at,
                interface: record.interface,
                len_bytes: record.len_bytes,
                bytes: &record.bytes,
            });
        }
        self.pending = pending;
    }

    fn write(&mut self, frame: Frame<'_>) {
        if self.report.error.is_none() {
            let written = self.file.write(frame);
            self.report.packets += u64::from(written.is_ok());
            self.look(written);
        }
    }

    /// Keeps the first thing that went wrong.
    fn look(&mut self, done: io::Result<()>) {
        if let (Err(error), None) = (done, &self.report.error) {
            let file = self.report.file.display();
            self.report.error = Some(format!("{file}: {error}"));
        }
    }
}
