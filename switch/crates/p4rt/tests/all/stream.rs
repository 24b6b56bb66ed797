// SPDX-License-Identifier: Apache-2.0
//! What comes and goes on the stream: packet-out, packet-in, digests, idle timeouts, stream errors (P4Runtime 1.5 §16).

use crate::common::*;
use p4rt::proto::p4rt::digest_entry::Config;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::p4_data::Data;
use p4rt::proto::p4rt::stream_error::Details;
use p4rt::proto::p4rt::stream_message_request::Update as Outgoing;
use p4rt::proto::p4rt::stream_message_response::Update as Incoming;
use p4rt::proto::p4rt::{
    DigestEntry, DigestList, DigestListAck, P4Data, P4StructLike, PacketMetadata, PacketOut,
    StreamMessageRequest, TableEntry,
};
use tonic::Code;

fn meta(metadata_id: u32, value: &[u8]) -> PacketMetadata {
    PacketMetadata {
        metadata_id,
        value: value.to_vec().into(),
    }
}

async fn error(session: &mut Session) -> (Code, String, Details) {
    match session.next().await.unwrap() {
        Incoming::Error(e) => (Code::from(e.canonical_code), e.message, e.details.unwrap()),
        other => panic!("no stream error: {other:?}"),
    }
}

#[tokio::test]
async fn a_packet_out_leaves_at_the_port_of_its_metadata() {
    let switch = Switch::start().await;
    let a = switch.primary().await;
    let payload = frame([2, 0, 0, 0, 0, 1], 0x800, b"out");
    let packet = PacketOut {
        payload: payload.clone().into(),
        metadata: vec![meta(1, &[3]), meta(2, &[0])],
    };
    a.send(Outgoing::Packet(packet)).await;
    assert_eq!(switch.sent().await, (3, payload));
}

#[tokio::test]
async fn bad_packet_outs_come_back_as_stream_errors() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    let mut b = switch.session().await;
    let out = |metadata: Vec<PacketMetadata>| PacketOut {
        payload: vec![0; 60].into(),
        metadata,
    };
    for (metadata, text) in [
        (
            vec![meta(7, &[1])],
            "metadata id 0x7 is unknown; known: 0x1 egress_port, 0x2 _pad",
        ),
        (
            vec![meta(1, &[2, 0]), meta(2, &[0])],
            "metadata egress_port: the value 0x0200 needs 10 bits, but the field is bit<9>",
        ),
    ] {
        a.send(Outgoing::Packet(out(metadata.clone()))).await;
        let (code, message, details) = error(&mut a).await;
        assert_eq!((code, message.as_str()), (Code::InvalidArgument, text));
        match details {
            Details::PacketOut(e) => assert_eq!(e.packet_out, Some(out(metadata))),
            other => panic!("{other:?}"),
        }
    }
    // Only the primary may send packets.
    b.send(hello(DEVICE_ID, "", Some(0))).await;
    b.arbitration().await;
    b.send(Outgoing::Packet(out(vec![meta(1, &[3]), meta(2, &[0])])))
        .await;
    let (code, message, _) = error(&mut b).await;
    assert_eq!(
        (code, message.as_str()),
        (
            Code::PermissionDenied,
            "Not primary: the primary of the default role is the client with the election id 1; to take over, send an \
             arbitration with a higher election id than 1 in a StreamChannel (only the primary may send a packet-out)"
        )
    );
    assert!(switch.sent_nothing().await);
}

#[tokio::test]
async fn other_bad_messages_come_back_as_stream_errors() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    a.send(Outgoing::DigestAck(DigestListAck {
        digest_id: 5,
        list_id: 1,
    }))
    .await;
    let (code, message, details) = error(&mut a).await;
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.starts_with("digest id 0x5 is unknown"), "{message}");
    assert!(matches!(details, Details::DigestListAck(_)));
    a.send(Outgoing::Other(prost_types::Any {
        type_url: "x/Y".into(),
        value: vec![],
    }))
    .await;
    assert_eq!(
        error(&mut a).await.1,
        "messages of the type \"x/Y\" are not supported"
    );
    a.tx.send(StreamMessageRequest { update: None })
        .await
        .unwrap();
    assert!(error(&mut a)
        .await
        .1
        .starts_with("the stream message is empty"));
}

#[tokio::test]
async fn a_packet_in_carries_its_metadata_to_the_primary_only() {
    let switch = Switch::start().await;
    let (mut a, mut b) = (switch.primary().await, switch.session().await);
    b.send(hello(DEVICE_ID, "", Some(0))).await;
    b.arbitration().await;
    let lldp = frame([1, 0x80, 0xc2, 0, 0, 0x0e], 0x88cc, b"hello");
    switch.receive(2, lldp.clone()).await;
    switch.pass(1_000);
    match a.next().await.unwrap() {
        Incoming::Packet(packet) => {
            assert_eq!(packet.payload, lldp);
            assert_eq!(packet.metadata, [meta(1, &[2]), meta(2, &[5])]);
        }
        other => panic!("no packet-in: {other:?}"),
    }
    // The backup's next message is about arbitration: it has got no packet.
    drop(a);
    assert_eq!(b.arbitration().await.0, Code::NotFound);
}

