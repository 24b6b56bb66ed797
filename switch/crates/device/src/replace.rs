// SPDX-License-Identifier: Apache-2.0
//! A program's way into a device: made ready where no packets wait, exchanged in a moment, the old one dropped elsewhere.

use crate::pool::Pool;
use crate::pre::Replication;
use v1model::Pipeline;

/// Packets made when a program is loaded.
const POOL_PACKETS: usize = 256;

/// A program that is ready for a device.
pub struct Next {
    pub(crate) pipeline: Pipeline,
    pub(crate) pool: Pool,
    pub(crate) replication: Option<Replication>,
}

impl Next {
    /// The multicast groups and clone sessions of the device stay.
    pub fn new(pipeline: Pipeline) -> Next {
        let mut pool = Pool::default();
        pool.refill(&pipeline, POOL_PACKETS);
        Next {
            pipeline,
            pool,
            replication: None,
        }
    }

    /// With these multicast groups and clone sessions instead.
    #[must_use]
    pub fn with_replication(mut self, replication: Replication) -> Next {
        self.replication = Some(replication);
        self
    }

    /// The program.
    pub fn pipeline_mut(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }
}

/// What a device had before, to be dropped where no packets wait.
pub struct Before {
    /// Packets that waited, and were dropped.
    pub flushed: u64,
    pub(crate) _pipeline: Option<Pipeline>,
    pub(crate) _pool: Pool,
    pub(crate) _replication: Option<Replication>,
}
