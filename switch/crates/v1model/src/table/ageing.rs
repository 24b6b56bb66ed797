// SPDX-License-Identifier: Apache-2.0
//! Idle time-outs: one alarm in a heap for each entry that ages, looked at again when it is due. A hit only stamps its
//! record; the alarm finds the stamp and moves on. So an entry costs work once in its time-out, however often it is hit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::records::Records;
use crate::entry::Nanos;

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
