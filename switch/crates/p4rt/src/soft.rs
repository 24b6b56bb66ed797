// SPDX-License-Identifier: Apache-2.0
//! What P4Runtime keeps beside the pipeline so that a client reads back what it wrote: cookies, one-shots, PRE, digests.
//!
//! What an update is applied to: the running device, or a config that is saved but not yet committed.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use device::{Device, Replication};
use v1model::{Key, Nanos, Pipeline};

use crate::binding::Binding;
use crate::digests::Digests;
use crate::entity::profile::{OneShot, WatchedGroup};
use crate::error::{refusal, Checked, NO_PIPELINE};
use crate::proto::p4rt::digest_entry::Config;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::*;

/// What a table entry carries for its client alone.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    pub metadata: Bytes,
    pub controller_metadata: u64,
    /// Behind a pointer: few entries have one, and every update is moved from thread to thread.
    pub one_shot: Option<Box<OneShot>>,
}

impl Extra {
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.controller_metadata == 0 && self.one_shot.is_none()
    }
}

/// A group as its client wrote it, and as the pipeline knows it.
#[derive(Debug, Clone)]
pub struct Group {
    pub message: ActionProfileGroup,
    pub watched: WatchedGroup,
}

/// The software side of one forwarding pipeline config.
#[derive(Debug, Default)]
pub struct Soft {
    /// By the cookie of the pipeline's entry; entries with nothing extra have the cookie 0.
    extras: HashMap<u64, Arc<Extra>>,
    last_cookie: u64,
    /// Of default entries, by P4Info table id.
    pub defaults: HashMap<u32, Arc<Extra>>,
    /// By (P4Info action profile id, group id).
    pub groups: BTreeMap<(u32, u32), Group>,
    /// Entries that are one-shots, by P4Info action profile id.
    one_shots: HashMap<u32, usize>,
    /// Multicast groups and clone sessions, by `entity::pre::id_of`.
    pub replication: BTreeMap<(bool, u32), PreType>,
    /// Members, by P4Info value set id.
    pub value_sets: BTreeMap<u32, Vec<Key>>,
    /// Digests that are switched on, by P4Info digest id.
    pub digests: BTreeMap<u32, Config>,
    /// Ports that are down, for groups whose members watch a port.
    pub ports_down: HashSet<u32>,
    last_hidden_id: u32,
}

impl Soft {
    /// Keeps `extra` and returns its cookie.
    pub fn keep(&mut self, extra: Extra) -> u64 {
        if extra.is_empty() {
            return 0;
        }
        if let Some(own) = &extra.one_shot {
            *self.one_shots.entry(own.watched.profile).or_default() += 1;
        }
        self.last_cookie += 1;
        self.extras.insert(self.last_cookie, Arc::new(extra));
        self.last_cookie
    }

    pub fn drop_extra(&mut self, cookie: u64) -> Option<Arc<Extra>> {
        // Most entries have none.
        let extra = (cookie != 0).then(|| self.extras.remove(&cookie))??;
        if let Some(own) = &extra.one_shot {
            let count = self.one_shots.entry(own.watched.profile).or_default();
            *count = count.saturating_sub(1);
        }
        Some(extra)
    }

    pub fn extra(&self, cookie: u64) -> Option<&Arc<Extra>> {
        self.extras.get(&cookie)
    }

    /// How many entries of an action profile, by its P4Info id, are one-shots.
    pub fn one_shots(&self, profile: u32) -> usize {
        self.one_shots.get(&profile).copied().unwrap_or(0)
    }

    /// An id for a member or group of a one-shot. No client sees it: while a profile has one-shots, all its members and
    /// groups are theirs.
    pub fn hidden_id(&mut self, is_used: impl Fn(u32) -> bool) -> u32 {
        loop {
            self.last_hidden_id = self.last_hidden_id.wrapping_add(1).max(1);
            if !is_used(self.last_hidden_id) {
                return self.last_hidden_id;
            }
        }
    }

    pub fn extras(&self) -> impl Iterator<Item = &Arc<Extra>> {
        self.extras.values()
    }

    /// Another program runs with the same entries: what it does not know is forgotten.
    pub fn keep_known(&mut self, binding: &Binding) {
        let has_profile = |id: &u32| binding.profiles.get(*id).is_ok();
        self.defaults
            .retain(|id, _| binding.tables.get(*id).is_ok());
        self.groups.retain(|(profile, _), _| has_profile(profile));
        self.one_shots.retain(|profile, _| has_profile(profile));
        self.value_sets
            .retain(|id, _| binding.value_sets.get(*id).is_ok());
        self.digests
            .retain(|id, _| binding.digests.get(*id).is_ok());
    }
}

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
