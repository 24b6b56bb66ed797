// SPDX-License-Identifier: Apache-2.0
//! The entries of a table: one record of u64 words for what the packet path needs, one cold struct for the rest.
//!
//! Idle time-outs: one alarm in a heap for each entry that ages, looked at again when it is due. A hit only stamps its
//! record; the alarm finds the stamp and moves on. So an entry costs work once in its time-out, however often it is hit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::key::ActionWord;
use crate::bits::Nanos;
use crate::externs::cells::ask_for_huge_pages;

/// No record.
pub const NONE: u32 = u32::MAX;
/// Beyond this many entries the arena is reserved to the table's full size (untouched memory costs nothing).
const SMALL: usize = 1024;
/// The most entries that are reserved in advance.
const RESERVED: usize = 1 << 20;

/// Index of an entry in its table; may be used again after the entry is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryIndex(pub u32);

/// Eight words that lie in one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; WORDS]);

const WORDS: usize = 8;

/// Where the parts of a record are, in words.
///
/// ```text
/// | action, next | [priority] | key … | args … | [packets | bytes] | [last hit] | [low …, high …]* |
/// ```
#[derive(Clone, Copy)]
pub struct Layout {
    pub has_priority: bool,
    pub key_at: usize,
    pub key_limbs: usize,
    pub args_at: usize,
    pub arg_limbs: usize,
    /// Of packets; bytes follow. `None` without a direct counter.
    pub count_at: Option<usize>,
    /// `None` where entries do not age.
    pub hit_at: Option<usize>,
    pub range_at: usize,
    pub range_limbs: usize,
    pub stride: usize,
    /// Most entries of the table.
    pub max_size: u32,
}

impl Layout {
    pub fn new(
        has_priority: bool,
        key_limbs: usize,
        arg_limbs: usize,
        counted: bool,
        ageing: bool,
        range_limbs: usize,
        max_size: u32,
    ) -> Self {
        let key_at = 1 + usize::from(has_priority);
        let args_at = key_at + key_limbs;
        let stats_at = args_at + arg_limbs;
        let hit_at = stats_at + if counted { 2 } else { 0 };
        let range_at = hit_at + usize::from(ageing);
        Layout {
            has_priority,
            key_at,
            key_limbs,
            args_at,
            arg_limbs,
            count_at: counted.then_some(stats_at),
            hit_at: ageing.then_some(hit_at),
            range_at,
            range_limbs,
            stride: aligned(range_at + range_limbs),
            max_size,
        }
    }

    /// Memory of one entry.
    pub fn bytes(&self) -> u64 {
        (self.stride * size_of::<u64>() + size_of::<Cold>() + size_of::<u32>()) as u64
    }
}

/// The least distance of records of this many words at which none lies in more cache lines than it must.
fn aligned(words: usize) -> usize {
    if words <= WORDS {
        words.next_power_of_two()
    } else {
        words.next_multiple_of(WORDS)
    }
}

/// What the packet path never looks at.
#[derive(Clone, Copy, Default)]
pub struct Cold {
    pub cookie: u64,
    pub idle_timeout: Nanos,
    /// Serial number of its alarm in `Ageing`; goes on in the next entry here.
    pub alarm: u32,
    /// Which tuple (mask) the entry belongs to; the length of its prefix.
    pub tuple: u32,
    pub live: bool,
}

/// The records of one table.
#[derive(Clone)]
pub struct Records {
    pub layout: Layout,
    lines: Vec<Line>,
    cold: Vec<Cold>,
    free: Vec<u32>,
}

