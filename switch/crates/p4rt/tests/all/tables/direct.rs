// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters, as part of their entry and by themselves.

use super::table;
use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::{
    CounterData, DirectCounterEntry, DirectMeterEntry, MeterConfig, TableEntry,
};
use tonic::Code;

#[tokio::test]
async fn direct_counters_count_and_can_be_set() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let dst = [2, 0, 0, 0, 0, 5];
    let start = CounterData {
        packet_count: 100,
        byte_count: 5000,
    };
    a.insert(Kind::TableEntry(TableEntry {
        counter_data: Some(start),
        ..ids.exact(&dst, 2)
    }))
    .await
    .unwrap();
    for _ in 0..3 {
        switch.receive(1, frame(dst, 0x800, b"")).await;
        switch.sent().await;
    }
    let counted = CounterData {
        packet_count: 103,
        byte_count: 5000 + 3 * 60,
    };
    let key = TableEntry {
        action: None,
        ..ids.exact(&dst, 2)
    };
    let entity = Kind::DirectCounterEntry(DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: None,
    });
    let want = Kind::DirectCounterEntry(DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: Some(counted),
    });
    assert_eq!(
        a.read(vec![entity.clone()]).await.unwrap(),
        std::slice::from_ref(&want)
    );
    // As part of the entry, of all entries, of all tables.
    let with = TableEntry {
        counter_data: Some(CounterData::default()),
        ..key.clone()
    };
    let read = a.read(vec![Kind::TableEntry(with)]).await.unwrap();
    assert_eq!(
        read,
        [Kind::TableEntry(TableEntry {
            counter_data: Some(counted),
            ..ids.exact(&dst, 2)
        })]
    );
    for wild in [table(&ids, "exact_table"), TableEntry::default()] {
        let all = Kind::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(wild),
            data: None,
        });
        assert_eq!(
            a.read(vec![all]).await.unwrap(),
            std::slice::from_ref(&want)
        );
    }
    let zero = DirectCounterEntry {
        table_entry: Some(key.clone()),
        data: Some(CounterData::default()),
    };
    a.modify(Kind::DirectCounterEntry(zero.clone()))
        .await
        .unwrap();
    assert_eq!(
        a.read(vec![entity]).await.unwrap(),
        [Kind::DirectCounterEntry(zero.clone())]
    );

    let (code, text) = a
        .insert(Kind::DirectCounterEntry(zero.clone()))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("use MODIFY")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let other = DirectCounterEntry {
        table_entry: Some(TableEntry {
            action: None,
            ..ids.exact(&[9], 2)
        }),
        ..zero.clone()
    };
    assert_eq!(
        a.modify(Kind::DirectCounterEntry(other.clone()))
            .await
            .unwrap_err()
            .0,
        Code::NotFound
    );
    let status = a
        .read(vec![Kind::DirectCounterEntry(other)])
        .await
        .unwrap_err();
    assert_eq!(errors(&status)[0].0, Code::NotFound);
    let none = DirectCounterEntry {
        table_entry: Some(table(&ids, "lpm_table")),
        data: None,
    };
    let status = a
        .read(vec![Kind::DirectCounterEntry(none)])
        .await
        .unwrap_err();
    assert_eq!(
        errors(&status)[0].1,
        "table EntitiesIngress.lpm_table: it has no direct counter"
    );
}

#[tokio::test]
async fn direct_meters_are_configured() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let config = MeterConfig {
        cir: 1000,
        cburst: 200,
        pir: 2000,
        pburst: 400,
        eburst: 0,
    };
    let entry = TableEntry {
        meter_config: Some(config),
        ..ids.exact(&[5], 2)
    };
    a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    let key = TableEntry {
        action: None,
        ..ids.exact(&[5], 2)
    };
    let want = TableEntry {
        meter_config: Some(MeterConfig::default()),
        ..key.clone()
    };
    assert_eq!(
        a.read(vec![Kind::TableEntry(want)]).await.unwrap(),
        [Kind::TableEntry(entry)]
    );
    let direct = |config| {
        Kind::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(key.clone()),
            config,
            counter_data: None,
        })
    };
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(config))]
    );
    let doubled = MeterConfig {
        cir: 2000,
        ..config
    };
    a.modify(direct(Some(doubled))).await.unwrap();
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(doubled))]
    );
    // A MODIFY of the entry without a config puts the meter back to green.
    a.modify(Kind::TableEntry(ids.exact(&[5], 3)))
        .await
        .unwrap();
    assert_eq!(a.read(vec![direct(None)]).await.unwrap(), [direct(None)]);
    let (code, text) = a
        .modify(direct(Some(MeterConfig { cir: -1, ..config })))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("cir -1 is negative")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    let (code, text) = a
        .modify(direct(Some(MeterConfig {
            eburst: 4,
            ..config
        })))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("eburst 4 must be unset")),
        (Code::InvalidArgument, true),
        "{text}"
    );
    // Of a MODIFY whose rates are refused nothing is applied.
    let low = MeterConfig { pir: 999, ..config };
    let (code, text) = a
        .modify(Kind::TableEntry(TableEntry {
            meter_config: Some(low),
            ..ids.exact(&[5], 4)
        }))
        .await
        .unwrap_err();
    let peak = "peak rate 999 is below the committed rate 1000";
    assert!(text.contains(peak), "{text}");
    assert_eq!(code, Code::InvalidArgument);
    let read = a.read(vec![Kind::TableEntry(key.clone())]).await;
    assert_eq!(read.unwrap(), [Kind::TableEntry(ids.exact(&[5], 3))]);
}

#[tokio::test]
async fn the_default_entrys_counter_is_read_and_set_as_any_other() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let key = TableEntry {
        is_default_action: true,
        ..table(&ids, "exact_table")
    };
    let counted = |packet_count, byte_count| CounterData {
        packet_count,
        byte_count,
    };
    let direct = |data| {
        Kind::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(key.clone()),
            data,
        })
    };
    switch.receive(1, frame([9; 6], 0x800, b"")).await;
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(counted(1, 60)))]
    );
    a.modify(direct(Some(counted(7, 70)))).await.unwrap();
    a.modify(direct(None)).await.unwrap(); // nothing to change
    assert_eq!(
        a.read(vec![direct(None)]).await.unwrap(),
        [direct(Some(counted(7, 70)))]
    );
    // With its entry; one that is not given stays; a reset entry starts anew.
    let forward = |counter_data| {
        Kind::TableEntry(TableEntry {
            action: ids.action("measure", &[&[2]]),
            counter_data,
            ..key.clone()
        })
    };
    for (entry, want) in [
        (forward(Some(counted(5, 50))), (5, 50)),
        (forward(None), (5, 50)),
        (Kind::TableEntry(key.clone()), (0, 0)),
    ] {
        a.modify(entry).await.unwrap();
        let want = [direct(Some(counted(want.0, want.1)))];
        assert_eq!(a.read(vec![direct(None)]).await.unwrap(), want);
    }
    let with_priority = DirectCounterEntry {
        table_entry: Some(TableEntry {
            priority: 1,
            ..key.clone()
        }),
        data: None,
    };
    let (code, text) = a
        .modify(Kind::DirectCounterEntry(with_priority))
        .await
        .unwrap_err();
    assert_eq!(
        (code, text.contains("neither match fields nor a priority")),
        (Code::InvalidArgument, true),
        "{text}"
    );
}
