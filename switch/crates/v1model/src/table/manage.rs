// SPDX-License-Identifier: Apache-2.0
//! The control plane's side of a table: every request is checked whole, then applied.

use super::call::{pack_call, unpack_call, ActionWord, Callee};
use super::key::{self, PackedKey};
use super::records::EntryHandle;
use super::{Index, Table, LARGE};
use crate::entry::{ActionCall, Entry, EntryKey, EntryStats, MeterConfig, Nanos};
use crate::error::{ControlError, ErrorKind};
use crate::externs::meter::check_config;
use crate::schema::{ActionSchema, TableSchema};

/// An entry as stored; the caller turns places in a profile into ids.
pub struct StoredEntry {
    /// Its key.
    pub key: EntryKey,
    /// What it does.
    pub word: ActionWord,
    /// Argument limbs, of an action.
    pub args: Vec<u64>,
    /// Its time-out, 0 never.
    pub idle_timeout: Nanos,
    /// Opaque.
    pub cookie: u64,
    /// What was measured.
    pub stats: EntryStats,
}

impl Table {
    /// Inserts an entry whose action is packed already. Returns its handle.
    pub fn insert(
        &mut self,
        schema: &TableSchema,
        entry: &Entry,
        word: ActionWord,
        args: &[u64],
        now: Nanos,
    ) -> Result<EntryHandle, ControlError> {
        self.check_mutable(schema)?;
        if matches!(self.index, Index::Keyless) {
            return Err(error(
                schema,
                ErrorKind::InvalidArgument,
                "it has no key; only its default action can be set",
            ));
        }
        let packed = key::pack(schema, &entry.key)?;
        self.check_timeout(schema, entry)?;
        if self.find(&packed).is_some() {
            return Err(error(
                schema,
                ErrorKind::AlreadyExists,
                format!(
                    "an entry with key {} exists",
                    key::show(&schema.keys, &entry.key)
                ),
            ));
        }
        if self.records.len() >= self.max_size as usize {
            return Err(error(
                schema,
                ErrorKind::ResourceExhausted,
                format!(
                    "it is full: {} entries of at most {}",
                    self.records.len(),
                    self.max_size
                ),
            ));
        }
        let at = self.records.add();
        self.is_large = self.records.len() >= LARGE;
        let layout = self.records.layout;
        let record = self.records.record_mut(at);
        let value = match &self.index {
            Index::Exact(exact) => &exact.pack(&packed.value),
            _ => &packed.value,
        };
        record[layout.key_at..][..layout.key_limbs].copy_from_slice(value);
        record[layout.range_at..][..layout.range_limbs].copy_from_slice(&packed.ranges);
        self.records.set_priority(at, packed.priority);
        self.records.set_action(at, word, args);
        self.records.set_last_hit(at, now);
        match &mut self.index {
            Index::Keyless => unreachable!("refused above"),
            Index::Exact(exact) => exact.insert(&self.records, at),
            Index::Lpm(lengths) => lengths.insert(&mut self.records, at, &packed),
            Index::Priority(space) => space.insert(&mut self.records, at, &packed),
        }
        self.set_cold(at, entry, 0);
        Ok(self.records.handle(at))
    }

    /// Replaces action, time-out and cookie; counters and meter stay, the time-out starts anew. Returns what the entry
    /// did before.
    pub fn modify(
        &mut self,
        schema: &TableSchema,
        entry: &Entry,
        word: ActionWord,
        args: &[u64],
        now: Nanos,
    ) -> Result<ActionWord, ControlError> {
        self.check_mutable(schema)?;
        let at = self.require(schema, &entry.key)?;
        self.check_timeout(schema, entry)?;
        let before = self.records.action(at);
        self.records.set_action(at, word, args);
        self.records.set_last_hit(at, now);
        let old_timeout = self.records.cold(at).idle_timeout;
        self.set_cold(at, entry, old_timeout);
        Ok(before)
    }

