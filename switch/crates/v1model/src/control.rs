// SPDX-License-Identifier: Apache-2.0
//! The control-plane API of a pipeline: names resolve to dense ids once; every request is checked whole before it is applied.

mod arrays;
mod profiles;
mod reconcile;

pub use reconcile::{Piece, Takeover};

use crate::entry::{ActionCall, Entry, EntryAction, EntryKey, EntryStats, MeterConfig, Nanos};
use crate::error::{ControlError, ErrorKind};
use crate::pipeline::Pipeline;
use crate::schema::*;
use crate::table::{pack_call, unpack_call, ActionWord, Callee, StoredEntry, Table};

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

    /// True when the control plane may not change the entries of a table, as they are the program's.
    pub fn table_is_const(&self, table: TableId) -> bool {
        self.state.tables[table.index()].is_const()
    }

    /// Lets the control plane change the entries that the program put into a table, and add further ones up to `size`
    /// in all. BMv2 JSON has `const entries` and `entries` in one form, and their number for the size of the table: until
    /// this is called they are const.
    pub fn table_allow_changes(&mut self, table: TableId, size: u32) -> ControlResult {
        let (schema, actions) = (&self.schema.tables[table.index()], &self.schema.actions);
        let larger = TableSchema {
            max_size: size.max(schema.max_size),
            ..schema.clone()
        };
        let own = Table::bytes(schema, actions);
        let more = Table::bytes(&larger, actions) - own;
        if let Err(refused) = self.budget.take(more) {
            return Err(ControlError::new(
                ErrorKind::ResourceExhausted,
                format!("table {} of {size} entries {refused}", schema.name),
            ));
        }
        self.state.tables[table.index()].allow_changes(larger.max_size);
        Ok(())
    }

    /// Most entries of a table.
    pub fn table_size(&self, table: TableId) -> u32 {
        self.state.tables[table.index()].max_size()
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
        let (word, args) = self.pack_action(table, &entry.action)?;
        let schema = &self.schema.tables[table.index()];
        self.state.tables[table.index()].insert(schema, entry, word, &args, now)?;
        self.use_word(table, word, 1);
        Ok(())
    }

    /// Replaces action, time-out and cookie of an entry; its counters and meter stay, its time-out starts anew.
    pub fn table_modify(&mut self, table: TableId, entry: &Entry, now: Nanos) -> ControlResult {
        let (word, args) = self.pack_action(table, &entry.action)?;
        let schema = &self.schema.tables[table.index()];
        let before = self.state.tables[table.index()].modify(schema, entry, word, &args, now)?;
        self.use_word(table, word, 1);
        self.use_word(table, before, -1);
        Ok(())
    }

    /// Deletes an entry.
    pub fn table_delete(&mut self, table: TableId, key: &EntryKey) -> ControlResult {
        let schema = &self.schema.tables[table.index()];
        let before = self.state.tables[table.index()].delete(schema, key)?;
        self.use_word(table, before, -1);
        Ok(())
    }

    /// Reads an entry.
    pub fn table_get(&self, table: TableId, key: &EntryKey) -> Option<(Entry, EntryStats)> {
        let stored = self.state.tables[table.index()].get(self.table_schema(table), key)?;
        Some(self.unpack_entry(table, stored))
    }

    /// Appends up to `max` entries from `cursor` on (0 to begin); returns the next cursor, None at the end. Entries
    /// that live through the whole scan come exactly once, whatever else is inserted or deleted meanwhile.
    pub fn table_scan(
        &self,
        table: TableId,
        cursor: u32,
        max: usize,
        out: &mut Vec<(Entry, EntryStats)>,
    ) -> Option<u32> {
        self.state.tables[table.index()].scan(self.table_schema(table), cursor, max, |stored| {
            out.push(self.unpack_entry(table, stored));
        })
    }

    /// Number of entries.
    pub fn table_len(&self, table: TableId) -> usize {
        self.state.tables[table.index()].len()
    }

    /// Deletes all entries of a table that is not const.
    pub fn table_clear(&mut self, table: TableId) -> ControlResult {
        let schema = &self.schema.tables[table.index()];
        let mut words = Vec::new();
        self.state.tables[table.index()].clear(schema, |word| words.push(word))?;
        for word in words {
            self.use_word(table, word, -1);
        }
        Ok(())
    }

    /// The default action in force.
    pub fn table_default(&self, table: TableId) -> Option<ActionCall> {
        self.state.tables[table.index()].default_call(&self.schema.actions)
    }

    /// Sets the default action; None: back to the program's own.
    pub fn table_set_default(&mut self, table: TableId, call: Option<ActionCall>) -> ControlResult {
        let schema = &self.schema.tables[table.index()];
        self.state.tables[table.index()].set_default(schema, &self.schema.actions, call.as_ref())
    }

    /// Statistics of the default entry (packets, bytes of the misses).
    pub fn table_default_stats(&self, table: TableId) -> EntryStats {
        let (packets, bytes) = self.state.tables[table.index()].default_count();
        EntryStats {
            packets,
            bytes,
            ..EntryStats::default()
        }
    }

    /// Sets the (packets, bytes) of the misses.
    pub fn table_set_default_stats(&mut self, table: TableId, packets: u64, bytes: u64) {
        self.state.tables[table.index()].set_default_count(packets, bytes);
    }

    /// (packets, bytes) of an entry.
    pub fn direct_counter_get(&self, table: TableId, key: &EntryKey) -> ControlResult<(u64, u64)> {
        self.state.tables[table.index()].count(self.table_schema(table), key)
    }

    /// Sets (packets, bytes) of an entry.
    pub fn direct_counter_set(
        &mut self,
        table: TableId,
        key: &EntryKey,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let schema = &self.schema.tables[table.index()];
        self.state.tables[table.index()].set_count(schema, key, packets, bytes)
    }

    /// Rates of an entry's direct meter.
    pub fn direct_meter_get(
        &self,
        table: TableId,
        key: &EntryKey,
    ) -> ControlResult<Option<MeterConfig>> {
        self.state.tables[table.index()].meter(self.table_schema(table), key)
    }

    /// Sets the rates of an entry's direct meter; None: every packet is green.
    pub fn direct_meter_set(
        &mut self,
        table: TableId,
        key: &EntryKey,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        let schema = &self.schema.tables[table.index()];
        self.state.tables[table.index()].set_meter(schema, key, config.as_ref())
    }

    /// Entries whose idle time-out has passed, each told again after a further time-out without a hit (P4Runtime 1.5
    /// §16.4). A call looks at a bounded number of entries; those that it did not come to are told by the next.
    pub fn expired(&mut self, now: Nanos, out: &mut Vec<(TableId, Entry)>) {
        let mut indices = Vec::new();
        for i in 0..self.state.tables.len() {
            self.state.tables[i].expired(now, |at| indices.push(at));
            let schema = &self.schema.tables[i];
            for at in indices.drain(..) {
                if let Some(stored) = self.state.tables[i].get_at(schema, at) {
                    out.push((schema.id, self.unpack_entry(schema.id, stored).0));
                }
            }
        }
    }

    /// The time before which `expired` has nothing to tell; None: never.
    pub fn next_expiry(&self) -> Option<Nanos> {
        self.state
            .tables
            .iter()
            .filter_map(|t| t.next_expiry())
            .min()
    }

    /// Checks what an entry does, and packs it.
    fn pack_action(
        &self,
        table: TableId,
        action: &EntryAction,
    ) -> ControlResult<(ActionWord, Vec<u64>)> {
        let schema = self.table_schema(table);
        let invalid = |text: &str| {
            ControlError::new(
                ErrorKind::InvalidArgument,
                format!("table {}: {text}", schema.name),
            )
        };
        let Some(id) = schema.profile else {
            return match action {
                EntryAction::Direct(call) => {
                    pack_call(&schema.actions, &self.schema.actions, call, || {
                        format!("table {}", schema.name)
                    })
                }
                _ => Err(invalid(
                    "it has no action profile; an entry must call an action itself",
                )),
            };
        };
        let (profile, profile_schema) = (&self.state.profiles[id.index()], self.profile_schema(id));
        let word = match action {
            EntryAction::Direct(_) => {
                return Err(invalid(&format!(
                    "its entries must name a member or group of action profile {}",
                    profile_schema.name
                )))
            }
            EntryAction::Member(member) => profile.member_word(profile_schema, *member)?,
            EntryAction::Group(group) => profile.group_word(profile_schema, *group)?,
        };
        Ok((word, Vec::new()))
    }

    /// An entry as the client knows it.
    fn unpack_entry(&self, table: TableId, stored: StoredEntry) -> (Entry, EntryStats) {
        let action = match stored.word.callee() {
            Callee::Action(action) => {
                EntryAction::Direct(unpack_call(&self.schema.actions, action, &stored.args))
            }
            place => {
                let profile = self
                    .table_schema(table)
                    .profile
                    .map(|p| &self.state.profiles[p.index()]);
                match profile.and_then(|p| p.id_of(place)) {
                    Some(Ok(member)) => EntryAction::Member(member),
                    Some(Err(group)) => EntryAction::Group(group),
                    None => unreachable!("members and groups in use cannot be deleted"),
                }
            }
        };
        let entry = Entry {
            key: stored.key,
            action,
            idle_timeout: stored.idle_timeout,
            cookie: stored.cookie,
        };
        (entry, stored.stats)
    }

    fn use_word(&mut self, table: TableId, word: ActionWord, change: i32) {
        if let Some(profile) = self.table_schema(table).profile {
            self.state.profiles[profile.index()].use_word(word, change);
        }
    }

    fn profile_schema(&self, profile: ProfileId) -> &ProfileSchema {
        &self.schema.profiles[profile.index()]
    }
}
