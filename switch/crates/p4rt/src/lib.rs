// SPDX-License-Identifier: Apache-2.0
//! P4Runtime 1.5 server over a device handle.
//!
//! | module | idea |
//! |---|---|
//! | `server` | the gRPC service and its socket: `Server`, `serve` |
//! | `stream`, `clients`, `arbitration` | the clients' streams, and who of them is primary |
//! | `pipeline`, `config`, `binding` | forwarding pipeline configs; P4Info ids bound to the pipeline's objects |
//! | `write`, `read` | the two calls, over `entity`: one file for each P4Runtime entity |
//! | `target`, `soft` | what updates are applied to; what the server itself must remember |
//! | `events`, `digests` | what the device tells, on its way to the clients |
//! | `bytestring`, `error`, `proto` | values, errors and messages |

mod arbitration;
mod binding;
mod bytestring;
mod clients;
mod config;
mod digests;
mod entity;
mod error;
mod events;
mod pipeline;
pub mod proto;
mod read;
mod server;
mod shared;
mod soft;
mod stream;
mod target;
mod write;

pub use server::{serve, ServeError, Server, ServerOptions, API_VERSION};
