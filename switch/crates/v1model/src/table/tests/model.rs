// SPDX-License-Identifier: Apache-2.0
//! Random inserts, modifies, deletes and lookups on each match kind, beside a list that is searched from end to end.

use super::*;
use proptest::prelude::*;

/// The model: all entries in a list.
#[derive(Default)]
struct Naive {
    entries: Vec<(u32, Entry)>,
}

impl Naive {
    fn find(&self, key: &EntryKey) -> Option<usize> {
        self.entries.iter().position(|(_, e)| e.key == *key)
    }

    /// By P4Runtime: the longest prefix, or the largest priority; of equal ones the smallest index (BMv2).
    fn look(&self, widths: &[u32], key: &[u64]) -> Option<u64> {
        let values = split(widths, key);
        self.entries
            .iter()
            .filter(|(_, e)| e.key.matches.iter().zip(&values).all(|(m, &v)| takes(m, v)))
            .max_by_key(|(at, e)| (e.key.priority, prefix(e), std::cmp::Reverse(*at)))
            .map(|(_, e)| e.cookie)
    }
}

fn prefix(e: &Entry) -> u32 {
    if e.key.priority > 0 {
        return 0;
    }
    let len = |m: &KeyMatch| match m {
        KeyMatch::Lpm { prefix_len, .. } => *prefix_len,
        _ => 0,
    };
    e.key.matches.iter().map(len).sum()
}

fn number(b: &Bits) -> u128 {
    b.as_be_bytes()
        .iter()
        .fold(0, |n, &x| n << 8 | u128::from(x))
}

fn takes(m: &KeyMatch, value: u128) -> bool {
    match m {
        KeyMatch::Exact(v) | KeyMatch::Optional(Some(v)) => number(v) == value,
        KeyMatch::Optional(None) => true,
        KeyMatch::Ternary { value: v, mask } => value & number(mask) == number(v),
        KeyMatch::Range { low, high } => (number(low)..=number(high)).contains(&value),
        KeyMatch::Lpm {
            value: v,
            prefix_len,
        } => {
            let shift = v.width() - prefix_len;
            shift >= 128 || value >> shift == number(v) >> shift
        }
    }
}

fn split(widths: &[u32], key: &[u64]) -> Vec<u128> {
    let mut at = 0;
    widths
        .iter()
        .map(|&w| {
            let n = limbs_for(w);
            let value = key[at..at + n]
                .iter()
                .rev()
                .fold(0u128, |v, &l| v << 64 | u128::from(l));
            at += n;
            value
        })
        .collect()
}

/// Few distinct values, at the bottom and at the top of the width, so that keys meet and limbs matter.
fn value(width: u32, seed: u64) -> u128 {
    let all = u128::MAX >> (128 - width);
    let low = u128::from(seed % 5);
    let high = u128::from(seed / 5 % 4)
        .checked_shl(width.saturating_sub(2))
        .unwrap_or(0);
    (low | high) & all
}

fn field(kind: MatchKind, width: u32, seed: u64) -> KeyMatch {
    let all = u128::MAX >> (128 - width);
    let v = value(width, seed);
    match kind {
        MatchKind::Exact => KeyMatch::Exact(bits(width, v)),
        MatchKind::Lpm => {
            let prefix_len =
                [0, 1, 2, width - 2, width - 1, width][(seed / 20 % 6) as usize].min(width);
            let mask = if prefix_len == 0 {
                0
            } else {
                all << (width - prefix_len) & all
            };
            KeyMatch::Lpm {
                value: bits(width, v & mask),
                prefix_len,
            }
        }
        MatchKind::Ternary => {
            let mask = [0, all, 1, 7, all & !1, 3 << (width - 2)][(seed / 20 % 6) as usize] & all;
            KeyMatch::Ternary {
                value: bits(width, v & mask),
                mask: bits(width, mask),
            }
        }
        MatchKind::Range => {
            let w = value(width, seed / 20);
            KeyMatch::Range {
                low: bits(width, v.min(w)),
                high: bits(width, v.max(w)),
            }
        }
        MatchKind::Optional => {
            KeyMatch::Optional((!(seed / 20).is_multiple_of(3)).then(|| bits(width, v)))
        }
    }
}

