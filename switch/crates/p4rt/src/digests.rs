// SPDX-License-Identifier: Apache-2.0
//! Digest lists: samples gathered, told once until acknowledged, with bounded memory (P4Runtime 1.5 §9.8). No I/O.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use v1model::Nanos;

use crate::proto::p4rt::digest_entry::Config;

/// Samples of one digest that wait or are sent and not acknowledged; more are dropped and counted.
pub const MAX_OUTSTANDING: usize = 65_536;

/// The size of a list where the client sets no limit.
const DEFAULT_LIST_SIZE: usize = 1024;

/// The bytes of a digest's members, as the data plane gives them.
pub type Sample = Arc<[u8]>;

/// A list that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub digest_id: u32,
    pub list_id: u64,
    pub samples: Vec<Sample>,
}

/// All digests that are switched on.
#[derive(Default)]
pub struct Digests {
    /// In order of their ids: lists that are due at one instant are numbered the same in each run.
    digests: BTreeMap<u32, Digest>,
    /// Lists are numbered over all digests.
    last_list_id: u64,
    /// Samples that were dropped, because too many were outstanding or nobody could take them.
    pub lost: u64,
}

#[derive(Default)]
struct Digest {
    config: Config,
    waiting: Vec<Sample>,
    /// When the first of `waiting` came.
    since: Nanos,
    /// Sent, not acknowledged, oldest first.
    sent: VecDeque<Sent>,
    /// All samples of `waiting` and `sent`.
    known: HashSet<Sample>,
}

struct Sent {
    list_id: u64,
    at: Nanos,
    samples: Vec<Sample>,
}

impl Digests {
    /// Switches a digest on or changes it (Some), or off (None).
    pub fn set(&mut self, digest_id: u32, config: Option<&Config>) {
        match config {
            Some(config) => self.digests.entry(digest_id).or_default().config = *config,
            None => drop(self.digests.remove(&digest_id)),
        }
    }

    /// Everything is forgotten: another program runs.
    pub fn reset<'a>(&mut self, configs: impl Iterator<Item = (u32, &'a Config)>) {
        self.digests.clear();
        for (digest_id, config) in configs {
            self.set(digest_id, Some(config));
        }
    }

    /// Another client is primary: what was told to the old one is reported again.
    pub fn new_client(&mut self) {
        for digest in self.digests.values_mut() {
            for sent in digest.sent.drain(..) {
                for sample in sent.samples {
                    digest.known.remove(&sample);
                }
            }
        }
    }

    /// Takes a sample; a full list comes back.
    pub fn take(&mut self, digest_id: u32, sample: &[u8], now: Nanos) -> Option<List> {
        let digest = self.digests.get_mut(&digest_id)?;
        digest.expire(now);
        if digest.known.contains(sample) {
            return None;
        }
        if digest.known.len() >= MAX_OUTSTANDING {
            self.lost += 1;
            return None;
        }
        if digest.waiting.is_empty() {
            digest.since = now;
        }
        let sample: Sample = sample.into();
        digest.known.insert(sample.clone());
        digest.waiting.push(sample);
        let full = digest.waiting.len() >= digest.list_size();
        full.then(|| digest.close(digest_id, &mut self.last_list_id, now))
    }

    /// The lists whose time has come.
    pub fn due(&mut self, now: Nanos) -> Vec<List> {
        let due = self
            .digests
            .iter_mut()
            .filter(|(_, d)| d.due().is_some_and(|at| at <= now));
        due.map(|(id, digest)| digest.close(*id, &mut self.last_list_id, now))
            .collect()
    }

    /// When the next list is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.digests.values().filter_map(Digest::due).min()
    }

    /// The client has taken in a list.
    pub fn ack(&mut self, digest_id: u32, list_id: u64) {
        let Some(digest) = self.digests.get_mut(&digest_id) else {
            return;
        };
        // Lists are numbered upwards.
        if let Ok(index) = digest.sent.binary_search_by_key(&list_id, |s| s.list_id) {
            for sample in digest
                .sent
                .remove(index)
                .into_iter()
                .flat_map(|s| s.samples)
            {
                digest.known.remove(&sample);
            }
        }
    }

    /// A list could not be sent: its samples may be reported again.
    pub fn unsent(&mut self, list: &List) {
        self.lost += list.samples.len() as u64;
        self.ack(list.digest_id, list.list_id);
    }
}

