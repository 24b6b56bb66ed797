// SPDX-License-Identifier: Apache-2.0
//! P4Runtime server over a device handle.

/// Message types and services, made at build time.
#[allow(clippy::all)]
pub mod proto {
    tonic::include_proto!("protocols");
}