    /// Deletes an entry and returns what it did.
    pub fn delete(
        &mut self,
        schema: &TableSchema,
        key: &EntryKey,
    ) -> Result<ActionWord, ControlError> {
        self.check_mutable(schema)?;
        let at = self.require(schema, key)?;
        let packed = key::pack(schema, key)?;
        Ok(self.delete_at(at, &packed))
    }

    /// Deletes all entries and calls `forget` with what each did.
    pub fn clear(
        &mut self,
        schema: &TableSchema,
        mut forget: impl FnMut(ActionWord),
    ) -> Result<(), ControlError> {
        self.check_mutable(schema)?;
        for at in 0..self.records.end() {
            if self.records.is_live(at) {
                let packed = self.packed(at);
                forget(self.delete_at(at, &packed));
            }
        }
        Ok(())
    }

    /// The entry with this key.
    pub fn get(&self, schema: &TableSchema, key: &EntryKey) -> Option<StoredEntry> {
        let packed = key::pack(schema, key).ok()?;
        self.find(&packed).map(|at| self.stored(schema, at))
    }

    /// The entry at an index where one lives, e.g. for a time-out.
    pub fn get_at(&self, schema: &TableSchema, at: u32) -> Option<StoredEntry> {
        self.records.is_live(at).then(|| self.stored(schema, at))
    }

    /// Calls `tell` for up to `max` entries from `cursor` on; returns the next cursor, `None` at the end. Entries that
    /// live through a whole scan are reported exactly once.
    pub fn scan(
        &self,
        schema: &TableSchema,
        cursor: u32,
        max: usize,
        mut tell: impl FnMut(StoredEntry),
    ) -> Option<u32> {
        let mut live = self.records.live_from(cursor);
        for at in live.by_ref().take(max) {
            tell(self.stored(schema, at));
        }
        live.next()
    }

    /// Sets the default action; `None` brings back the program's own.
    pub fn set_default(
        &mut self,
        schema: &TableSchema,
        actions: &[ActionSchema],
        call: Option<&ActionCall>,
    ) -> Result<(), ControlError> {
        if schema.const_default_action && call.is_some() {
            return Err(error(
                schema,
                ErrorKind::PermissionDenied,
                "its default action is const; the program does not allow to change it",
            ));
        }
        let Some(call) = call else {
            return self.reset_default(schema, actions);
        };
        let (word, args) = pack_call(&schema.actions, actions, call, || default_of(schema))?;
        self.default.action = Some(word);
        self.default.args = args;
        Ok(())
    }

    /// Puts the program's own default action in force.
    pub(super) fn reset_default(
        &mut self,
        schema: &TableSchema,
        actions: &[ActionSchema],
    ) -> Result<(), ControlError> {
        let packed = match &schema.default_action {
            Some(call) => {
                // The program may call an action by default that entries may not.
                Some(pack_call(&[call.action], actions, call, || {
                    default_of(schema)
                })?)
            }
            None => None,
        };
        let (action, args) = packed.map_or((None, Vec::new()), |(word, args)| (Some(word), args));
        self.default.action = action;
        self.default.args = args;
        Ok(())
    }

    /// The default action in force.
    pub fn default_call(&self, actions: &[ActionSchema]) -> Option<ActionCall> {
        match self.default.action?.callee() {
            Callee::Action(action) => Some(unpack_call(actions, action, &self.default.args)),
            Callee::Member(_) | Callee::Group(_) => None,
        }
    }

    /// (packets, bytes) that missed.
    pub fn default_count(&self) -> (u64, u64) {
        (self.default.packets, self.default.bytes)
    }

    /// Sets (packets, bytes) that missed.
    pub fn set_default_count(&mut self, packets: u64, bytes: u64) {
        self.default.packets = packets;
        self.default.bytes = bytes;
    }

    /// (packets, bytes) of an entry.
    pub fn count(&self, schema: &TableSchema, key: &EntryKey) -> Result<(u64, u64), ControlError> {
        self.check_counted(schema)?;
        Ok(self.records.count(self.require(schema, key)?))
    }