impl Digest {
    fn list_size(&self) -> usize {
        match usize::try_from(self.config.max_list_size) {
            Ok(size) if size > 0 => size,
            _ => DEFAULT_LIST_SIZE,
        }
    }

    fn due(&self) -> Option<Nanos> {
        let timeout = Nanos::try_from(self.config.max_timeout_ns).unwrap_or(0);
        (!self.waiting.is_empty()).then(|| self.since.saturating_add(timeout))
    }

    fn expire(&mut self, now: Nanos) {
        let timeout = Nanos::try_from(self.config.ack_timeout_ns).unwrap_or(0);
        while self
            .sent
            .front()
            .is_some_and(|s| s.at.saturating_add(timeout) <= now)
        {
            for sample in self.sent.pop_front().into_iter().flat_map(|s| s.samples) {
                self.known.remove(&sample);
            }
        }
    }

    fn close(&mut self, digest_id: u32, last_list_id: &mut u64, now: Nanos) -> List {
        *last_list_id += 1;
        let samples = std::mem::take(&mut self.waiting);
        if self.config.ack_timeout_ns > 0 {
            self.sent.push_back(Sent {
                list_id: *last_list_id,
                at: now,
                samples: samples.clone(),
            });
        } else {
            for sample in &samples {
                self.known.remove(sample);
            }
        }
        List {
            digest_id,
            list_id: *last_list_id,
            samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> Digests {
        let mut digests = Digests::default();
        digests.set(
            1,
            Some(&Config {
                max_timeout_ns,
                max_list_size,
                ack_timeout_ns,
            }),
        );
        digests
    }

    fn samples(list: &List) -> Vec<&[u8]> {
        list.samples.iter().map(|s| s.as_ref()).collect()
    }

    #[test]
    fn a_list_is_sent_when_full() {
        let mut d = digests(1_000, 2, 5_000);
        assert_eq!(d.take(1, b"a", 0), None);
        assert_eq!(
            d.take(1, b"a", 1),
            None,
            "a duplicate does not fill the list"
        );
        let list = d.take(1, b"b", 2).unwrap();
        assert_eq!(samples(&list), [b"a", b"b"]);
        assert_eq!(d.next_due(), None);
    }

    #[test]
    fn a_list_is_sent_when_its_time_has_come() {
        let mut d = digests(1_000, 10, 5_000);
        d.take(1, b"a", 100);
        d.take(1, b"b", 900);
        assert_eq!(d.next_due(), Some(1_100));
        assert!(d.due(1_099).is_empty());
        assert_eq!(samples(&d.due(1_100)[0]), [b"a", b"b"]);
    }

    #[test]
    fn a_sample_is_not_repeated_until_acknowledged() {
        let mut d = digests(0, 1, 5_000);
        let first = d.take(1, b"a", 0).unwrap();
        assert_eq!(d.take(1, b"a", 10), None);
        d.ack(1, first.list_id + 7); // another list's
        assert_eq!(d.take(1, b"a", 20), None);
        d.ack(1, first.list_id);
        let second = d.take(1, b"a", 30).unwrap();
        assert!(second.list_id > first.list_id);
    }

    #[test]
    fn or_until_the_acknowledgement_is_late() {
        let mut d = digests(0, 1, 5_000);
        d.take(1, b"a", 0).unwrap();
        assert_eq!(d.take(1, b"a", 4_999), None);
        assert!(d.take(1, b"a", 5_000).is_some());
    }

    #[test]
    fn without_an_ack_timeout_nothing_is_held_back() {
        let mut d = digests(0, 1, 0);
        assert!(d.take(1, b"a", 0).is_some());
        assert!(d.take(1, b"a", 1).is_some());
    }

    #[test]
    fn a_flood_is_bounded_and_counted() {
        let mut d = digests(i64::MAX, i32::MAX, 5_000);
        for i in 0..MAX_OUTSTANDING as u32 + 10 {
            d.take(1, &i.to_be_bytes(), 0);
        }
        assert_eq!(d.lost, 10);
    }

    #[test]
    fn what_is_off_or_unsent_is_not_held() {
        let mut d = digests(0, 1, 5_000);
        assert_eq!(d.take(2, b"a", 0), None);
        let list = d.take(1, b"a", 0).unwrap();
        d.unsent(&list);
        assert_eq!(d.lost, 1);
        assert!(d.take(1, b"a", 1).is_some());
        d.new_client();
        assert!(d.take(1, b"a", 2).is_some());
        d.set(1, None);
        assert_eq!(d.take(1, b"b", 3), None);
    }
}
