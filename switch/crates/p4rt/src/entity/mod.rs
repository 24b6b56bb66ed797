// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime entities: how a message is checked, applied to the switch and read back.
//!
//! A [`Planner`] needs only the binding, so it runs on the caller's thread; what it makes is applied on the switch's
//! thread.

pub mod action;
pub mod array;
pub mod digest;
pub mod matches;
pub mod pre;
pub mod profile;
pub mod table;
pub mod table_read;
pub mod value_set;

use crate::binding::Binding;
use crate::error::{refusal, refuse, Checked, Refusal};
use crate::proto::p4rt::entity::Entity as Kind;
pub use crate::proto::p4rt::update::Type as Verb;
use crate::proto::p4rt::{ExternEntry, Update};
use crate::target::Target;

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

pub fn no_externs(entry: &ExternEntry) -> Refusal {
    let id = entry.extern_type_id;
    refusal!(
        Unimplemented,
        "extern entries (extern type id {id:#010x}) are not supported: v1model has no externs of its own"
    )
}