    /// Sets (packets, bytes) of an entry.
    pub fn set_count(
        &mut self,
        schema: &TableSchema,
        key: &EntryKey,
        packets: u64,
        bytes: u64,
    ) -> Result<(), ControlError> {
        self.check_counted(schema)?;
        let at = self.require(schema, key)?;
        self.records.set_count(at, packets, bytes);
        Ok(())
    }

    /// Rates of an entry's direct meter.
    pub fn meter(
        &self,
        schema: &TableSchema,
        key: &EntryKey,
    ) -> Result<Option<MeterConfig>, ControlError> {
        self.check_metered(schema)?;
        let at = self.require(schema, key)?;
        Ok(self.meter_at(at))
    }

    /// Sets the rates of an entry's direct meter; `None`: every packet is green.
    pub fn set_meter(
        &mut self,
        schema: &TableSchema,
        key: &EntryKey,
        config: Option<&MeterConfig>,
    ) -> Result<(), ControlError> {
        self.check_metered(schema)?;
        let at = self.require(schema, key)?;
        if let Some(config) = config {
            check_config(config).map_err(|text| {
                error(
                    schema,
                    ErrorKind::InvalidArgument,
                    format!("direct meter: {text}"),
                )
            })?;
        }
        if let Some(meters) = &mut self.meters {
            meters.set(u64::from(at), config);
        }
        Ok(())
    }

    /// Calls `tell` with the index of each entry whose time-out has passed by `now`, and again after each further
    /// time-out without a hit; looks at a bounded number of entries.
    pub fn expired(&mut self, now: Nanos, tell: impl FnMut(u32)) {
        if let Some(ageing) = &mut self.ageing {
            ageing.expired(&self.records, now, tell);
        }
    }

    /// Nothing expires before this.
    pub fn next_expiry(&self) -> Option<Nanos> {
        self.ageing.as_ref().and_then(|a| a.next_due())
    }

    /// Copies what was measured at an entry: counters, stamp and meter rates.
    pub(crate) fn restore(&mut self, handle: EntryHandle, stats: &EntryStats) {
        let at = handle.index.0;
        self.records.set_count(at, stats.packets, stats.bytes);
        self.records.set_last_hit(at, stats.last_hit);
        if let Some(meters) = &mut self.meters {
            meters.set(u64::from(at), stats.meter.as_ref());
        }
    }

    fn find(&self, key: &PackedKey) -> Option<u32> {
        match &self.index {
            Index::Keyless => None,
            Index::Exact(exact) => exact.find(&self.records, &key.value),
            Index::Lpm(lengths) => lengths.find(key),
            Index::Priority(space) => space.find(&self.records, key),
        }
    }

    fn require(&self, schema: &TableSchema, key: &EntryKey) -> Result<u32, ControlError> {
        let packed = key::pack(schema, key)?;
        self.find(&packed).ok_or_else(|| {
            error(
                schema,
                ErrorKind::NotFound,
                format!(
                    "there is no entry with key {}",
                    key::show(&schema.keys, key)
                ),
            )
        })
    }

    fn delete_at(&mut self, at: u32, packed: &PackedKey) -> ActionWord {
        let word = self.records.action(at);
        match &mut self.index {
            Index::Keyless => unreachable!("a keyless table has no entries"),
            Index::Exact(exact) => exact.remove(&self.records, at),
            Index::Lpm(lengths) => lengths.remove(packed),
            Index::Priority(space) => space.remove(&mut self.records, at, packed),
        }
        let old_timeout = std::mem::take(&mut self.records.cold_mut(at).idle_timeout);
        if old_timeout > 0 {
            if let Some(ageing) = &mut self.ageing {
                ageing.set(&mut self.records, at, old_timeout, 0);
            }
        }
        if let Some(meters) = &mut self.meters {
            meters.set(u64::from(at), None);
        }
        self.records.remove(at);
        self.is_large = self.records.len() >= LARGE;
        word
    }

