// SPDX-License-Identifier: Apache-2.0
//! Parser value sets (P4Runtime 1.5 §9.6).

use std::collections::HashSet;

use v1model::ValueSet;

use super::{matches, Planner};
use crate::error::{refuse, At, Checked};
use crate::proto::p4rt::ValueSetEntry;
use crate::target::Target;

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
        let members = ValueSet::new(&set.key.keys, &members);
        let (id, value_set, messages) = (set.id, set.value_set, entry.members.clone());
        self.op(1, move |target: &mut Target| {
            let (pipeline, soft) = target.parts()?;
            let before = pipeline.value_set_replace(value_set, members);
            let messages = soft.value_sets.insert(id, messages);
            target.discard((before, messages));
            Ok(())
        })
    }
}
