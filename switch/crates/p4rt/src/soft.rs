// SPDX-License-Identifier: Apache-2.0
//! What P4Runtime keeps beside the pipeline so that a client reads back what it wrote: cookies, one-shots, PRE, digests.
//!
//! What an update is applied to: the running device, or a config that is saved but not yet committed.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use device::{Device, Replication};
use v1model::{Kept, Key, Nanos, Pipeline, ValueSet};

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
    /// P4Info's id of the table.
    pub table_id: u32,
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
        self.last_cookie += 1;
        self.put(self.last_cookie, extra.into());
        self.last_cookie
    }

    fn put(&mut self, cookie: u64, extra: Arc<Extra>) {
        if let Some(own) = &extra.one_shot {
            *self.one_shots.entry(own.watched.profile).or_default() += 1;
        }
        self.extras.insert(cookie, extra);
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

    /// What of it goes on with another program, which has taken over what is `kept` of the old one's state. In the new
    /// pipeline this fills the value sets, and takes away what the one-shots of lost entries left.
    pub fn taken_over(
        self,
        old: &Binding,
        new: &Binding,
        kept: &Kept,
        pipeline: &mut Pipeline,
    ) -> Soft {
        let profiles = new
            .profiles
            .renamed(&old.profiles, |own| kept.profiles.contains(&own.profile));
        let entries = new
            .tables
            .renamed(&old.tables, |own| kept.entries.contains(&own.table));
        let defaults = new.tables.renamed(&old.tables, |own| {
            kept.defaults.contains(&own.table) && !own.const_default
        });
        let digests = new.digests.renamed(&old.digests, |_| true);
        let value_sets = new.value_sets.renamed(&old.value_sets, |_| true);
        let mut soft = Soft {
            last_cookie: self.last_cookie,
            replication: self.replication,
            ports_down: self.ports_down,
            last_hidden_id: self.last_hidden_id,
            ..Soft::default()
        };
        for (cookie, mut extra) in self.extras {
            let own = Arc::make_mut(&mut extra);
            let one_shot = own.one_shot.as_mut().and_then(|one_shot| {
                one_shot.watched.profile = *profiles.get(&one_shot.watched.profile)?;
                Some(one_shot)
            });
            match (entries.get(&own.table_id), one_shot) {
                (Some(id), _) => {
                    own.table_id = *id;
                    soft.put(cookie, extra);
                }
                (None, Some(one_shot)) => one_shot.remove(new, pipeline),
                (None, None) => {}
            }
        }
        for (id, mut extra) in self.defaults {
            if let Some(id) = defaults.get(&id) {
                Arc::make_mut(&mut extra).table_id = *id;
                soft.defaults.insert(*id, extra);
            }
        }
        for ((profile, id), mut group) in self.groups {
            if let Some(profile) = profiles.get(&profile) {
                group.message.action_profile_id = *profile;
                group.watched.profile = *profile;
                soft.groups.insert((*profile, id), group);
            }
        }
        for (id, members) in self.value_sets {
            let now = value_sets.get(&id).map(|now| new.value_sets.get(*now));
            let (Ok(from), Some(Ok(set))) = (old.value_sets.get(id), now) else {
                continue;
            };
            if set.key.keys == from.key.keys && members.len() <= set.size as usize {
                let own = ValueSet::new(&set.key.keys, &members);
                pipeline.value_set_replace(set.value_set, own);
                soft.value_sets.insert(set.id, members);
            }
        }
        let configs = self.digests.into_iter();
        soft.digests = configs
            .filter_map(|(id, config)| Some((*digests.get(&id)?, config)))
            .collect();
        soft
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
