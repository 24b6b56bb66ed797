// SPDX-License-Identifier: Apache-2.0
//! Counters, meters and registers, by cell and by wildcard.

use super::{bits, index};
use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    p4_data::Data, CounterData, CounterEntry, MeterConfig, MeterEntry, P4Data, RegisterEntry,
};
use tonic::Code;

#[tokio::test]
async fn counters_by_cell_and_by_wildcard() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let id = ids.counters("port_counter");
    let cell = |i, packet_count| {
        let data = Some(CounterData {
            packet_count,
            byte_count: 10 * packet_count,
        });
        Kind::CounterEntry(CounterEntry {
            counter_id: id,
            index: index(i),
            data,
        })
    };
    a.modify(cell(63, 7)).await.unwrap();
    let ask = |counter_id, index| {
        Kind::CounterEntry(CounterEntry {
            counter_id,
            index,
            data: None,
        })
    };
    assert_eq!(
        a.read(vec![ask(id, index(63))]).await.unwrap(),
        [cell(63, 7)]
    );
    let all = a.read(vec![ask(id, None)]).await.unwrap();
    assert_eq!(
        (all.len(), &all[0], &all[63]),
        (64, &cell(0, 0), &cell(63, 7))
    );
    assert_eq!(a.read(vec![ask(0, None)]).await.unwrap(), all);
    // No index: every cell. No data: nothing changes.
    let every = CounterEntry {
        counter_id: id,
        index: None,
        data: Some(CounterData {
            packet_count: 2,
            byte_count: 20,
        }),
    };
    a.modify(Kind::CounterEntry(every)).await.unwrap();
    a.modify(ask(id, index(1))).await.unwrap();
    assert_eq!(a.read(vec![ask(id, index(1))]).await.unwrap(), [cell(1, 2)]);

    for (kind, code, text) in [
        (
            cell(64, 1),
            Code::OutOfRange,
            "counter EntitiesIngress.port_counter: index 64 is not below the size, 64",
        ),
        (
            cell(-1, 1),
            Code::InvalidArgument,
            "counter EntitiesIngress.port_counter: index -1 is negative",
        ),
        (
            cell(1, -1),
            Code::InvalidArgument,
            "counter EntitiesIngress.port_counter: packet_count -1 is negative",
        ),
    ] {
        let (got, message) = a.modify(kind).await.unwrap_err();
        assert_eq!((got, message.as_str()), (code, text));
    }
    let (code, text) = a.modify(ask(5, None)).await.unwrap_err();
    assert_eq!(code, Code::NotFound);
    assert!(
        text.starts_with("counter id 0x5 is unknown; known: "),
        "{text}"
    );
    for verb in [Verb::Insert, Verb::Delete] {
        assert_eq!(
            a.one(verb, cell(1, 1)).await.unwrap_err().0,
            Code::InvalidArgument
        );
    }
}

#[tokio::test]
async fn meters_by_cell_and_by_wildcard() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let meter_id = ids.meters("port_meter");
    let cell = |i, config| {
        Kind::MeterEntry(MeterEntry {
            meter_id,
            index: index(i),
            config,
            counter_data: None,
        })
    };
    let config = MeterConfig {
        cir: 10,
        cburst: 5,
        pir: 20,
        pburst: 8,
        eburst: 0,
    };
    a.modify(cell(3, Some(config))).await.unwrap();
    assert_eq!(
        a.read(vec![cell(3, None)]).await.unwrap(),
        [cell(3, Some(config))]
    );
    let wild = Kind::MeterEntry(MeterEntry {
        meter_id,
        ..Default::default()
    });
    let all = a.read(vec![wild]).await.unwrap();
    assert_eq!(
        (all.len(), &all[2], &all[3]),
        (16, &cell(2, None), &cell(3, Some(config)))
    );
    a.modify(cell(3, None)).await.unwrap();
    assert_eq!(a.read(vec![cell(3, None)]).await.unwrap(), [cell(3, None)]);
    let (code, text) = a.modify(cell(16, None)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::OutOfRange,
            "meter EntitiesIngress.port_meter: index 16 is not below the size, 16"
        )
    );
    let (code, _) = a
        .modify(cell(1, Some(MeterConfig { pir: 1, ..config })))
        .await
        .unwrap_err();
    assert_eq!(code, Code::InvalidArgument); // the peak rate is below the committed one
    let counted = MeterEntry {
        meter_id,
        counter_data: Some(Default::default()),
        ..Default::default()
    };
    let (code, text) = a.modify(Kind::MeterEntry(counted)).await.unwrap_err();
    assert_eq!(
        (code, text.contains("counter_data must be unset")),
        (Code::Unimplemented, true),
        "{text}"
    );
}

#[tokio::test]
async fn registers_are_written_and_read() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let cells = ids.registers("cells");
    let cell = |i, value: &[u8]| {
        Kind::RegisterEntry(RegisterEntry {
            register_id: cells,
            index: index(i),
            data: bits(value),
        })
    };
    a.modify(cell(4999, &[0xde, 0xad, 0xbe, 0xef]))
        .await
        .unwrap();
    let ask = |index| {
        Kind::RegisterEntry(RegisterEntry {
            register_id: cells,
            index,
            data: None,
        })
    };
    assert_eq!(
        a.read(vec![ask(index(4999))]).await.unwrap(),
        [cell(4999, &[0xde, 0xad, 0xbe, 0xef])]
    );
    // All 5,000, in several messages; then all of them written at once.
    let all = a.read(vec![ask(None)]).await.unwrap();
    assert_eq!((all.len(), &all[4998]), (5000, &cell(4998, &[0])));
    let every = RegisterEntry {
        register_id: cells,
        index: None,
        data: bits(&[9]),
    };
    a.modify(Kind::RegisterEntry(every)).await.unwrap();
    let all = a.read(vec![ask(None)]).await.unwrap();
    assert!((0..5000).zip(&all).all(|(i, e)| *e == cell(i, &[9])));

    let signed = ids.registers("signed_cells");
    let minus = Kind::RegisterEntry(RegisterEntry {
        register_id: signed,
        index: index(2),
        data: bits(&[0xfd, 0x1d]),
    });
    a.modify(minus.clone()).await.unwrap();
    let ask = Kind::RegisterEntry(RegisterEntry {
        register_id: signed,
        index: index(2),
        data: None,
    });
    assert_eq!(a.read(vec![ask]).await.unwrap(), [minus]);

    for (kind, code, text) in [
        (cell(5000, &[1]), Code::OutOfRange, "register EntitiesIngress.cells: index 5000 is not below the size, 5000"),
        (cell(1, &[1, 0, 0, 0, 0]), Code::OutOfRange, "register EntitiesIngress.cells: the value 0x0100000000 needs 33 bits, but the field is bit<32>"),
        (
            Kind::RegisterEntry(RegisterEntry { register_id: cells, index: index(1), data: None }),
            Code::InvalidArgument,
            "register EntitiesIngress.cells: the data is unset",
        ),
        (
            Kind::RegisterEntry(RegisterEntry { register_id: cells, index: index(1), data: Some(P4Data { data: Some(Data::Bool(true)) }) }),
            Code::InvalidArgument,
            "register EntitiesIngress.cells: the data is no value of the type Bit(32)",
        ),
    ] {
        let (got, message) = a.modify(kind).await.unwrap_err();
        assert_eq!((got, message.as_str()), (code, text));
    }
}
