// SPDX-License-Identifier: Apache-2.0
//! Applications of flows, for simulated hosts (`netsim`) and real ones (`flows`): the same settings, chance and instants. They
//! know no network.
//!
//! | module | idea |
//! |---|---|
//! | `config` | kinds and their settings, from JSON, checked |
//! | `state` | an application as a state machine, and the player of an adaptive video |
//! | `chance` | the seeded generators of a flow |
//! | `ports` | source ports of a flow whose transfers have a connection each |

#![forbid(unsafe_code)]

mod chance;
mod config;
mod ports;
mod state;

pub use chance::Chance;
pub use config::{
    settings_of, within, App, Bytes, CbrUdp, Command, Distribution, Interactive, NotAllowed, OnOff,
    Video, Web, PATH_GOES_ON,
};
pub use ports::LaterPorts;
pub use state::{AppState, Close, Step, Work};

/// Nanoseconds of virtual time.
pub type Nanos = u64;
