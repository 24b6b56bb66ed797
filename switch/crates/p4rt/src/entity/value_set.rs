// SPDX-License-Identifier: Apache-2.0
//! Parser value sets (P4Runtime 1.5 §9.6).

use std::collections::HashSet;

use v1model::ValueSet;

use super::{matches, Op, Verb};
use crate::binding::Binding;
use crate::error::{refuse, At, Refusal};
use crate::proto::p4rt::ValueSetEntry;
use crate::target::Target;

/// # Errors
/// INVALID_ARGUMENT for anything but MODIFY and for bad fields, RESOURCE_EXHAUSTED for too many members,
/// ALREADY_EXISTS for a member that is given twice.
pub fn plan(binding: &Binding, verb: Verb, entry: &ValueSetEntry) -> Result<Op, Refusal> {
    super::modify_only(verb, "value set")?;
    let set = binding.value_sets.get(entry.value_set_id)?;
    let place = format!("value set {}", set.name);
    let count = entry.members.len();
    if count > set.size as usize {
        refuse!(
            exhausted,
            "{place}: {count} members do not fit; it holds {}",
            set.size
        );
    }
    let mut seen = HashSet::with_capacity(count);
    let mut members = Vec::with_capacity(count);
    for (index, member) in entry.members.iter().enumerate() {
        let key = matches::decode_fields(&set.fields, &set.keys, &member.r#match)
            .at(format_args!("{place}: member {index}"))?;
        if !seen.insert(key.clone()) {
            refuse!(exists, "{place}: member {index} is given twice");
        }
        members.push(key);
    }
    let members = ValueSet::new(&set.keys, &members);
    let (id, value_set, messages) = (set.id, set.value_set, entry.members.clone());
    Ok(Op::new(1, move |target: &mut Target| {
        let (pipeline, soft) = target.parts()?;
        let before = pipeline.value_set_replace(value_set, members);
        let messages = soft.value_sets.insert(id, messages);
        target.discard((before, messages));
        Ok(())
    }))
}
