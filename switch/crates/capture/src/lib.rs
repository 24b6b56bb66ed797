// SPDX-License-Identifier: Apache-2.0
//! Captures of frames into pcapng files, which Wireshark and tcpdump open; time stamps in nanoseconds.
//!
//! - [`CaptureFile`]: the file.
//! - [`Live`]: a file that a thread of its own writes; who sees the frames never waits for the disk.

#![forbid(unsafe_code)]

mod file;
mod live;

pub use file::{CaptureFile, Frame, Interface};
pub use live::{Limits, Live, Progress, Recorder};

use std::ops::RangeInclusive;

/// Nanoseconds.
pub type Nanos = u64;

/// Bytes of each frame that a file has, where nothing else is asked for: all headers of TCP over IPv4 and IPv6.
pub const SNAP_BYTES: u32 = 128;
/// What may be asked for.
pub const SNAP_BYTES_ALLOWED: RangeInclusive<u32> = 14..=65_535;
