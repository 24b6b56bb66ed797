// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime entities, one file each: how a message is checked (`plan`), applied to the switch and read back.
//!
//! `plan` needs only the binding, so it runs on the caller's thread; what it returns is applied on the switch's thread.

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

use v1model::Nanos;

use crate::binding::Binding;
use crate::error::Refusal;
use crate::proto::p4rt::entity::Entity as Kind;
use crate::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use crate::proto::p4rt::update::Type;
use crate::proto::p4rt::Update;
use crate::soft::Soft;
use crate::target::Target;

/// INSERT, MODIFY or DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Modify,
    Delete,
}

/// A checked update, ready to be applied.
pub enum Op {
    Table(Box<table::TableOp>),
    Direct(Box<direct::DirectOp>),
    Array(array::ArrayOp),
    Member(profile::MemberOp),
    Group(profile::GroupOp),
    Replication(pre::ReplicationOp),
    ValueSet(value_set::ValueSetOp),
    Digest(digest::DigestOp),
}

impl Op {
    /// What applying it takes, in units of one table entry: some 0.8 µs.
    pub fn work(&self) -> usize {
        match self {
            Op::Table(op) => op.work(),
            Op::Array(op) => op.work(),
            Op::Group(op) => op.work(),
            Op::Replication(op) => op.work(),
            Op::Direct(_) | Op::Member(_) | Op::ValueSet(_) | Op::Digest(_) => 1,
        }
    }
}

/// Checks an update against the program; the switch is not touched.
///
/// # Errors
/// The refusal of this update.
pub fn plan(binding: &Binding, update: &Update) -> Result<Op, Refusal> {
    let kind = update
        .entity
        .as_ref()
        .and_then(|e| e.entity.as_ref())
        .ok_or_else(|| Refusal::invalid("the update has no entity"))?;
    let verb = match update.r#type() {
        Type::Insert => Verb::Insert,
        Type::Modify => Verb::Modify,
        Type::Delete => Verb::Delete,
        Type::Unspecified => {
            return Err(Refusal::invalid(format!(
                "update type {} is none of INSERT, MODIFY, DELETE",
                update.r#type
            )))
        }
    };
    match kind {
        Kind::TableEntry(e) => table::plan(binding, verb, e).map(|op| Op::Table(Box::new(op))),
        Kind::DirectCounterEntry(e) => direct::plan_counter(binding, verb, e).map(|op| Op::Direct(Box::new(op))),
        Kind::DirectMeterEntry(e) => direct::plan_meter(binding, verb, e).map(|op| Op::Direct(Box::new(op))),
        Kind::CounterEntry(e) => array::plan_counter(binding, verb, e).map(Op::Array),
        Kind::MeterEntry(e) => array::plan_meter(binding, verb, e).map(Op::Array),
        Kind::RegisterEntry(e) => array::plan_register(binding, verb, e).map(Op::Array),
        Kind::ActionProfileMember(e) => profile::plan_member(binding, verb, e).map(Op::Member),
        Kind::ActionProfileGroup(e) => profile::plan_group(binding, verb, e).map(Op::Group),
        Kind::PacketReplicationEngineEntry(e) => match &e.r#type {
            Some(PreType::MulticastGroupEntry(e)) => pre::plan_multicast(binding, verb, e).map(Op::Replication),
            Some(PreType::CloneSessionEntry(e)) => pre::plan_clone(binding, verb, e).map(Op::Replication),
            None => Err(Refusal::invalid("the packet replication entry has neither a multicast group nor a clone session")),
        },
        Kind::ValueSetEntry(e) => value_set::plan(binding, verb, e).map(Op::ValueSet),
        Kind::DigestEntry(e) => digest::plan(binding, verb, e).map(Op::Digest),
        Kind::ExternEntry(e) => Err(Refusal::unimplemented(format!(
            "extern entries (extern type id {:#010x}) are not supported: v1model has none beyond the other entities",
            e.extern_type_id
        ))),
    }
}

/// Applies a checked update; on an error nothing of it is applied.
///
/// # Errors
/// The refusal of this update.
pub fn apply(op: Op, target: &mut Target, soft: &mut Soft, now: Nanos) -> Result<(), Refusal> {
    match op {
        Op::Table(op) => op.apply(target, soft, now),
        Op::Direct(op) => op.apply(target),
        Op::Array(op) => op.apply(target),
        Op::Member(op) => op.apply(target, soft),
        Op::Group(op) => op.apply(target, soft),
        Op::Replication(op) => op.apply(target, soft),
        Op::ValueSet(op) => op.apply(target, soft),
        Op::Digest(op) => op.apply(target, soft),
    }
}

/// # Errors
/// INVALID_ARGUMENT for INSERT and DELETE: the object always exists.
fn modify_only(verb: Verb, what: &str) -> Result<(), Refusal> {
    match verb {
        Verb::Modify => Ok(()),
        Verb::Insert | Verb::Delete => {
            let verb = if verb == Verb::Insert {
                "INSERT"
            } else {
                "DELETE"
            };
            Err(Refusal::invalid(format!(
                "{verb} is not allowed for a {what}, which always exists; use MODIFY"
            )))
        }
    }
}