fn run(kinds: &[(MatchKind, u32)], ops: &[(u8, [u64; 4], i32)]) -> Result<(), TestCaseError> {
    let names = ["a", "b", "c", "d"];
    let keys: Vec<_> = kinds
        .iter()
        .zip(names)
        .map(|(&(k, w), n)| (n, k, w))
        .collect();
    let widths: Vec<u32> = kinds.iter().map(|&(_, w)| w).collect();
    let mut f = Fixture::new(schema(&keys, 40));
    let mut naive = Naive::default();
    let needs_priority = f.table.schema().needs_priority();
    for (i, &(op, seeds, priority)) in ops.iter().enumerate() {
        let matches: Vec<_> = kinds
            .iter()
            .zip(seeds)
            .map(|(&(k, w), s)| field(k, w, s))
            .collect();
        let mut e = entry(matches, if needs_priority { priority } else { 0 }, i as u64);
        let known = naive.find(&e.key);
        match op % 4 {
            0 | 1 => {
                let result = f.insert(&e, 1);
                let expected = match known {
                    Some(_) => Err(ErrorKind::AlreadyExists),
                    None if naive.entries.len() == 40 => Err(ErrorKind::ResourceExhausted),
                    None => Ok(()),
                };
                prop_assert_eq!(result.as_ref().map(|_| ()).map_err(|e| e.kind), expected);
                if let Ok(handle) = result {
                    naive.entries.push((handle.0, e));
                }
            }
            2 => {
                // Delete what is there as often as what is not.
                if known.is_none() && !naive.entries.is_empty() && seeds[3] % 2 == 0 {
                    e = naive.entries[(seeds[3] / 2) as usize % naive.entries.len()]
                        .1
                        .clone();
                }
                let result = f.table.delete(&e.key);
                match naive.find(&e.key) {
                    Some(at) => {
                        prop_assert!(result.is_ok());
                        naive.entries.remove(at);
                    }
                    None => prop_assert_eq!(result.unwrap_err().kind, ErrorKind::NotFound),
                }
            }
            _ => {
                let result = f.modify(&e, 2);
                match known {
                    Some(at) => {
                        prop_assert!(result.is_ok());
                        naive.entries[at].1 = e;
                    }
                    None => prop_assert_eq!(result.unwrap_err().kind, ErrorKind::NotFound),
                }
            }
        }
        prop_assert_eq!(f.table.entries(), naive.entries.len());
        for probe in 0..12u64 {
            let mut key = Vec::new();
            for (&w, s) in widths.iter().zip(seeds) {
                bits(w, value(w, s.wrapping_add(probe * 7))).push_limbs(&mut key);
            }
            prop_assert_eq!(f.look(&key, 3), naive.look(&widths, &key), "key {:?}", key);
        }
    }
    // Everything reads back as it was written.
    let mut read = Vec::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        cursor = f.table.scan(at, 7, None, &mut read);
    }
    let read: Vec<_> = read.into_iter().map(|(entry, _)| entry).collect();
    let mut written: Vec<_> = naive
        .entries
        .iter()
        .map(|(at, e)| (*at, e.clone()))
        .collect();
    written.sort_by_key(|(at, _)| *at);
    let written: Vec<_> = written.into_iter().map(|(_, e)| e).collect();
    prop_assert_eq!(read, written);
    for (_, e) in &naive.entries {
        let found = f.table.get(&e.key, None);
        prop_assert_eq!(found.map(|(entry, _)| entry.cookie), Some(e.cookie));
    }
    Ok(())
}

fn ops() -> impl Strategy<Value = Vec<(u8, [u64; 4], i32)>> {
    let seed = 0u64..240;
    proptest::collection::vec(
        (
            0u8..4,
            [seed.clone(), seed.clone(), seed.clone(), seed],
            1i32..4,
        ),
        1..120,
    )
}

const WIDTHS: [u32; 6] = [4, 9, 32, 64, 65, 128];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exact(ops in ops(), w in 0usize..6, n in 1usize..5) {
        let kinds: Vec<_> = (0..n).map(|i| (MatchKind::Exact, WIDTHS[(w + i) % 6])).collect();
        run(&kinds, &ops)?;
    }

    /// As qthresh's policy: so short that keys are indexes themselves.
    #[test]
    fn exact_and_short(ops in ops(), first in prop::sample::select(vec![1u32, 8, 9])) {
        run(&[(MatchKind::Exact, first), (MatchKind::Exact, 3)], &ops)?;
    }

    #[test]
    fn lpm_alone(ops in ops(), w in 0usize..6) {
        run(&[(MatchKind::Lpm, WIDTHS[w])], &ops)?;
    }

    #[test]
    fn lpm_beside_exact(ops in ops(), w in 0usize..6) {
        run(&[(MatchKind::Exact, 9), (MatchKind::Lpm, WIDTHS[w]), (MatchKind::Exact, 4)], &ops)?;
    }

    #[test]
    fn ternary(ops in ops(), w in 0usize..6, n in 1usize..4) {
        let kinds: Vec<_> = (0..n).map(|i| (MatchKind::Ternary, WIDTHS[(w + i) % 6])).collect();
        run(&kinds, &ops)?;
    }

    #[test]
    fn range(ops in ops(), w in 0usize..6, n in 1usize..3) {
        let kinds: Vec<_> = (0..n).map(|i| (MatchKind::Range, WIDTHS[(w + i) % 6])).collect();
        run(&kinds, &ops)?;
    }

    #[test]
    fn optional(ops in ops(), w in 0usize..6) {
        run(&[(MatchKind::Optional, WIDTHS[w]), (MatchKind::Optional, 9)], &ops)?;
    }

    #[test]
    fn all_kinds_together(ops in ops(), w in 0usize..6) {
        run(&[
            (MatchKind::Ternary, WIDTHS[w]), (MatchKind::Range, WIDTHS[(w + 1) % 6]),
            (MatchKind::Lpm, WIDTHS[(w + 2) % 6]), (MatchKind::Optional, WIDTHS[(w + 3) % 6]),
        ], &ops)?;
    }
}
