// SPDX-License-Identifier: Apache-2.0
//! Many entries: all arrive, and `cargo test --release --test bulk -- --ignored --nocapture` prints how fast.

use std::time::Instant;

use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{CounterData, TableEntry, Update};

const BATCH: u32 = 1000;

fn batch(ids: &Ids, first: u32, verb: Verb) -> Vec<Update> {
    (first..first + BATCH)
        .map(|n| update(verb, Kind::TableEntry(ids.exact(&(n + 1).to_be_bytes(), 2))))
        .collect()
}

/// Writes, reads with counters and deletes `entries`; returns entities per second of each.
async fn round(entries: u32) -> [f64; 3] {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let batches: Vec<Vec<Update>> = (0..entries)
        .step_by(BATCH as usize)
        .map(|n| batch(&ids, n, Verb::Insert))
        .collect();
    let start = Instant::now();
    for updates in batches {
        a.write(updates).await.unwrap();
    }
    let written = f64::from(entries) / start.elapsed().as_secs_f64();
    let all = TableEntry {
        table_id: ids.tables("exact_table"),
        counter_data: Some(CounterData::default()),
        ..Default::default()
    };
    let start = Instant::now();
    let read = a.read(vec![Kind::TableEntry(all.clone())]).await.unwrap();
    let speed = f64::from(entries) / start.elapsed().as_secs_f64();
    let mut keys: Vec<_> = read
        .iter()
        .map(|kind| match kind {
            Kind::TableEntry(e) => e.r#match.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    keys.sort_by_key(|m| format!("{m:?}"));
    keys.dedup();
    assert_eq!(keys.len(), entries as usize, "each entry is read once");
    let start = Instant::now();
    for first in (0..entries).step_by(BATCH as usize) {
        a.write(batch(&ids, first, Verb::Delete)).await.unwrap();
    }
    let deleted = f64::from(entries) / start.elapsed().as_secs_f64();
    assert_eq!(a.read(vec![Kind::TableEntry(all)]).await.unwrap(), []);
    [written, speed, deleted]
}

#[tokio::test]
async fn ten_thousand_entries_arrive_and_go() {
    round(10_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; wants a release build and an idle machine"]
async fn speed_of_bulk_writes_and_reads() {
    for _ in 0..3 {
        let [written, read, deleted] = round(60_000).await;
        println!(
            "60,000 entries: {written:.0} inserts/s, {read:.0} reads/s, {deleted:.0} deletes/s"
        );
        assert!(
            written >= 38_000.0,
            "{written} inserts/s is below the aim of 38,000"
        );
        assert!(
            read >= 55_000.0,
            "{read} reads/s is below the aim of 55,000"
        );
    }
}
