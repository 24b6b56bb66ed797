// SPDX-License-Identifier: Apache-2.0
//! A network in virtual time: P4 switches, links and TCP hosts in an event loop, or in several side by side. No clock; a
//! seed gives the same bytes on every machine, with any number of threads.
//!
//! ```text
//!  application ─► TCP or UDP ─► frame ─► link ─► switch (device: the compiled P4 program, queues) ─► link ─► host ─► TCP
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `simulation` | `Simulation`: what the outside calls |
//! | `config` | what there is and what happens, from JSON, checked |
//! | `error` | what is wrong with a configuration or a request, and where |
//! | `build` | from a configuration to the network |
//! | `partition`, `region`, `windows` | which parts of a large network act alone, one of them, and how they keep step |
//! | crate `fabric` | switches, links with the frames on them, the calendar |
//! | `frame` | Ethernet, IP and UDP headers |
//! | `hosts` | frames in, applications' steps and timers out |
//! | `host`, `sockets`, `flow` | a host; the connections' ends and who takes what; a flow |
//! | `machine` | real hosts: a User-mode Linux in the same calendar |
//! | `capture` | frames of links in files |
//! | `series` | samples in columns |
//! | `results` | reports: flows, ports, links, hosts, switches, transfers |

#![forbid(unsafe_code)]

mod build;
mod capture;
pub mod config;
mod error;
mod flow;
mod frame;
mod host;
mod hosts;
mod machine;
mod partition;
mod region;
mod results;
mod samples;
mod series;
mod simulation;
mod sockets;
mod windows;

pub use capture::CaptureReport;
pub use config::{Config, Direction, LinkSettings};
pub use device::{Device, Nanos};
pub use error::{ConfigError, RequestError};
pub use results::{Drops, FlowReport, HostReport, LinkReport, PortReport, SwitchReport, Transfer};
pub use simulation::Simulation;
use traffic::calendar;
pub use traffic::link::{number_of, LinkOptions, SpikeBlocks, Unit};
pub use uml::interrupt_waits;