impl Records {
    pub fn new(layout: Layout) -> Self {
        Records {
            layout,
            lines: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Number of live entries.
    pub fn len(&self) -> usize {
        self.cold.len() - self.free.len()
    }

    /// One more than the highest index in use so far.
    pub fn end(&self) -> u32 {
        self.cold.len() as u32
    }

    /// A zeroed record for a new entry.
    pub fn add(&mut self) -> u32 {
        if let Some(at) = self.free.pop() {
            let cold = &mut self.cold[at as usize];
            *cold = Cold {
                alarm: cold.alarm,
                live: true,
                ..Cold::default()
            };
            self.record_mut(at).fill(0);
            return at;
        }
        let at = self.cold.len();
        if at == SMALL {
            let more = (self.layout.max_size as usize)
                .min(RESERVED)
                .saturating_sub(at);
            self.lines
                .reserve_exact((more * self.layout.stride).div_ceil(WORDS));
            self.cold.reserve_exact(more);
            ask_for_huge_pages(&mut self.lines);
        }
        let lines = ((at + 1) * self.layout.stride).div_ceil(WORDS);
        self.lines.resize(lines, Line([0; WORDS]));
        self.cold.push(Cold {
            live: true,
            ..Cold::default()
        });
        at as u32
    }

    /// Gives a record back; its handle is stale from now on.
    pub fn remove(&mut self, at: u32) {
        self.cold[at as usize].live = false;
        self.free.push(at);
    }

    pub fn is_live(&self, at: u32) -> bool {
        self.cold.get(at as usize).is_some_and(|c| c.live)
    }

    #[inline(always)]
    pub fn record(&self, at: u32) -> &[u64] {
        let stride = self.layout.stride;
        &self.words()[at as usize * stride..][..stride]
    }

    #[inline(always)]
    pub fn record_mut(&mut self, at: u32) -> &mut [u64] {
        let stride = self.layout.stride;
        let words = self.lines.len() * WORDS;
        // SAFETY: as in `words`, and `self` is borrowed mutably for as long as the slice lives.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<u64>(), words) };
        &mut words[at as usize * stride..][..stride]
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        // SAFETY: a `Line` is eight words without padding, so the lines are that many initialised words in a row.
        unsafe {
            std::slice::from_raw_parts(self.lines.as_ptr().cast::<u64>(), self.lines.len() * WORDS)
        }
    }

    pub fn cold(&self, at: u32) -> &Cold {
        &self.cold[at as usize]
    }

    pub fn cold_mut(&mut self, at: u32) -> &mut Cold {
        &mut self.cold[at as usize]
    }

    #[inline(always)]
    pub fn key(&self, at: u32) -> &[u64] {
        &self.record(at)[self.layout.key_at..][..self.layout.key_limbs]
    }

    pub fn ranges(&self, at: u32) -> &[u64] {
        &self.record(at)[self.layout.range_at..][..self.layout.range_limbs]
    }

    #[inline(always)]
    pub fn action(&self, at: u32) -> ActionWord {
        ActionWord(self.record(at)[0] as u32)
    }

    pub fn set_action(&mut self, at: u32, action: ActionWord, args: &[u64]) {
        let layout = self.layout;
        let record = self.record_mut(at);
        record[0] = record[0] & !0xffff_ffff | u64::from(action.0);
        let place = &mut record[layout.args_at..][..layout.arg_limbs];
        place.fill(0);
        place[..args.len()].copy_from_slice(args);
    }

    #[inline(always)]
    pub fn next(&self, at: u32) -> u32 {
        ((self.record(at)[0] >> 32) as u32).wrapping_sub(1)
    }

    /// Every record from `from` on that lives.
    pub fn live_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        (from..self.end()).filter(|&at| self.is_live(at))
    }

    pub fn set_next(&mut self, at: u32, next: u32) {
        let word = &mut self.record_mut(at)[0];
        *word = *word & 0xffff_ffff | u64::from(next.wrapping_add(1)) << 32;
    }

    /// The priority of an entry of a table that has priorities, else 0.
    #[inline(always)]
    pub fn priority(&self, at: u32) -> i32 {
        if self.layout.has_priority {
            self.record(at)[1] as i32
        } else {
            0
        }
    }

    pub fn set_priority(&mut self, at: u32, priority: i32) {
        if self.layout.has_priority {
            self.record_mut(at)[1] = priority as u32 as u64;
        }
    }

    pub fn count(&self, at: u32) -> (u64, u64) {
        match self.layout.count_at {
            Some(c) => {
                let record = self.record(at);
                (record[c], record[c + 1])
            }
            None => (0, 0),
        }
    }

    pub fn set_count(&mut self, at: u32, packets: u64, bytes: u64) {
        if let Some(c) = self.layout.count_at {
            let record = self.record_mut(at);
            record[c] = packets;
            record[c + 1] = bytes;
        }
    }

    pub fn last_hit(&self, at: u32) -> Nanos {
        self.layout.hit_at.map_or(0, |h| self.record(at)[h])
    }

    pub fn set_last_hit(&mut self, at: u32, now: Nanos) {
        if let Some(h) = self.layout.hit_at {
            self.record_mut(at)[h] = now;
        }
    }
}

/// Most alarms that one call looks at.
const ALARMS_A_CALL: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    due: Nanos,
    at: u32,
    /// The serial number of the alarm: another one in the entry makes it stale.
    serial: u32,
}

