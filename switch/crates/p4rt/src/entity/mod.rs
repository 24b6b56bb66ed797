// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime entities, one file each: how a message is checked (`plan`), applied to the switch and read back.
//!
//! `plan` needs only the binding, so it runs on the caller's thread; what it makes is applied on the switch's thread.

pub mod action;
pub mod array;
pub mod digest;
pub mod direct;
pub mod matches;
pub mod one_shot;
pub mod pre;
pub mod profile;
pub mod table;
pub mod table_read;
pub mod value_set;

use crate::binding::Binding;
use crate::error::{refusal, refuse, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::update::Type;
use crate::proto::p4rt::{ExternEntry, Update};
use crate::target::Target;

/// INSERT, MODIFY or DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Modify,
    Delete,
}

type Apply = dyn FnOnce(&mut Target) -> Result<(), Refusal> + Send;

/// A checked update, or a part of one, ready to be applied.
pub struct Op {
    /// What applying it takes, in units of one table entry: some 0.8 µs.
    pub work: usize,
    /// On an error nothing of it is applied.
    pub apply: Box<Apply>,
}

impl Op {
    pub fn new(
        work: usize,
        apply: impl FnOnce(&mut Target) -> Result<(), Refusal> + Send + 'static,
    ) -> Op {
        let apply = Box::new(apply);
        Op { work, apply }
    }
}

/// Checks an update against the program; the switch is not touched. `ops` gets what is to be done, mostly one op.
///
/// # Errors
/// The refusal of this update.
pub fn plan(binding: &Binding, update: &Update, ops: &mut impl FnMut(Op)) -> Result<(), Refusal> {
    let kind = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    let Some(kind) = kind else {
        refuse!(invalid, "the update has no entity");
    };
    let verb = match update.r#type() {
        Type::Insert => Verb::Insert,
        Type::Modify => Verb::Modify,
        Type::Delete => Verb::Delete,
        Type::Unspecified => {
            refuse!(
                invalid,
                "update type {} is none of INSERT, MODIFY, DELETE",
                update.r#type
            )
        }
    };
    let op = match kind {
        Kind::TableEntry(e) => table::plan(binding, verb, e),
        Kind::DirectCounterEntry(e) => direct::plan_counter(binding, verb, e),
        Kind::DirectMeterEntry(e) => direct::plan_meter(binding, verb, e),
        Kind::CounterEntry(e) => return array::plan_counter(binding, verb, e, ops),
        Kind::MeterEntry(e) => return array::plan_meter(binding, verb, e, ops),
        Kind::RegisterEntry(e) => return array::plan_register(binding, verb, e, ops),
        Kind::ActionProfileMember(e) => profile::plan_member(binding, verb, e),
        Kind::ActionProfileGroup(e) => profile::plan_group(binding, verb, e),
        Kind::PacketReplicationEngineEntry(e) => match &e.r#type {
            Some(PreType::MulticastGroupEntry(e)) => pre::plan_multicast(binding, verb, e),
            Some(PreType::CloneSessionEntry(e)) => pre::plan_clone(binding, verb, e),
            None => refuse!(
                invalid,
                "the packet replication entry has neither a multicast group nor a clone session"
            ),
        },
        Kind::ValueSetEntry(e) => value_set::plan(binding, verb, e),
        Kind::DigestEntry(e) => digest::plan(binding, verb, e),
        Kind::ExternEntry(e) => Err(no_externs(e)),
    };
    ops(op?);
    Ok(())
}

pub fn no_externs(entry: &ExternEntry) -> Refusal {
    refusal!(unimplemented, "extern entries (extern type id {:#010x}) are not supported: v1model has none beyond the other entities",
        entry.extern_type_id)
}

/// # Errors
/// INVALID_ARGUMENT for INSERT and DELETE: the object always exists.
fn modify_only(verb: Verb, what: &str) -> Result<(), Refusal> {
    let verb = match verb {
        Verb::Modify => return Ok(()),
        Verb::Insert => "INSERT",
        Verb::Delete => "DELETE",
    };
    refuse!(
        invalid,
        "{verb} is not allowed for a {what}, which always exists; use MODIFY"
    )
}
