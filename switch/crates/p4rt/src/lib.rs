// SPDX-License-Identifier: Apache-2.0
//! P4Runtime 1.5 server over a device handle.
//!
//! | module | idea |
//! |---|---|
//! | `server` | the gRPC service and its socket: `Server` |
//! | `local` | the same calls without gRPC and threads, at an instant of virtual time: `Local` |
//! | `stream`, `clients`, `arbitration` | the clients' streams, and who of them is primary |
//! | `pipeline`, `config`, `binding` | forwarding pipeline configs; P4Info ids bound to the pipeline's objects |
//! | `write`, `read` | the two calls, over `entity`: one file for each P4Runtime entity |
//! | `target`, `soft` | what updates are applied to; what the server itself must remember |
//! | `events`, `digests`, `clock` | what the device tells, on its way to the clients, and by which clock |
//! | `connections`, `gate`, `answers` | the TCP connections and their limits; what every request passes before it is read; long answers |
//! | `budget` | what all clients together may hold |
//! | `tls` | certificates, and what a client may do by its own |
//! | `trace` | the service `fairlane.v1.Switch` |
//! | `bytestring`, `error` | values and errors; the messages are of the crate `proto` |

#![forbid(unsafe_code)]

pub use proto;

mod answers;
mod arbitration;
mod binding;
pub mod budget;
mod bytestring;
mod clients;
mod clock;
mod config;
mod connections;
mod digests;
mod entity;
mod error;
mod events;
mod gate;
pub mod local;
mod pipeline;
mod read;
mod server;
mod shared;
mod soft;
mod stream;
mod target;
mod tls;
mod trace;
mod write;

pub use answers::Answers;
pub use arbitration::OBSERVER_ROLE;
pub use connections::Limits;
pub use error::short;
pub use local::Local;
pub use server::{Server, ServerOptions, API_VERSION};
pub use tls::Tls;
