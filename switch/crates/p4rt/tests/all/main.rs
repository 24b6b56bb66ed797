// SPDX-License-Identifier: Apache-2.0
//! The server over real connections. One binary, as each one more is linked anew; what counts allocations is apart.

#[path = "../common/mod.rs"]
mod common;

mod arbitration;
mod bulk;
mod config;
mod entities;
mod hostile;
mod loading;
mod local;
mod stream;
mod tables;
mod trace;