/// The alarms of one table.
#[derive(Clone)]
pub struct Ageing {
    alarms: BinaryHeap<Reverse<Alarm>>,
    /// Entries that age; more alarms than that are stale.
    live: usize,
}

impl Ageing {
    pub fn new() -> Self {
        Ageing {
            alarms: BinaryHeap::new(),
            live: 0,
        }
    }

    /// The entry starts to age, from its stamp on, or stops with `new == 0`; `old` is what it had before (0: nothing).
    pub fn set(&mut self, records: &mut Records, at: u32, old: Nanos, new: Nanos) {
        self.live -= usize::from(old > 0);
        self.live += usize::from(new > 0);
        let serial = &mut records.cold_mut(at).alarm;
        *serial = serial.wrapping_add(1);
        let serial = *serial;
        if new > 0 {
            self.alarms.push(Reverse(Alarm {
                due: records.last_hit(at).saturating_add(new),
                at,
                serial,
            }));
        }
        if self.alarms.len() > 2 * self.live + 64 {
            self.drop_stale(records);
        }
    }

    /// All entries count as hit at `now`.
    pub fn begin(&mut self, records: &mut Records, now: Nanos) {
        let mut alarms = Vec::with_capacity(self.live);
        for at in 0..records.end() {
            if !records.is_live(at) {
                continue;
            }
            records.set_last_hit(at, now);
            let cold = records.cold(at);
            if cold.idle_timeout > 0 {
                alarms.push(Reverse(Alarm {
                    due: now.saturating_add(cold.idle_timeout),
                    at,
                    serial: cold.alarm,
                }));
            }
        }
        self.alarms = alarms.into();
    }

    /// When to look next; nothing is reported earlier.
    pub fn next_due(&self) -> Option<Nanos> {
        self.alarms.peek().map(|Reverse(alarm)| alarm.due)
    }

    /// Calls `tell` for entries that were not hit for their time-out by `now`, and again for each further time-out
    /// without a hit (P4Runtime 1.5 §16.4: a notification may get lost). Looks at a bounded number of entries; the rest
    /// stay due.
    pub fn expired(&mut self, records: &Records, now: Nanos, mut tell: impl FnMut(u32)) {
        for _ in 0..ALARMS_A_CALL {
            let Some(&Reverse(mut alarm)) = self.alarms.peek() else {
                return;
            };
            if alarm.due > now {
                return;
            }
            self.alarms.pop();
            let Some(at) = current(records, &alarm) else {
                continue;
            };
            let idle_timeout = records.cold(at).idle_timeout;
            let hit = records.last_hit(at);
            alarm.due = hit.saturating_add(idle_timeout);
            if alarm.due <= now {
                tell(at);
                alarm.due = now.saturating_add(idle_timeout);
            }
            self.alarms.push(Reverse(alarm));
        }
    }

    fn drop_stale(&mut self, records: &Records) {
        self.alarms
            .retain(|Reverse(alarm)| current(records, alarm).is_some());
    }
}

/// The entry of an alarm that is not stale.
fn current(records: &Records, alarm: &Alarm) -> Option<u32> {
    let at = alarm.at;
    (records.is_live(at) && records.cold(at).alarm == alarm.serial).then_some(at)
}

#[cfg(test)]
impl Ageing {
    /// Alarms in the heap, stale ones too.
    pub fn len(&self) -> usize {
        self.alarms.len()
    }
}
