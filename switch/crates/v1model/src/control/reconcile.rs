// SPDX-License-Identifier: Apache-2.0
//! RECONCILE_AND_COMMIT: what a new program takes over from the state of the old one.

use super::ControlResult;
use crate::entry::{ActionCall, Entry, EntryAction};
use crate::pipeline::Pipeline;
use crate::schema::{ActionId, ProfileId, ProfileSchema, TableId, TableSchema};

/// Entries that are read from the old table at once.
const CHUNK: usize = 1024;

impl Pipeline {
    /// Carries over from `old` the entries, members, groups, default actions, counters, meters, registers and
    /// value sets of every object whose name and shape are equal (P4Runtime RECONCILE_AND_COMMIT). A table keeps its
    /// entries if its keys, actions and direct resources are the same and they fit; const tables keep the program's.
    pub fn clone_state_from(&mut self, old: &Pipeline) -> ControlResult {
        for id in (0..self.schema.profiles.len()).map(|i| ProfileId(i as u32)) {
            if let Some(from) = self.same_profile(old, id) {
                self.copy_profile(id, old, from)?;
            }
        }
        for id in (0..self.schema.tables.len()).map(|i| TableId(i as u32)) {
            if let Some(from) = self.same_table(old, id) {
                self.copy_default(id, old, from)?;
                self.copy_entries(id, old, from)?;
            }
        }
        self.copy_arrays(old);
        Ok(())
    }

    fn copy_profile(&mut self, id: ProfileId, old: &Pipeline, from: ProfileId) -> ControlResult {
        let allowed = self.schema.profiles[id.index()].actions.clone();
        for member in old.profile_members(from) {
            let call = old
                .profile_member_get(from, member)
                .expect("the id was listed");
            let call = self
                .same_call(old, &allowed, &call)
                .expect("the actions are the same");
            self.profile_member_insert(id, member, &call)?;
        }
        for group in old.profile_groups(from) {
            let (members, max_size) = old
                .profile_group_get(from, group)
                .expect("the id was listed");
            self.profile_group_insert(id, group, &members, max_size)?;
        }
        Ok(())
    }

    fn copy_default(&mut self, id: TableId, old: &Pipeline, from: TableId) -> ControlResult {
        let schema = old.table_schema(from);
        let current = old.table_default(from);
        let (packets, bytes) = old.state.tables[from.index()].default_count();
        self.state.tables[id.index()].set_default_count(packets, bytes);
        if self.table_schema(id).const_default_action || current == schema.default_action {
            return Ok(());
        }
        let allowed = self.table_schema(id).actions.clone();
        match current.and_then(|call| self.same_call(old, &allowed, &call)) {
            Some(call) => self.table_set_default(id, Some(call)),
            None => Ok(()),
        }
    }

    fn copy_entries(&mut self, id: TableId, old: &Pipeline, from: TableId) -> ControlResult {
        if self.table_schema(id).const_entries.is_some() {
            return Ok(());
        }
        let allowed = self.table_schema(id).actions.clone();
        let mut cursor = Some(0);
        let mut chunk = Vec::new();
        while let Some(at) = cursor {
            cursor = old.table_scan(from, at, CHUNK, &mut chunk);
            for (entry, stats) in chunk.drain(..) {
                let action = match &entry.action {
                    EntryAction::Direct(call) => EntryAction::Direct(
                        self.same_call(old, &allowed, call)
                            .expect("the actions are the same"),
                    ),
                    place => place.clone(),
                };
                let entry = Entry { action, ..entry };
                let (word, args) = self.pack_action(id, &entry.action)?;
                let schema = &self.schema.tables[id.index()];
                let table = &mut self.state.tables[id.index()];
                let handle = table.insert(schema, &entry, word, &args, stats.last_hit)?;
                table.restore(handle, &stats);
                self.use_word(id, word, 1);
            }
        }
        Ok(())
    }

    fn copy_arrays(&mut self, old: &Pipeline) {
        let (new, from) = (&self.schema, &old.schema);
        for schema in &new.counters {
            if let Some(o) = from
                .counters
                .iter()
                .find(|o| o.name == schema.name && o.size == schema.size)
            {
                self.state.counters[schema.id.index()] = old.state.counters[o.id.index()].clone();
            }
        }
        for schema in &new.meters {
            let same = |o: &&crate::schema::MeterSchema| {
                o.name == schema.name && o.size == schema.size && o.unit == schema.unit
            };
            if let Some(o) = from.meters.iter().find(same) {
                self.state.meters[schema.id.index()] = old.state.meters[o.id.index()].clone();
            }
        }
        for schema in &new.registers {
            let same = |o: &&crate::schema::RegisterSchema| {
                o.name == schema.name && o.size == schema.size && o.width == schema.width
            };
            if let Some(o) = from.registers.iter().find(same) {
                self.state.registers[schema.id.index()] = old.state.registers[o.id.index()].clone();
            }
        }
        for schema in &new.value_sets {
            let same = |o: &&crate::schema::ValueSetSchema| {
                o.name == schema.name && o.width == schema.width && o.max_size == schema.max_size
            };
            if let Some(o) = from.value_sets.iter().find(same) {
                self.state.value_sets[schema.id.index()] =
                    old.state.value_sets[o.id.index()].clone();
            }
        }
    }

    /// The old table with the name and shape of a new one, if its entries fit.
    fn same_table(&self, old: &Pipeline, id: TableId) -> Option<TableId> {
        let new = self.table_schema(id);
        let from = old.table_schema(old.find_table(&new.name)?);
        let flags = |t: &TableSchema| {
            (
                t.direct_counter.is_some(),
                t.direct_meter.as_ref().map(|m| m.unit),
                t.support_timeout,
            )
        };
        let same_profile = match (new.profile, from.profile) {
            (None, None) => true,
            (Some(n), Some(o)) => self.same_profile(old, n) == Some(o),
            _ => false,
        };
        let same = new.keys == from.keys
            && self.same_actions(old, &new.actions, &from.actions)
            && flags(new) == flags(from)
            && same_profile
            && old.table_len(from.id) <= new.max_size as usize;
        same.then_some(from.id)
    }

    /// The old profile with the name and shape of a new one, if its members fit.
    fn same_profile(&self, old: &Pipeline, id: ProfileId) -> Option<ProfileId> {
        let new: &ProfileSchema = &self.schema.profiles[id.index()];
        let from = &old.schema.profiles[old.find_action_profile(&new.name)?.index()];
        let fits = new.max_size == 0 || old.profile_members(from.id).len() <= new.max_size as usize;
        let same = new.selector == from.selector
            && self.same_actions(old, &new.actions, &from.actions)
            && fits;
        same.then_some(from.id)
    }

    /// True where each old action has one of the same name and parameters among the new ones.
    fn same_actions(&self, old: &Pipeline, new: &[ActionId], from: &[ActionId]) -> bool {
        from.iter()
            .all(|&a| self.same_action(old, new, a).is_some())
    }

    fn same_action(
        &self,
        old: &Pipeline,
        allowed: &[ActionId],
        from: ActionId,
    ) -> Option<ActionId> {
        let from = old.action_schema(from);
        allowed.iter().copied().find(|&a| {
            let new = self.action_schema(a);
            new.name == from.name && new.params == from.params
        })
    }

    fn same_call(
        &self,
        old: &Pipeline,
        allowed: &[ActionId],
        call: &ActionCall,
    ) -> Option<ActionCall> {
        let action = self.same_action(old, allowed, call.action)?;
        Some(ActionCall {
            action,
            args: call.args.clone(),
        })
    }
}
