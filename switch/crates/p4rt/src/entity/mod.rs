// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime entities: how a message is checked, applied to the switch and read back.
//!
//! A [`Planner`] needs only the binding, so it runs on the caller's thread; what it makes is applied on the switch's
//! thread.
//!
//! Switching digests on and off (P4Runtime 1.5 §9.8); the lists themselves are made in `digests`.
//!
//! Parser value sets (P4Runtime 1.5 §9.6).

pub mod array;
pub mod matches;
pub mod pre;
pub mod profile;
pub mod table;

use std::collections::HashSet;

use v1model::ValueSet;

use self::array::number;
use crate::binding::Binding;
use crate::error::{in_range, refusal, refuse, At, Checked, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::{DigestEntry, ExternEntry, Update, ValueSetEntry};
use crate::soft::Target;

pub use crate::proto::p4rt::update::Type as Verb;

type Apply = dyn FnOnce(&mut Target) -> Checked + Send;

/// A checked update, or a part of one, ready to be applied.
pub struct Op {
    /// The place of the update in its batch.
    pub index: usize,
    /// What applying it takes, in units of one table entry: some 0.8 µs.
    pub work: usize,
    /// On an error nothing of it is applied.
    pub apply: Box<Apply>,
}

/// Checks updates against the program; the switch is not touched.
pub struct Planner<'a> {
    binding: &'a Binding,
    index: usize,
    verb: Verb,
    /// What is to be done, for most updates one op.
    pub ops: Vec<Op>,
}

impl<'a> Planner<'a> {
    pub fn new(binding: &'a Binding) -> Planner<'a> {
        Planner {
            binding,
            index: 0,
            verb: Verb::Unspecified,
            ops: Vec::new(),
        }
    }

    /// Adds what the update at this place of its batch does.
    ///
    /// # Errors
    /// The refusal of this update.
    pub fn plan(&mut self, index: usize, update: &Update) -> Checked {
        (self.index, self.verb) = (index, update.r#type());
        let kind = update.entity.as_ref().and_then(|e| e.entity.as_ref());
        let Some(kind) = kind else {
            refuse!("the update has no entity");
        };
        if self.verb == Verb::Unspecified {
            refuse!(
                "update type {} is none of INSERT, MODIFY, DELETE",
                update.r#type
            );
        }
        match kind {
            Kind::TableEntry(e) => self.table_entry(e),
            Kind::DirectCounterEntry(e) => self.direct_counter(e),
            Kind::DirectMeterEntry(e) => self.direct_meter(e),
            Kind::CounterEntry(e) => self.counter(e),
            Kind::MeterEntry(e) => self.meter(e),
            Kind::RegisterEntry(e) => self.register(e),
            Kind::ActionProfileMember(e) => self.member(e),
            Kind::ActionProfileGroup(e) => self.group(e),
            Kind::PacketReplicationEngineEntry(e) => match &e.r#type {
                Some(e) => self.replication(e),
                None => refuse!("neither a multicast group nor a clone session is set"),
            },
            Kind::ValueSetEntry(e) => self.value_set(e),
            Kind::DigestEntry(e) => self.digest(e),
            Kind::ExternEntry(e) => Err(no_externs(e)),
        }
    }

    fn op(
        &mut self,
        work: usize,
        apply: impl FnOnce(&mut Target) -> Checked + Send + 'static,
    ) -> Checked {
        self.ops.push(Op {
            index: self.index,
            work,
            apply: Box::new(apply),
        });
        Ok(())
    }

    /// # Errors
    /// INVALID_ARGUMENT for INSERT and DELETE: the object always exists.
    fn modify_only(&self, what: &str) -> Checked {
        let verb = self.verb.as_str_name();
        match self.verb {
            Verb::Modify => Ok(()),
            _ => refuse!("{verb} is not allowed for a {what}, which always exists; use MODIFY"),
        }
    }
}

/// Max bytes of the metadata that an entry or group carries, which is its client's own.
const METADATA_MAX: u32 = 4096;

/// # Errors
/// INVALID_ARGUMENT for more than is kept.
fn check_metadata(metadata: &[u8]) -> Checked<u32> {
    in_range("bytes of metadata", metadata.len(), 0..=METADATA_MAX)
}

pub fn no_externs(entry: &ExternEntry) -> Refusal {
    let id = entry.extern_type_id;
    refusal!(
        Unimplemented,
        "extern entries (extern type id {id:#010x}) are not supported: v1model has no externs of its own"
    )
}

impl Planner<'_> {
    /// # Errors
    /// NOT_FOUND for an unknown digest, INVALID_ARGUMENT for a missing or negative configuration; when it is applied
    /// ALREADY_EXISTS and NOT_FOUND.
    pub(super) fn digest(&mut self, entry: &DigestEntry) -> Checked {
        let digest = self.binding.digests.get(entry.digest_id)?;
        let config = entry.config.filter(|_| self.verb != Verb::Delete);
        match config {
            Some(config) => {
                number("max_timeout_ns", config.max_timeout_ns).at(digest)?;
                number("max_list_size", config.max_list_size.into()).at(digest)?;
                number("ack_timeout_ns", config.ack_timeout_ns).at(digest)?;
            }
            None if self.verb == Verb::Delete => {}
            None => refuse!("{digest}: the config is unset"),
        }
        let (id, verb, place) = (digest.id, self.verb, digest.to_string());
        self.op(1, move |target: &mut Target| {
            match (verb, target.soft.digests.contains_key(&id)) {
                (Verb::Insert, true) => refuse!(AlreadyExists, "{place} is on already; use MODIFY"),
                (Verb::Insert, false) | (_, true) => {}
                _ => refuse!(NotFound, "{place} is off; use INSERT"),
            }
            match config {
                Some(config) => target.soft.digests.insert(id, config),
                None => target.soft.digests.remove(&id),
            };
            target.set_digest(id, config.as_ref());
            Ok(())
        })
    }
}

impl Planner<'_> {
    /// # Errors
    /// INVALID_ARGUMENT for anything but MODIFY and for bad fields, RESOURCE_EXHAUSTED for too many members,
    /// ALREADY_EXISTS for a member that is given twice.
    pub(super) fn value_set(&mut self, entry: &ValueSetEntry) -> Checked {
        self.modify_only("value set")?;
        let set = self.binding.value_sets.get(entry.value_set_id)?;
        let (count, max) = (entry.members.len(), set.size);
        if count > max as usize {
            refuse!(
                ResourceExhausted,
                "{set}: {count} members; at most {max} are possible"
            );
        }
        let (mut seen, mut members) = (HashSet::new(), Vec::with_capacity(count));
        for (index, member) in entry.members.iter().enumerate() {
            let key = matches::decode_fields(&set.key, &member.r#match)
                .at(format_args!("{set}: member {index}"))?;
            if !seen.insert(key.clone()) {
                refuse!(AlreadyExists, "{set}: member {index} is given twice");
            }
            members.push(key);
        }
        let of_keys = ValueSet::new(&set.key.keys, &members);
        let (id, value_set) = (set.id, set.value_set);
        self.op(1, move |target: &mut Target| {
            let (pipeline, soft) = target.parts()?;
            let before = pipeline.value_set_replace(value_set, of_keys);
            let members = soft.value_sets.insert(id, members);
            target.discard((before, members));
            Ok(())
        })
    }
}