    fn set_cold(&mut self, at: u32, entry: &Entry, old_timeout: Nanos) {
        let cold = self.records.cold_mut(at);
        cold.cookie = entry.cookie;
        cold.idle_timeout = entry.idle_timeout;
        if let Some(ageing) = &mut self.ageing {
            if old_timeout > 0 || entry.idle_timeout > 0 {
                ageing.set(&mut self.records, at, old_timeout, entry.idle_timeout);
            }
        }
    }

    fn packed(&self, at: u32) -> PackedKey {
        let words = self.records.key(at);
        let (value, mask) = match &self.index {
            Index::Exact(exact) => {
                let value = exact.unpack(words);
                let mask = vec![u64::MAX; value.len()];
                (value, mask)
            }
            Index::Lpm(lengths) => {
                let mask = lengths.mask(self.records.cold(at).tuple);
                (words.to_vec(), mask)
            }
            Index::Priority(space) => {
                let mask = space.mask(self.records.cold(at).tuple).to_vec();
                (words.to_vec(), mask)
            }
            Index::Keyless => unreachable!("a keyless table has no entries"),
        };
        PackedKey {
            value,
            mask,
            ranges: self.records.ranges(at).to_vec(),
            priority: self.records.priority(at),
        }
    }

    fn stored(&self, schema: &TableSchema, at: u32) -> StoredEntry {
        let p = self.packed(at);
        let cold = self.records.cold(at);
        let (packets, bytes) = self.records.count(at);
        let layout = self.records.layout;
        StoredEntry {
            key: key::unpack(&schema.keys, &p.value, &p.mask, &p.ranges, p.priority),
            word: self.records.action(at),
            args: self.records.record(at)[layout.args_at..][..layout.arg_limbs].to_vec(),
            idle_timeout: cold.idle_timeout,
            cookie: cold.cookie,
            stats: EntryStats {
                packets,
                bytes,
                last_hit: self.records.last_hit(at),
                meter: self.meter_at(at),
            },
        }
    }

    fn meter_at(&self, at: u32) -> Option<MeterConfig> {
        self.meters
            .as_ref()
            .and_then(|m| m.get(u64::from(at)))
            .flatten()
    }

    fn check_mutable(&self, schema: &TableSchema) -> Result<(), ControlError> {
        if self.immutable {
            return Err(error(
                schema,
                ErrorKind::PermissionDenied,
                "its entries are const; the program does not allow to change them",
            ));
        }
        Ok(())
    }

    fn check_timeout(&self, schema: &TableSchema, entry: &Entry) -> Result<(), ControlError> {
        if entry.idle_timeout > 0 && self.ageing.is_none() {
            return Err(error(
                schema,
                ErrorKind::InvalidArgument,
                format!(
                    "idle time-out {} ns: it does not support time-outs (support_timeout in the P4 program); only 0 is allowed",
                    entry.idle_timeout
                ),
            ));
        }
        Ok(())
    }

    fn check_counted(&self, schema: &TableSchema) -> Result<(), ControlError> {
        match self.records.layout.count_at {
            Some(_) => Ok(()),
            None => Err(error(
                schema,
                ErrorKind::InvalidArgument,
                "it has no direct counter",
            )),
        }
    }

    fn check_metered(&self, schema: &TableSchema) -> Result<(), ControlError> {
        match self.meters {
            Some(_) => Ok(()),
            None => Err(error(
                schema,
                ErrorKind::InvalidArgument,
                "it has no direct meter",
            )),
        }
    }
}

fn default_of(schema: &TableSchema) -> String {
    format!("table {}: default action", schema.name)
}

fn error(schema: &TableSchema, kind: ErrorKind, text: impl AsRef<str>) -> ControlError {
    ControlError::new(kind, format!("table {}: {}", schema.name, text.as_ref()))
}
