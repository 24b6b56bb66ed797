// SPDX-License-Identifier: Apache-2.0
//! Idle time-outs in virtual time.

use super::*;

const S: u64 = 1_000_000_000;

fn fixture() -> Fixture {
    Fixture::new(schema(&[("k", MatchKind::Exact, 32)], 5000))
}

fn aged(key: u64, idle_timeout: u64) -> Entry {
    Entry {
        idle_timeout,
        ..entry(vec![KeyMatch::Exact(bits(32, key.into()))], 0, key)
    }
}

/// Cookies of what a call of `expired` tells.
fn told(f: &mut Fixture, now: u64) -> Vec<u64> {
    let mut at = Vec::new();
    f.table.expired(now, |i| at.push(i));
    at.iter()
        .map(|&i| f.table.get_at(i, None).unwrap().0.cookie)
        .collect()
}

#[test]
fn told_at_the_exact_instant_and_after_each_further_time_out() {
    let mut f = fixture();
    f.insert(&aged(7, 10 * S), S).unwrap();
    assert_eq!(f.table.next_expiry(), Some(11 * S));
    assert!(told(&mut f, 11 * S - 1).is_empty());
    assert_eq!(told(&mut f, 11 * S), [7]);
    // P4Runtime 1.5 §16.4: the notification resets the timer.
    assert!(told(&mut f, 21 * S - 1).is_empty());
    assert_eq!(told(&mut f, 21 * S), [7]);
    assert!(told(&mut f, 21 * S).is_empty());
    // A hit puts it off from its own time on.
    assert_eq!(f.look(&[7], 24 * S), Some(7));
    assert!(told(&mut f, 34 * S - 1).is_empty());
    assert_eq!(told(&mut f, 34 * S), [7]);
}

#[test]
fn hits_put_it_off() {
    let mut f = fixture();
    f.insert(&aged(1, 3 * S), 0).unwrap();
    f.insert(&aged(2, 3 * S), 0).unwrap();
    for now in 1..20 {
        f.look(&[1], now * S);
        let expected: &[u64] = if now % 3 == 0 { &[2] } else { &[] };
        assert_eq!(told(&mut f, now * S), expected, "at {now} s");
    }
    f.table.delete(&aged(2, 0).key).unwrap();
    assert_eq!(told(&mut f, 22 * S), [1]);
}

#[test]
fn zero_never_ages_and_a_deleted_entry_is_not_told() {
    let mut f = fixture();
    f.insert(&aged(1, 0), 0).unwrap();
    f.insert(&aged(2, S), 0).unwrap();
    f.table.delete(&aged(2, 0).key).unwrap();
    // The same place, another entry that does not age yet.
    f.insert(&aged(3, 100 * S), 0).unwrap();
    assert!(told(&mut f, 50 * S).is_empty());
    assert_eq!(told(&mut f, 100 * S), [3]);
}

#[test]
fn modify_sets_another_time_out_that_starts_then() {
    let mut f = fixture();
    f.insert(&aged(1, 10 * S), 0).unwrap();
    f.modify(&aged(1, 2 * S), 5 * S).unwrap();
    assert_eq!(told(&mut f, 7 * S), [1]);
    // Back to the first one: its old alarm is stale and tells nothing at 10 s.
    f.modify(&aged(1, 10 * S), 8 * S).unwrap();
    assert!(told(&mut f, 18 * S - 1).is_empty());
    assert_eq!(told(&mut f, 18 * S), [1]);
    f.modify(&aged(1, 0), 20 * S).unwrap();
    assert!(told(&mut f, 1000 * S).is_empty());
}

#[test]
fn one_call_does_bounded_work_and_all_are_told_in_the_end() {
    let mut f = fixture();
    for key in 0..5000 {
        f.insert(&aged(key, S), 0).unwrap();
    }
    let mut all = Vec::new();
    let mut calls = 0;
    loop {
        let now = told(&mut f, 2 * S);
        if now.is_empty() {
            break;
        }
        assert!(now.len() <= 1024, "{} in one call", now.len());
        all.extend(now);
        calls += 1;
    }
    all.sort_unstable();
    assert_eq!(all, (0..5000).collect::<Vec<_>>());
    assert_eq!(calls, 5);
}

#[test]
fn alarms_of_changed_entries_do_not_pile_up() {
    let mut f = fixture();
    f.insert(&aged(1, S), 0).unwrap();
    for i in 0..100_000 {
        f.modify(&aged(1, 1000 * S + i), i).unwrap();
    }
    assert!(f.table.ageing.as_ref().unwrap().len() < 200);
}
