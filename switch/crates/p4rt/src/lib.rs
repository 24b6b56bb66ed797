// SPDX-License-Identifier: Apache-2.0
//! P4Runtime 1.5 server over a device handle.
//!
//! | module | idea |
//! |---|---|
//! | `server` | the gRPC service and its socket: `Server` |
//! | `local` | the same calls without gRPC and threads, at an instant of virtual time: `Local` |
//! | `stream`, `arbitration` | the clients' streams, and who of them is primary |
//! | `pipeline`, `binding` | forwarding pipeline configs; P4Info ids bound to the pipeline's objects |
//! | `write`, `read` | the two calls, over `entity`: a file for each kind of P4Runtime entities |
//! | `soft` | what updates are applied to; what the server itself must remember |
//! | `shared` | what all calls share, and by which clock |
//! | `events`, `digests` | what the device tells, on its way to the clients |
//! | `connections`, `gate` | the TCP connections, their limits and certificates, and what a client may do by its own; what every request passes before it is read |
//! | `budget` | what all clients together may hold; long answers |
//! | `trace` | the service `fairlane.v1.Switch` |
//! | `bytestring`, `error` | values and errors; the messages are of the crate `proto` |

#![forbid(unsafe_code)]

pub use proto;

mod arbitration;
mod binding;
pub mod budget;
mod bytestring;
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
mod trace;
mod write;

pub use arbitration::OBSERVER_ROLE;
pub use budget::Answers;
pub use connections::{Limits, Tls};
pub use error::short;
pub use local::Local;
pub use server::{Server, ServerOptions, API_VERSION};
