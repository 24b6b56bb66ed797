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

impl Realtime {
    /// Asks for it where it is wanted; returns the scheduling that this thread has now.
    ///
    /// # Errors
    /// A sentence, where it must be had and is not permitted.
    pub fn schedule(self) -> Result<&'static str, String> {
        match (self, netio::thread::schedule_realtime) {
            (Self::Off, _) => Ok("ordinary"),
            (_, schedule) => match (schedule(), self) {
                (Ok(()), _) => Ok("realtime"),
                (Err(e), Self::On) => Err(format!("real-time scheduling is not permitted: {e}")),
                (Err(_), _) => Ok("ordinary"),
            },
        }
    }
}
