// SPDX-License-Identifier: Apache-2.0
//! The control plane's side of a table: every request is checked whole, then applied.

use super::key::{self, check_call, ActionWord, AsKey, Callee, Key};
use super::records::EntryIndex;
use super::{Index, Profile, Table, LARGE};
use crate::bits::{ActionCall, Entry, EntryAction, EntryStats, MeterConfig, Nanos};
use crate::error::{At, ControlError, ControlResult, ErrorKind};
use crate::externs::meter::check_config;
use crate::schema::TableSchema;

impl Table {
    /// Its shape.
    pub fn schema(&self) -> &TableSchema {
        &self.program.tables[self.id.index()]
    }

    /// Inserts an entry whose action is checked already. Returns where it is.
    pub(crate) fn insert<K: AsKey>(
        &mut self,
        entry: &Entry<K>,
        word: ActionWord,
        args: &[u64],
        now: Nanos,
    ) -> ControlResult<EntryIndex> {
        self.check_mutable()?;
        if matches!(self.index, Index::Keyless) {
            let text = "it has no key; only its default action can be set";
            return Err(self.error(ErrorKind::InvalidArgument, text));
        }
        let key = &*entry.key.as_key(self.schema())?;
        self.check_timeout(entry.idle_timeout)?;
        if self.find(key).is_some() {
            let text = format!("an entry with key {} exists", self.show(key));
            return Err(self.error(ErrorKind::AlreadyExists, text));
        }
        if self.records.len() >= self.max_size as usize {
            let (len, max) = (self.records.len(), self.max_size);
            let text = format!("it is full: {len} entries of at most {max}");
            return Err(self.error(ErrorKind::ResourceExhausted, text));
        }
        let at = self.records.add();
        self.is_large = self.records.len() >= LARGE;
        let layout = self.records.layout;
        let record = self.records.record_mut(at);
        let words = &mut record[layout.key_at..][..layout.key_limbs];
        match &self.index {
            Index::Exact(exact) => exact.pack(&key.value, words),
            _ => words.copy_from_slice(&key.value),
        }
        record[layout.range_at..][..layout.range_limbs].copy_from_slice(&key.ranges);
        self.records.set_priority(at, key.priority);
        self.records.set_action(at, word, args);
        self.records.set_last_hit(at, now);
        match &mut self.index {
            Index::Keyless => unreachable!("refused above"),
            Index::Exact(exact) => exact.insert(&self.records, at),
            Index::Lpm(lengths) => lengths.insert(&mut self.records, at, key),
            Index::Priority(space) => space.insert(&mut self.records, at, key),
        }
        self.set_cold(at, entry, 0);
        Ok(EntryIndex(at))
    }

    /// Replaces action, time-out and cookie; counters and meter stay, the time-out starts anew. Returns what the entry
    /// did before, and its cookie.
    pub(crate) fn modify<K: AsKey>(
        &mut self,
        entry: &Entry<K>,
        word: ActionWord,
        args: &[u64],
        now: Nanos,
    ) -> ControlResult<(ActionWord, u64)> {
        self.check_mutable()?;
        let at = self.require(&entry.key)?;
        self.check_timeout(entry.idle_timeout)?;
        let before = (self.records.action(at), self.records.cold(at).cookie);
        self.records.set_action(at, word, args);
        self.records.set_last_hit(at, now);
        let old_timeout = self.records.cold(at).idle_timeout;
        self.set_cold(at, entry, old_timeout);
        Ok(before)
    }

    /// Deletes an entry and returns what it did, and its cookie.
    pub(crate) fn delete(&mut self, key: &impl AsKey) -> ControlResult<(ActionWord, u64)> {
        self.check_mutable()?;
        let at = self.require(key)?;
        let cookie = self.records.cold(at).cookie;
        Ok((self.delete_at(at), cookie))
    }

    /// Deletes all entries and calls `forget` with what each did.
    pub(crate) fn clear(&mut self, mut forget: impl FnMut(ActionWord)) -> ControlResult {
        self.check_mutable()?;
        for at in 0..self.records.end() {
            if self.records.is_live(at) {
                forget(self.delete_at(at));
            }
        }
        Ok(())
    }

    /// The entry with this key; `profile` is the table's.
    pub(crate) fn get(
        &self,
        key: &impl AsKey,
        profile: Option<&Profile>,
    ) -> Option<(Entry, EntryStats)> {
        let key = key.as_key(self.schema()).ok()?;
        self.find(&key).map(|at| self.stored(at, profile))
    }

