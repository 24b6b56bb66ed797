// SPDX-License-Identifier: Apache-2.0
//! Applications of flows over the sockets of Linux: the same loop in the guest (virtual time) and in `fairlane-traffic` (real time).
//!
//! | module | idea |
//! |---|---|
//! | `reactor` | instants and sockets that something happens at |
//! | `flows` | applications and their sending ends |
//! | `connection` | one sending end: what is still to be written, and which of it is a transfer |
//! | `socket` | options and reports of sockets, TCP_INFO among them |

mod connection;
mod flows;
mod reactor;
pub mod socket;

pub use connection::{Connection, Transfer};
pub use flows::{Datagrams, Ending, Flows, World};
pub use reactor::{monotonic_ns, Event, Reactor, Source, Turn};
pub use socket::TcpInfo;
