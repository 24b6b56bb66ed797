// SPDX-License-Identifier: Apache-2.0
//! The option that says whether the wire's thread asks for real-time scheduling (`netio::thread` does it).

/// Whether to ask for real-time scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Realtime {
    /// If it is permitted.
    Auto,
    /// Or do not start.
    On,
    Off,
}