    /// The entry at an index where one lives, e.g. for a time-out.
    pub(crate) fn get_at(&self, at: u32, profile: Option<&Profile>) -> Option<(Entry, EntryStats)> {
        let is_live = self.records.is_live(at);
        is_live.then(|| self.stored(at, profile))
    }

    /// Appends up to `max` entries from `cursor` on; returns the next cursor, `None` at the end. Entries that live through
    /// a whole scan come exactly once.
    pub(crate) fn scan(
        &self,
        cursor: u32,
        max: usize,
        profile: Option<&Profile>,
        out: &mut Vec<(Entry, EntryStats)>,
    ) -> Option<u32> {
        let mut live = self.records.live_from(cursor);
        out.extend(live.by_ref().take(max).map(|at| self.stored(at, profile)));
        live.next()
    }

    /// Sets the default action; `None` brings back the program's own.
    pub fn set_default(&mut self, call: Option<&ActionCall>) -> ControlResult {
        let schema = self.schema();
        if schema.const_default_action && call.is_some() {
            let text = "its default action is const; the program does not allow to change it";
            return Err(self.error(ErrorKind::PermissionDenied, text));
        }
        // The program may call an action by default that entries may not.
        let (call, own) = match (call, &schema.default_action) {
            (Some(call), _) => (Some(call), &schema.actions[..]),
            (None, None) => (None, &[][..]),
            (None, Some(call)) => (Some(call), std::slice::from_ref(&call.action)),
        };
        let place = format_args!("table {}: default action", schema.name);
        let checked = call.map(|call| check_call(own, &self.program.actions, call).at(place));
        let args = call.map_or_else(Vec::new, |call| call.args.clone());
        (self.default.action, self.default.args) = (checked.transpose()?, args);
        Ok(())
    }

    /// The default action in force.
    pub fn default_call(&self) -> Option<ActionCall> {
        match self.default.action?.callee() {
            Callee::Action(action) => Some(ActionCall {
                action,
                args: self.default.args.clone(),
            }),
            Callee::Member(_) | Callee::Group(_) => None,
        }
    }

    /// Statistics of the default entry: packets and bytes of the misses.
    pub fn default_stats(&self) -> EntryStats {
        EntryStats {
            packets: self.default.packets,
            bytes: self.default.bytes,
            ..EntryStats::default()
        }
    }

    /// Sets (packets, bytes) that missed.
    pub fn set_default_count(&mut self, packets: u64, bytes: u64) {
        self.default.packets = packets;
        self.default.bytes = bytes;
    }

    /// (packets, bytes) of an entry.
    pub fn count(&self, key: &impl AsKey) -> ControlResult<(u64, u64)> {
        self.check_counted()?;
        Ok(self.records.count(self.require(key)?))
    }

    /// Sets (packets, bytes) of an entry.
    pub fn set_count(&mut self, key: &impl AsKey, packets: u64, bytes: u64) -> ControlResult {
        self.check_counted()?;
        let at = self.require(key)?;
        self.records.set_count(at, packets, bytes);
        Ok(())
    }

    /// Rates of an entry's direct meter.
    pub fn meter(&self, key: &impl AsKey) -> ControlResult<Option<MeterConfig>> {
        self.check_metered()?;
        Ok(self.meter_at(self.require(key)?))
    }

    /// Sets the rates of an entry's direct meter; `None`: every packet is green.
    pub fn set_meter(&mut self, key: &impl AsKey, config: Option<&MeterConfig>) -> ControlResult {
        self.check_metered()?;
        let at = self.require(key)?;
        if let Some(config) = config {
            check_config(config).at(format_args!("table {}: direct meter", self.schema().name))?;
        }
        if let Some(meters) = &mut self.meters {
            meters.set(u64::from(at), config);
        }
        Ok(())
    }

