// SPDX-License-Identifier: Apache-2.0
//! The control-plane API of a pipeline: names resolve to dense ids once; every request is checked whole before it is applied.

use crate::bits::Bits;
use crate::entry::{ActionCall, Entry, EntryKey, EntryStats, KeyMatch, MeterConfig, Nanos};
use crate::error::ControlError;
use crate::pipeline::Pipeline;
use crate::schema::*;

/// Result of a control-plane request.
pub type ControlResult<T = ()> = Result<T, ControlError>;

/// One weighted member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Member id.
    pub member: u32,
    /// At least 1.
    pub weight: u32,
}

macro_rules! find {
    ($($(#[$doc:meta])* $fn:ident, $field:ident, $id:ident;)*) => {$(
        $(#[$doc])*
        pub fn $fn(&self, name: &str) -> Option<$id> {
            self.schema.$field.iter().find(|s| s.name == name).map(|s| s.id)
        }
    )*};
}

impl Pipeline {
    find! {
        /// A table by its full P4 name.
        find_table, tables, TableId;
        /// An indirect counter by its full P4 name.
        find_counter, counters, CounterId;
        /// An indirect meter by its full P4 name.
        find_meter, meters, MeterId;
        /// A register by its full P4 name.
        find_register, registers, RegisterId;
        /// An action profile or selector by its full P4 name.
        find_action_profile, profiles, ProfileId;
        /// A digest by its name.
        find_digest, digests, DigestId;
        /// A parser value set by its full P4 name.
        find_value_set, value_sets, ValueSetId;
    }

    /// The action called `name` among those of a table.
    pub fn table_action(&self, table: TableId, name: &str) -> Option<ActionId> {
        self.table_schema(table)
            .actions
            .iter()
            .copied()
            .find(|&a| self.action_schema(a).name == name)
    }

    /// The shape of a table.
    pub fn table_schema(&self, table: TableId) -> &TableSchema {
        &self.schema.tables[table.index()]
    }

    /// The shape of an action.
    pub fn action_schema(&self, action: ActionId) -> &ActionSchema {
        &self.schema.actions[action.index()]
    }

    /// Inserts an entry.
    pub fn table_insert(&mut self, table: TableId, entry: &Entry, now: Nanos) -> ControlResult {
        let _ = (table, entry, now);
        todo!()
    }

    /// Replaces action, time-out and cookie of an entry; its counters stay.
    pub fn table_modify(&mut self, table: TableId, entry: &Entry, now: Nanos) -> ControlResult {
        let _ = (table, entry, now);
        todo!()
    }

    /// Deletes an entry.
    pub fn table_delete(&mut self, table: TableId, key: &EntryKey) -> ControlResult {
        let _ = (table, key);
        todo!()
    }

    /// Reads an entry.
    pub fn table_get(&self, table: TableId, key: &EntryKey) -> Option<(Entry, EntryStats)> {
        let _ = (table, key);
        todo!()
    }

    /// Appends up to `max` entries from `cursor` on (0 to begin); returns the next cursor, None at the end.
    pub fn table_scan(
        &self,
        table: TableId,
        cursor: u32,
        max: usize,
        out: &mut Vec<(Entry, EntryStats)>,
    ) -> Option<u32> {
        let _ = (table, cursor, max, out);
        todo!()
    }

    /// Number of entries.
    pub fn table_len(&self, table: TableId) -> usize {
        let _ = table;
        todo!()
    }

    /// Deletes all entries of a table that is not const.
    pub fn table_clear(&mut self, table: TableId) -> ControlResult {
        let _ = table;
        todo!()
    }

    /// The default action in force.
    pub fn table_default(&self, table: TableId) -> Option<ActionCall> {
        let _ = table;
        todo!()
    }

    /// Sets the default action; None: back to the program's own.
    pub fn table_set_default(&mut self, table: TableId, call: Option<ActionCall>) -> ControlResult {
        let _ = (table, call);
        todo!()
    }

    /// Statistics of the default entry (packets, bytes of the misses).
    pub fn table_default_stats(&self, table: TableId) -> EntryStats {
        let _ = table;
        todo!()
    }

    /// (packets, bytes) of an entry.
    pub fn direct_counter_get(&self, table: TableId, key: &EntryKey) -> ControlResult<(u64, u64)> {
        let _ = (table, key);
        todo!()
    }

    /// Sets (packets, bytes) of an entry.
    pub fn direct_counter_set(
        &mut self,
        table: TableId,
        key: &EntryKey,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let _ = (table, key, packets, bytes);
        todo!()
    }

    /// Rates of an entry's direct meter.
    pub fn direct_meter_get(
        &self,
        table: TableId,
        key: &EntryKey,
    ) -> ControlResult<Option<MeterConfig>> {
        let _ = (table, key);
        todo!()
    }

    /// Sets the rates of an entry's direct meter; None: every packet is green.
    pub fn direct_meter_set(
        &mut self,
        table: TableId,
        key: &EntryKey,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        let _ = (table, key, config);
        todo!()
    }

    /// (packets, bytes) of a counter cell.
    pub fn counter_get(&self, counter: CounterId, index: u32) -> ControlResult<(u64, u64)> {
        let _ = (counter, index);
        todo!()
    }

    /// Sets (packets, bytes) of a counter cell.
    pub fn counter_set(
        &mut self,
        counter: CounterId,
        index: u32,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let _ = (counter, index, packets, bytes);
        todo!()
    }

    /// Rates of a meter cell.
    pub fn meter_get(&self, meter: MeterId, index: u32) -> ControlResult<Option<MeterConfig>> {
        let _ = (meter, index);
        todo!()
    }

    /// Sets the rates of a meter cell; None: every packet is green.
    pub fn meter_set(
        &mut self,
        meter: MeterId,
        index: u32,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        let _ = (meter, index, config);
        todo!()
    }

    /// A register cell.
    pub fn register_get(&self, register: RegisterId, index: u32) -> ControlResult<Bits> {
        let _ = (register, index);
        todo!()
    }

    /// Writes a register cell.
    pub fn register_set(
        &mut self,
        register: RegisterId,
        index: u32,
        value: &Bits,
    ) -> ControlResult {
        let _ = (register, index, value);
        todo!()
    }

    /// Members of a value set.
    pub fn value_set_get(&self, set: ValueSetId) -> Vec<Vec<KeyMatch>> {
        let _ = set;
        todo!()
    }

    /// Replaces the members of a value set: each is one match over the whole width, or one for each field.
    pub fn value_set_set(&mut self, set: ValueSetId, members: Vec<Vec<KeyMatch>>) -> ControlResult {
        let _ = (set, members);
        todo!()
    }

    /// Adds a profile member.
    pub fn profile_member_insert(
        &mut self,
        profile: ProfileId,
        member: u32,
        call: &ActionCall,
    ) -> ControlResult {
        let _ = (profile, member, call);
        todo!()
    }

    /// Changes a profile member.
    pub fn profile_member_modify(
        &mut self,
        profile: ProfileId,
        member: u32,
        call: &ActionCall,
    ) -> ControlResult {
        let _ = (profile, member, call);
        todo!()
    }

    /// Deletes a profile member that no entry and no group uses.
    pub fn profile_member_delete(&mut self, profile: ProfileId, member: u32) -> ControlResult {
        let _ = (profile, member);
        todo!()
    }

    /// A profile member.
    pub fn profile_member_get(&self, profile: ProfileId, member: u32) -> Option<ActionCall> {
        let _ = (profile, member);
        todo!()
    }

    /// Ids of all members.
    pub fn profile_members(&self, profile: ProfileId) -> Vec<u32> {
        let _ = profile;
        todo!()
    }

    /// Adds a group (selectors only).
    pub fn profile_group_insert(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> ControlResult {
        let _ = (profile, group, members, max_size);
        todo!()
    }

    /// Replaces the members of a group.
    pub fn profile_group_modify(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[GroupMember],
    ) -> ControlResult {
        let _ = (profile, group, members);
        todo!()
    }

    /// Deletes a group that no entry uses.
    pub fn profile_group_delete(&mut self, profile: ProfileId, group: u32) -> ControlResult {
        let _ = (profile, group);
        todo!()
    }

    /// Members and maximal size of a group.
    pub fn profile_group_get(
        &self,
        profile: ProfileId,
        group: u32,
    ) -> Option<(Vec<GroupMember>, u32)> {
        let _ = (profile, group);
        todo!()
    }

    /// Ids of all groups.
    pub fn profile_groups(&self, profile: ProfileId) -> Vec<u32> {
        let _ = profile;
        todo!()
    }

    /// Entries whose idle time-out has passed, each told once until hit again; bounded work a call.
    pub fn expired(&mut self, now: Nanos, out: &mut Vec<(TableId, Entry)>) {
        let _ = (now, out);
        todo!()
    }

    /// Carries over from `old` the entries, members, groups, default actions, counters, meters, registers and
    /// value sets of every object whose schema is equal (P4Runtime RECONCILE_AND_COMMIT).
    pub fn clone_state_from(&mut self, old: &Pipeline) -> ControlResult {
        let _ = old;
        todo!()
    }
}
