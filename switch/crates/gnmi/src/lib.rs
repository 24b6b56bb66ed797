// SPDX-License-Identifier: Apache-2.0
//! gNMI 0.10 server over a device handle: ports, queues and counters under OpenConfig's paths (module `leaf`).
//!
//! | module | idea |
//! |---|---|
//! | `leaf` | the leaves that there are, one row each: path, getter, setter |
//! | `path` | the tree that the rows are, with the steps of each path; gNMI paths: patterns with wildcards, matched against the schema; the sentences for those that do not match |
//! | `value` | one value in each encoding; trees of JSON made and taken apart |
//! | `view` | pictures of the ports, read by short calls of the device, shared by those who ask at the same time |
//! | `links` | the interfaces' link states: read, set, watched |
//! | `select` | the leaves of a picture that a pattern names: one walk for the three calls |
//! | `get`, `set`, `subscribe` | the three calls |
//! | `service` | the gRPC service over them |

mod get;
mod leaf;
pub mod links;
mod path;
mod select;
mod service;
mod set;
mod subscribe;
#[cfg(test)]
mod tests;
mod value;
mod view;

pub use links::{KernelLinks, LinkStatus, Links};
pub use service::{Gnmi, VERSION};
pub use view::Interface;
