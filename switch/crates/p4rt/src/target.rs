// SPDX-License-Identifier: Apache-2.0
//! What an update is applied to: the running device, or a config that is saved but not yet committed.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use device::{CloneSession, Device, MulticastGroup, Replica};
use v1model::Pipeline;

use crate::digests::Digests;
use crate::entity::pre;
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

    /// Puts a multicast group in place, or takes it away.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn set_multicast(&mut self, id: u32, copies: Option<&[pre::Copy]>) -> Result<(), Refusal> {
        let Self::Running { device, .. } = self else {
            return Ok(());
        };
        let Some(copies) = copies else {
            return Ok(device.mcast_group_delete(id)?);
        };
        let group = group(id, copies);
        match device.mcast_group(id) {
            Some(_) => device.mcast_group_modify(group)?,
            None => device.mcast_group_insert(group)?,
        }
        Ok(())
    }

    /// Puts a clone session in place, or takes it away.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn set_clone(
        &mut self,
        id: u32,
        session: Option<&pre::CloneSession>,
    ) -> Result<(), Refusal> {
        let Self::Running { device, .. } = self else {
            return Ok(());
        };
        let Some(session) = session else {
            return Ok(device.clone_session_delete(id)?);
        };
        let own = clone_session(id, session);
        match device.clone_session(id) {
            Some(_) => device.clone_session_modify(own)?,
            None => device.clone_session_insert(own)?,
        }
        Ok(())
    }
}

/// A multicast group as the device takes it.
pub fn group(id: u32, copies: &[pre::Copy]) -> MulticastGroup {
    MulticastGroup {
        id,
        replicas: replicas(copies),
        metadata: Vec::new(),
    }
}

/// A clone session as the device takes it.
pub fn clone_session(id: u32, session: &pre::CloneSession) -> CloneSession {
    CloneSession {
        id,
        replicas: replicas(&session.copies),
        class_of_service: session.class_of_service,
        packet_length_bytes: session.truncate_bytes,
    }
}

fn replicas(copies: &[pre::Copy]) -> Vec<Replica> {
    // `plan` has checked that an instance has at most 16 bits.
    copies
        .iter()
        .map(|c| Replica {
            port: c.port,
            instance: c.instance as u16,
        })
        .collect()
}