    /// Has all entries count as hit at `now`.
    pub fn begin_ageing(&mut self, now: Nanos) {
        if let Some(ageing) = &mut self.ageing {
            ageing.begin(&mut self.records, now);
        }
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
    pub(crate) fn restore(&mut self, at: EntryIndex, stats: &EntryStats) {
        let at = at.0;
        self.records.set_count(at, stats.packets, stats.bytes);
        self.records.set_last_hit(at, stats.last_hit);
        if let Some(meters) = &mut self.meters {
            meters.set(u64::from(at), stats.meter.as_ref());
        }
    }

    fn find(&self, key: &Key) -> Option<u32> {
        match &self.index {
            Index::Keyless => None,
            Index::Exact(exact) => exact.find(&self.records, &key.value),
            Index::Lpm(lengths) => lengths.find(key),
            Index::Priority(space) => space.find(&self.records, key),
        }
    }

    fn require(&self, key: &impl AsKey) -> ControlResult<u32> {
        let key = key.as_key(self.schema())?;
        self.find(&key).ok_or_else(|| {
            let text = format!("there is no entry with key {}", self.show(&key));
            self.error(ErrorKind::NotFound, text)
        })
    }

    fn show(&self, key: &Key) -> String {
        let keys = &self.schema().keys;
        key::show(keys, &key.describe(keys))
    }

    fn delete_at(&mut self, at: u32) -> ActionWord {
        let key = &self.key(at);
        let word = self.records.action(at);
        match &mut self.index {
            Index::Keyless => unreachable!("a keyless table has no entries"),
            Index::Exact(exact) => exact.remove(&self.records, at),
            Index::Lpm(lengths) => lengths.remove(key),
            Index::Priority(space) => space.remove(&mut self.records, at, key),
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

    fn set_cold<K>(&mut self, at: u32, entry: &Entry<K>, old_timeout: Nanos) {
        let cold = self.records.cold_mut(at);
        cold.cookie = entry.cookie;
        cold.idle_timeout = entry.idle_timeout;
        if let Some(ageing) = &mut self.ageing {
            if old_timeout > 0 || entry.idle_timeout > 0 {
                ageing.set(&mut self.records, at, old_timeout, entry.idle_timeout);
            }
        }
    }

    fn key(&self, at: u32) -> Key {
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
        Key {
            value,
            mask,
            ranges: self.records.ranges(at).to_vec(),
            priority: self.records.priority(at),
        }
    }

    /// The entry at an index as the client knows it; `profile` is the table's, if it has one.
    fn stored(&self, at: u32, profile: Option<&Profile>) -> (Entry, EntryStats) {
        let cold = self.records.cold(at);
        let (packets, bytes) = self.records.count(at);
        let action = match self.records.action(at).callee() {
            Callee::Action(action) => {
                let limbs = self.program.actions[action.index()].arg_limbs();
                let args = &self.records.record(at)[self.records.layout.args_at..][..limbs];
                let args = args.to_vec();
                EntryAction::Direct(ActionCall { action, args })
            }
            place => match profile.and_then(|profile| profile.id_of(place)) {
                Some(Ok(member)) => EntryAction::Member(member),
                Some(Err(group)) => EntryAction::Group(group),
                None => unreachable!("members and groups in use cannot be deleted"),
            },
        };
        let entry = Entry {
            key: self.key(at).describe(&self.schema().keys),
            action,
            idle_timeout: cold.idle_timeout,
            cookie: cold.cookie,
        };
        let stats = EntryStats {
            packets,
            bytes,
            last_hit: self.records.last_hit(at),
            meter: self.meter_at(at),
        };
        (entry, stats)
    }

    fn meter_at(&self, at: u32) -> Option<MeterConfig> {
        self.meters
            .as_ref()
            .and_then(|m| m.get(u64::from(at)))
            .flatten()
    }

    fn check_mutable(&self) -> ControlResult {
        let text = "its entries are const; the program does not allow to change them";
        self.check(!self.immutable, ErrorKind::PermissionDenied, text)
    }

    fn check_timeout(&self, idle_timeout: Nanos) -> ControlResult {
        if idle_timeout == 0 || self.ageing.is_some() {
            return Ok(());
        }
        let text = format!(
            "idle time-out {idle_timeout} ns: it does not support time-outs (support_timeout in the P4 program); only 0 is allowed"
        );
        Err(self.error(ErrorKind::InvalidArgument, text))
    }

    fn check_counted(&self) -> ControlResult {
        let has = self.records.layout.count_at.is_some();
        self.check(has, ErrorKind::InvalidArgument, "it has no direct counter")
    }

    fn check_metered(&self) -> ControlResult {
        let has = self.meters.is_some();
        self.check(has, ErrorKind::InvalidArgument, "it has no direct meter")
    }

    fn check(&self, is_good: bool, kind: ErrorKind, text: &str) -> ControlResult {
        match is_good {
            true => Ok(()),
            false => Err(self.error(kind, text)),
        }
    }

    fn error(&self, kind: ErrorKind, text: impl Into<String>) -> ControlError {
        ControlError::new(kind, text).at(format_args!("table {}", self.schema().name))
    }
}
