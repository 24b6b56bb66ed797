// SPDX-License-Identifier: Apache-2.0
//! What the server's clients together may take of it, where that can be chosen.

use std::time::Duration;

/// For [`crate::Server::limits`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: usize,
    /// Without a call it stays open for so long.
    pub idle: Duration,
    /// A client that was silent for so long is asked whether it is there, and is taken for gone after as long again.
    pub keepalive: Duration,
    /// How long one read may take.
    pub read: Duration,
    /// Bytes of a read that are kept for a client that does not take them: some 200,000 entries.
    pub unread_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            idle: Duration::from_secs(300),
            keepalive: Duration::from_secs(20),
            read: Duration::from_secs(120),
            unread_bytes: 16 << 20,
        }
    }
}
