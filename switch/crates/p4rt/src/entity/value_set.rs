// SPDX-License-Identifier: Apache-2.0
//! Parser value sets (P4Runtime 1.5 §9.6).

use std::collections::HashSet;

use v1model::{KeyMatch, ValueSet, ValueSetId};

use super::{matches, Verb};
use crate::binding::Binding;
use crate::error::Refusal;
use crate::proto::p4rt::{ValueSetEntry, ValueSetMember};
use crate::soft::Soft;
use crate::target::Target;

/// A checked new content of a value set.
pub struct ValueSetOp {
    id: u32,
    value_set: ValueSetId,
    members: ValueSet,
    messages: Vec<ValueSetMember>,
}

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY and for bad fields, RESOURCE_EXHAUSTED for too many members,
/// ALREADY_EXISTS for a member that is given twice.
pub fn plan(binding: &Binding, verb: Verb, entry: &ValueSetEntry) -> Result<ValueSetOp, Refusal> {
    super::modify_only(verb, "value set")?;
    let set = binding.value_sets.get(entry.value_set_id)?;
    let place = format!("value set {}", set.name);
    if entry.members.len() > set.size as usize {
        return Err(Refusal::new(
            tonic::Code::ResourceExhausted,
            format!(
                "{place}: {} members do not fit; it holds {}",
                entry.members.len(),
                set.size
            ),
        ));
    }
    let mut seen: HashSet<Vec<KeyMatch>> = HashSet::with_capacity(entry.members.len());
    let mut members: Vec<Vec<KeyMatch>> = Vec::with_capacity(entry.members.len());
    for (index, member) in entry.members.iter().enumerate() {
        let fields = matches::decode_fields(&set.fields, &member.r#match)
            .map_err(|e| e.with_place(&format!("{place}: member {index}")))?;
        if !seen.insert(fields.clone()) {
            return Err(Refusal::exists(format!(
                "{place}: member {index} is given twice"
            )));
        }
        members.push(fields);
    }
    let members = ValueSet::from_members(&set.schema, members)
        .map_err(|e| Refusal::from(e).with_place(&place))?;
    Ok(ValueSetOp {
        id: set.id,
        value_set: set.value_set,
        members,
        messages: entry.members.clone(),
    })
}

impl ValueSetOp {
    /// # Errors
    /// The pipeline's refusal.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let before = pipeline.value_set_replace(self.value_set, self.members);
        let messages = soft.value_sets.insert(self.id, self.messages);
        target.discard((before, messages));
        Ok(())
    }
}
