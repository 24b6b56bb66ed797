// SPDX-License-Identifier: Apache-2.0
//! The control-plane API of a pipeline: names resolve to dense ids once; every request is checked whole before it is applied.
//!
//! Control plane of what is indexed by a number (counters, meters, registers) and of parser value sets.

mod reconcile;

use crate::bits::{Bits, Entry, EntryAction, EntryStats, MeterConfig, Nanos};
use crate::error::{At, ControlResult};
use crate::externs::meter::check_config;
use crate::pipeline::Pipeline;
use crate::schema::{CounterId, MeterId, RegisterId, ValueSetId, *};
use crate::table::{check_call, ActionWord, AsKey, Profile, Table, ValueSet};
use crate::{refusal, refuse};

pub use reconcile::{Kept, Piece, Takeover};

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

    /// A table, with what may be read of it.
    pub fn table(&self, table: TableId) -> &Table {
        &self.state.tables[table.index()]
    }

    /// A table, with what may be changed of it whatever else there is.
    pub fn table_mut(&mut self, table: TableId) -> &mut Table {
        &mut self.state.tables[table.index()]
    }

    /// An action profile or selector.
    pub fn profile(&self, profile: ProfileId) -> &Profile {
        &self.state.profiles[profile.index()]
    }

    /// An action profile or selector, with its members and groups.
    pub fn profile_mut(&mut self, profile: ProfileId) -> &mut Profile {
        &mut self.state.profiles[profile.index()]
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
            refuse!(
                ResourceExhausted,
                "table {} of {size} entries {refused}",
                schema.name
            );
        }
        self.table_mut(table).allow_changes(larger.max_size);
        Ok(())
    }

    /// The profile whose members and groups the entries of a table name, if they do.
    fn profile_of(&self, table: TableId) -> Option<&Profile> {
        Some(self.profile(self.table_schema(table).profile?))
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
    pub fn table_insert<K: AsKey>(
        &mut self,
        table: TableId,
        entry: &Entry<K>,
        now: Nanos,
    ) -> ControlResult {
        let (word, args) = self.check_action(table, &entry.action)?;
        self.table_mut(table).insert(entry, word, args, now)?;
        self.use_word(table, word, 1);
        Ok(())
    }

    /// Replaces action, time-out and cookie of an entry; its counters and meter stay, its time-out starts anew. Returns
    /// the cookie that it had.
    pub fn table_modify<K: AsKey>(
        &mut self,
        table: TableId,
        entry: &Entry<K>,
        now: Nanos,
    ) -> ControlResult<u64> {
        let (word, args) = self.check_action(table, &entry.action)?;
        let (before, cookie) = self.table_mut(table).modify(entry, word, args, now)?;
        self.use_word(table, word, 1);
        self.use_word(table, before, -1);
        Ok(cookie)
    }

    /// Deletes an entry. Returns the cookie that it had.
    pub fn table_delete(&mut self, table: TableId, key: &impl AsKey) -> ControlResult<u64> {
        let (before, cookie) = self.table_mut(table).delete(key)?;
        self.use_word(table, before, -1);
        Ok(cookie)
    }

    /// Reads an entry.
    pub fn table_get(&self, table: TableId, key: &impl AsKey) -> Option<(Entry, EntryStats)> {
        self.table(table).get(key, self.profile_of(table))
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
        let profile = self.profile_of(table);
        self.table(table).scan(cursor, max, profile, out)
    }

    /// Deletes all entries of a table that is not const.
    pub fn table_clear(&mut self, table: TableId) -> ControlResult {
        let mut words = Vec::new();
        self.table_mut(table).clear(|word| words.push(word))?;
        for word in words {
            self.use_word(table, word, -1);
        }
        Ok(())
    }

    /// Has the idle time-outs of all entries begin at `now`, when the program begins to run.
    pub fn begin_ageing(&mut self, now: Nanos) {
        let tables = self.state.tables.iter_mut();
        tables.for_each(|table| table.begin_ageing(now));
    }

    /// Entries whose idle time-out has passed, each told again after a further time-out without a hit (P4Runtime 1.5
    /// §16.4). A call looks at a bounded number of entries; those that it did not come to are told by the next.
    pub fn expired(&mut self, now: Nanos, out: &mut Vec<(TableId, Entry)>) {
        let mut indices = Vec::new();
        for i in 0..self.state.tables.len() {
            self.state.tables[i].expired(now, |at| indices.push(at));
            let id = TableId(i as u32);
            let (table, profile) = (self.table(id), self.profile_of(id));
            let entries = indices.drain(..).filter_map(|at| table.get_at(at, profile));
            out.extend(entries.map(|(entry, _)| (id, entry)));
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

    /// Checks what an entry does: the word for it, and the limbs of its arguments.
    fn check_action<'a>(
        &self,
        table: TableId,
        action: &'a EntryAction,
    ) -> ControlResult<(ActionWord, &'a [u64])> {
        let schema = self.table_schema(table);
        let place = format_args!("table {}", schema.name);
        let word = match (self.profile_of(table), action) {
            (None, EntryAction::Direct(call)) => {
                let word = check_call(&schema.actions, &self.schema.actions, call).at(place)?;
                return Ok((word, &call.args));
            }
            (None, _) => {
                return Err(refusal!(
                    "it has no action profile; an entry must call an action itself"
                )
                .at(place));
            }
            (Some(profile), EntryAction::Direct(_)) => {
                let name = &profile.schema().name;
                return Err(refusal!(
                    "its entries must name a member or group of action profile {name}"
                )
                .at(place));
            }
            (Some(profile), EntryAction::Member(member)) => profile.member_word(*member)?,
            (Some(profile), EntryAction::Group(group)) => profile.group_word(*group)?,
        };
        Ok((word, &[]))
    }

    fn use_word(&mut self, table: TableId, word: ActionWord, change: i32) {
        if let Some(profile) = self.table_schema(table).profile {
            self.profile_mut(profile).use_word(word, change);
        }
    }
}

/// A cell of an array called `name` of `size` cells; an error where it has no such.
fn cell<T>(kind: &str, name: &str, index: u32, size: u32, found: Option<T>) -> ControlResult<T> {
    let allowed = || match size {
        0 => "it has none".to_string(),
        n => format!("its indices are 0 to {}", n - 1),
    };
    found.ok_or_else(|| {
        refusal!(
            OutOfRange,
            "{kind} {name}: index {index} is out of range; {}",
            allowed()
        )
    })
}

impl Pipeline {
    /// (packets, bytes) of a counter cell.
    pub fn counter_get(&self, counter: CounterId, index: u32) -> ControlResult<(u64, u64)> {
        let schema = &self.schema.counters[counter.index()];
        let found = self.state.counters[counter.index()].get(index.into());
        cell("counter", &schema.name, index, schema.size, found)
    }

    /// Sets (packets, bytes) of a counter cell.
    pub fn counter_set(
        &mut self,
        counter: CounterId,
        index: u32,
        packets: u64,
        bytes: u64,
    ) -> ControlResult {
        let schema = &self.schema.counters[counter.index()];
        let is_set = self.state.counters[counter.index()].set(index.into(), packets, bytes);
        let found = is_set.then_some(());
        cell("counter", &schema.name, index, schema.size, found)
    }

    /// Rates of a meter cell.
    pub fn meter_get(&self, meter: MeterId, index: u32) -> ControlResult<Option<MeterConfig>> {
        let schema = &self.schema.meters[meter.index()];
        let found = self.state.meters[meter.index()].get(index.into());
        cell("meter", &schema.name, index, schema.size, found)
    }

    /// Sets the rates of a meter cell; None: every packet is green.
    pub fn meter_set(
        &mut self,
        meter: MeterId,
        index: u32,
        config: Option<MeterConfig>,
    ) -> ControlResult {
        let schema = &self.schema.meters[meter.index()];
        if let Some(config) = &config {
            let place = format_args!("meter {}: index {index}", schema.name);
            check_config(config).at(place)?;
        }
        let is_set = self.state.meters[meter.index()].set(index.into(), config.as_ref());
        let found = is_set.then_some(());
        cell("meter", &schema.name, index, schema.size, found)
    }

    /// A register cell.
    pub fn register_get(&self, register: RegisterId, index: u32) -> ControlResult<Bits> {
        let schema = &self.schema.registers[register.index()];
        let limbs = self.state.registers[register.index()].get(index.into());
        let found = limbs.map(|limbs| Bits::from_limbs(schema.width, &limbs));
        cell("register", &schema.name, index, schema.size, found)
    }

    /// Writes a register cell.
    pub fn register_set(
        &mut self,
        register: RegisterId,
        index: u32,
        value: &Bits,
    ) -> ControlResult {
        let schema = &self.schema.registers[register.index()];
        let (given, width) = (value.width(), schema.width);
        if given != width {
            let name = &schema.name;
            refuse!("register {name}: the value is {given} bits wide, the register {width}");
        }
        let is_set = self.state.registers[register.index()].write(index.into(), &value.to_limbs());
        let found = is_set.then_some(());
        cell("register", &schema.name, index, schema.size, found)
    }

    /// Puts a set that was made for this schema in the place of the one that is there, which comes back: so that neither
    /// is made or dropped where packets wait.
    pub fn value_set_replace(&mut self, set: ValueSetId, with: ValueSet) -> ValueSet {
        std::mem::replace(&mut self.state.value_sets[set.index()], with)
    }
}