async fn digest(session: &mut Session) -> DigestList {
    match session.next().await.unwrap() {
        Incoming::Digest(list) => list,
        other => panic!("no digest: {other:?}"),
    }
}

fn learned(mac: &[u8], port: u8) -> P4Data {
    let value = |data| P4Data { data: Some(data) };
    let members = vec![
        value(Data::Bitstring(mac.to_vec().into())),
        value(Data::Bitstring(vec![port].into())),
        value(Data::Bool(true)),
    ];
    value(Data::Struct(P4StructLike { members }))
}

#[tokio::test]
async fn digests_are_batched_and_told_once_until_acknowledged() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let digest_id = ids.digests("learn_t");
    let config = Config {
        max_timeout_ns: 20_000_000_000,
        max_list_size: 2,
        ack_timeout_ns: 60_000_000_000,
    };
    a.insert(Kind::DigestEntry(DigestEntry {
        digest_id,
        config: Some(config),
    }))
    .await
    .unwrap();
    let from = |mac: u8| {
        let mut frame = labelled(1, 1, 15);
        frame[11] = mac;
        frame
    };
    for mac in [1, 1, 2] {
        switch.receive(3, from(mac)).await;
    }
    let list = digest(&mut a).await;
    assert_eq!(
        (list.digest_id, list.data),
        (
            digest_id,
            vec![
                learned(&[2, 0, 0, 0, 0, 1], 3),
                learned(&[2, 0, 0, 0, 0, 2], 3)
            ]
        )
    );
    assert!(list.timestamp > 1_600_000_000_000_000_000);
    // 1 and 2 are known; 3 and 4 make the next list.
    for mac in [1, 2, 3, 4] {
        switch.receive(3, from(mac)).await;
    }
    let second = digest(&mut a).await;
    assert_eq!(
        second.data,
        [
            learned(&[2, 0, 0, 0, 0, 3], 3),
            learned(&[2, 0, 0, 0, 0, 4], 3)
        ]
    );
    assert!(second.list_id > list.list_id);
    // Acknowledged, they are reported again.
    a.send(Outgoing::DigestAck(DigestListAck {
        digest_id,
        list_id: list.list_id,
    }))
    .await;
    a.send(Outgoing::Other(Default::default())).await; // answered after the acknowledgement was taken
    error(&mut a).await;
    for mac in [3, 1, 4, 2] {
        switch.receive(3, from(mac)).await;
    }
    assert_eq!(
        digest(&mut a).await.data,
        [
            learned(&[2, 0, 0, 0, 0, 1], 3),
            learned(&[2, 0, 0, 0, 0, 2], 3)
        ]
    );
}

#[tokio::test]
async fn a_digest_list_is_sent_when_its_time_has_come() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let digest_id = ids.digests("learn_t");
    let config = Config {
        max_timeout_ns: 5_000_000,
        max_list_size: 0,
        ack_timeout_ns: 0,
    };
    a.insert(Kind::DigestEntry(DigestEntry {
        digest_id,
        config: Some(config),
    }))
    .await
    .unwrap();
    switch.receive(3, labelled(1, 1, 15)).await;
    assert_eq!(digest(&mut a).await.data.len(), 1);
}

#[tokio::test]
async fn a_new_primary_hears_of_what_the_old_one_did_not_acknowledge() {
    let switch = Switch::start().await;
    let (ids, mut a, mut b) = (
        Ids::default(),
        switch.primary().await,
        switch.session().await,
    );
    let digest_id = ids.digests("learn_t");
    let config = Config {
        max_timeout_ns: 0,
        max_list_size: 1,
        ack_timeout_ns: 60_000_000_000,
    };
    a.insert(Kind::DigestEntry(DigestEntry {
        digest_id,
        config: Some(config),
    }))
    .await
    .unwrap();
    switch.receive(3, labelled(1, 1, 15)).await;
    let first = digest(&mut a).await;
    b.become_primary(2).await;
    switch.receive(3, labelled(1, 1, 15)).await;
    assert_eq!(digest(&mut b).await.data, first.data);
}

#[tokio::test]
async fn idle_entries_are_told_with_their_metadata() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let entry = TableEntry {
        idle_timeout_ns: 2_000_000_000,
        metadata: b"flow 5".as_slice().into(),
        ..ids.exact(&[2, 0, 0, 0, 0, 5], 2)
    };
    a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    a.insert(Kind::TableEntry(ids.exact(&[2, 0, 0, 0, 0, 6], 2)))
        .await
        .unwrap(); // never ages
    let told = soon("an idle timeout", async {
        loop {
            switch.pass(500_000_000);
            if let Ok(next) =
                tokio::time::timeout(std::time::Duration::from_millis(50), a.next()).await
            {
                break next.unwrap();
            }
        }
    })
    .await;
    match told {
        Incoming::IdleTimeoutNotification(note) => {
            assert_eq!(note.table_entry, [entry]);
            assert!(note.timestamp > 1_600_000_000_000_000_000);
        }
        other => panic!("no idle timeout: {other:?}"),
    }
}
