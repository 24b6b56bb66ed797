// SPDX-License-Identifier: Apache-2.0
//! What an update is applied to: the running device, or a config that is saved but not yet committed.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use device::{Device, Replication};
use v1model::{Nanos, Pipeline};

use crate::binding::Binding;
use crate::digests::Digests;
use crate::error::{refusal, Checked, NO_PIPELINE};
use crate::proto::p4rt::digest_entry::Config;
use crate::soft::Soft;

/// A config with its pipeline, at an instant.
pub struct Target<'a> {
    pub binding: &'a Binding,
    pub soft: &'a mut Soft,
    pub state: Forwarding<'a>,
    pub now: Nanos,
}

/// Where the pipeline is.
pub enum Forwarding<'a> {
    Running {
        device: &'a mut Device,
        digests: &'a Mutex<Digests>,
        /// What is no longer needed, to be dropped where no packets wait.
        old: &'a mut Vec<Box<dyn Any + Send>>,
    },
    Saved(&'a mut Pipeline, &'a mut Replication),
}

impl Target<'_> {
    /// The pipeline, and what the server remembers beside it.
    ///
    /// # Errors
    /// FAILED_PRECONDITION when the device has no pipeline.
    pub fn parts(&mut self) -> Checked<(&mut Pipeline, &mut Soft)> {
        let pipeline = match &mut self.state {
            Forwarding::Running { device, .. } => device
                .pipeline_mut()
                .ok_or_else(|| refusal!(FailedPrecondition, "{NO_PIPELINE}"))?,
            Forwarding::Saved(pipeline, _) => pipeline,
        };
        Ok((pipeline, self.soft))
    }

    /// # Errors
    /// As `parts`.
    pub fn pipeline(&mut self) -> Checked<&mut Pipeline> {
        Ok(self.parts()?.0)
    }

    /// Takes what is no longer needed.
    pub fn discard(&mut self, what: impl Send + 'static) {
        if let Forwarding::Running { old, .. } = &mut self.state {
            old.push(Box::new(what));
        }
    }

    pub fn has_port(&self, port: u32) -> bool {
        match &self.state {
            Forwarding::Running { device, .. } => device.port(port).is_some(),
            Forwarding::Saved(..) => true,
        }
    }

    pub fn set_digest(&mut self, digest_id: u32, config: Option<&Config>) {
        if let Forwarding::Running { digests, .. } = &self.state {
            let mut digests = digests.lock().unwrap_or_else(PoisonError::into_inner);
            digests.set(digest_id, config);
        }
    }

    /// The multicast groups and clone sessions.
    pub fn replication(&mut self) -> &mut Replication {
        match &mut self.state {
            Forwarding::Running { device, .. } => device.replication_mut(),
            Forwarding::Saved(_, replication) => replication,
        }
    }
}
