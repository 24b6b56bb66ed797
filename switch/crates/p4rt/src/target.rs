// SPDX-License-Identifier: Apache-2.0
//! What an update is applied to: the running device, or a config that is saved but not yet committed.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use device::{Device, Replication};
use v1model::{ControlError, Pipeline};

use crate::digests::Digests;
use crate::error::{Refusal, NO_PIPELINE};
use crate::proto::p4rt::digest_entry::Config;

/// The place of an update.
pub enum Target<'a> {
    Running {
        device: &'a mut Device,
        digests: &'a Mutex<Digests>,
        /// What is no longer needed, to be dropped where no packets wait.
        old: &'a mut Vec<Box<dyn Any + Send>>,
    },
    Saved {
        pipeline: &'a mut Pipeline,
    },
}

impl Target<'_> {
    /// # Errors
    /// FAILED_PRECONDITION when the device has no pipeline.
    pub fn pipeline(&mut self) -> Result<&mut Pipeline, Refusal> {
        match self {
            Self::Running { device, .. } => device
                .pipeline_mut()
                .ok_or_else(|| Refusal::new(tonic::Code::FailedPrecondition, NO_PIPELINE)),
            Self::Saved { pipeline } => Ok(pipeline),
        }
    }

    /// Takes what is no longer needed.
    pub fn discard(&mut self, what: impl Send + 'static) {
        if let Self::Running { old, .. } = self {
            old.push(Box::new(what));
        }
    }

    pub fn has_port(&self, port: u32) -> bool {
        match self {
            Self::Running { device, .. } => device.port(port).is_some(),
            Self::Saved { .. } => true,
        }
    }

    pub fn set_digest(&mut self, digest_id: u32, config: Option<&Config>) {
        if let Self::Running { digests, .. } = self {
            digests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .set(digest_id, config);
        }
    }

    /// Changes multicast groups and clone sessions of the running device.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn replicate(
        &mut self,
        change: impl FnOnce(&mut Replication) -> Result<(), ControlError>,
    ) -> Result<(), Refusal> {
        match self {
            Self::Running { device, .. } => Ok(change(device.replication_mut())?),
            Self::Saved { .. } => Ok(()),
        }
    }
}
