// SPDX-License-Identifier: Apache-2.0
//! Arbitration over real streams: who becomes primary, who hears of it, who may write (P4Runtime 1.5 §5).

use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::stream_message_request::Update as Outgoing;
use p4rt::proto::p4rt::{CapabilitiesRequest, MasterArbitrationUpdate, Role};
use tonic::Code;

#[tokio::test]
async fn capabilities_name_the_version() {
    let switch = Switch::start().await;
    let mut client = switch.connect().await;
    let version = |device_id| CapabilitiesRequest { device_id };
    let answer = client.capabilities(version(0)).await.unwrap().into_inner();
    assert_eq!(answer.p4runtime_api_version, "1.5.0");
    assert!(client.capabilities(version(DEVICE_ID)).await.is_ok());
    assert_eq!(
        client.capabilities(version(8)).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn the_higher_election_id_takes_over() {
    let switch = Switch::start().await;
    let (ids, mut a, mut b) = (
        Ids::default(),
        switch.session().await,
        switch.session().await,
    );
    a.become_primary(10).await;
    a.load().await;
    b.send(hello(DEVICE_ID, "", Some(5))).await;
    assert_eq!(b.arbitration().await, (Code::AlreadyExists, Some(10)));
    b.election_id = 5;
    let entry = Kind::TableEntry(ids.exact(&[1], 2));
    let status = b
        .write(vec![update(
            p4rt::proto::p4rt::update::Type::Insert,
            entry.clone(),
        )])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(
        status.message(),
        "Not primary: the primary of the default role is the client with the election id 10; to take over, send an \
         arbitration with a higher election id than 10 in a StreamChannel; the election id of this request is 5"
    );

    b.become_primary(11).await;
    assert_eq!(a.arbitration().await, (Code::AlreadyExists, Some(11)));
    let status = a.write(vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(b.insert(entry).await.is_ok());
    // A backup may read.
    assert_eq!(
        a.read(vec![Kind::TableEntry(Default::default())])
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn a_used_election_id_ends_the_stream() {
    let switch = Switch::start().await;
    let (mut a, mut b) = (switch.session().await, switch.session().await);
    a.become_primary(10).await;
    b.send(hello(DEVICE_ID, "", Some(10))).await;
    let status = b.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    // finsy looks for this text.
    assert!(
        status.message().starts_with("Election id already exists"),
        "{}",
        status.message()
    );
    // The stream ended, the primary did not change.
    assert!(a
        .write(vec![])
        .await
        .unwrap_err()
        .message()
        .contains("No forwarding pipeline config"));
}

#[tokio::test]
async fn backups_hear_that_the_primary_has_gone() {
    let switch = Switch::start().await;
    let (mut a, mut b) = (switch.session().await, switch.session().await);
    a.become_primary(10).await;
    b.send(hello(DEVICE_ID, "", Some(9))).await;
    assert_eq!(b.arbitration().await, (Code::AlreadyExists, Some(10)));
    drop(a);
    assert_eq!(b.arbitration().await, (Code::NotFound, Some(10)));
    b.election_id = 9;
    let status = b.write(vec![]).await.unwrap_err();
    assert_eq!(
        status.message(),
        "Not primary: the default role has no primary now; to take over, send an arbitration with a higher \
         election id than 10 in a StreamChannel; the election id of this request is 9"
    );
    b.become_primary(10).await; // the highest id ever seen is enough, as nobody holds it
}

#[tokio::test]
async fn a_primary_may_step_down_and_come_back() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.become_primary(10).await;
    a.send(hello(DEVICE_ID, "", Some(3))).await;
    assert_eq!(a.arbitration().await, (Code::NotFound, Some(10)));
    a.become_primary(10).await;
}

#[tokio::test]
async fn without_election_id_nobody_is_primary() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.send(hello(DEVICE_ID, "", None)).await;
    assert_eq!(a.arbitration().await, (Code::NotFound, None));
    let status = a.write(vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn each_role_has_its_primary() {
    let switch = Switch::start().await;
    let (ids, mut a, mut b) = (
        Ids::default(),
        switch.primary().await,
        switch.session().await,
    );
    b.role = "stats".into();
    b.become_primary(1).await; // the same id in another role
    assert!(b.insert(Kind::TableEntry(ids.exact(&[1], 2))).await.is_ok());
    assert!(a.insert(Kind::TableEntry(ids.exact(&[2], 2))).await.is_ok());
    b.role = "unknown".into();
    let status = b.write(vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "the role \"unknown\" is unknown: no client has opened a stream for it"
    );
    b.send(hello(DEVICE_ID, "other", Some(1))).await;
    assert_eq!(b.next().await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn wrong_device_and_role_config_end_the_stream() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.send(hello(8, "", Some(1))).await;
    let status = a.next().await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::NotFound,
            "device 8 is unknown; this switch is device 7"
        )
    );

    let mut b = switch.session().await;
    let config = Some(prost_types::Any {
        type_url: "type.example/Config".into(),
        value: vec![1],
    });
    b.send(Outgoing::Arbitration(MasterArbitrationUpdate {
        device_id: DEVICE_ID,
        role: Some(Role {
            name: "r".into(),
            config,
            ..Default::default()
        }),
        election_id: id(1),
        status: None,
    }))
    .await;
    let status = b.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status
        .message()
        .contains("role config \"type.example/Config\" is not understood"));
}

#[tokio::test]
async fn wrong_device_in_calls_is_not_found() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    let request = p4rt::proto::p4rt::WriteRequest {
        device_id: 9,
        election_id: id(1),
        ..Default::default()
    };
    assert_eq!(
        a.client.write(request).await.unwrap_err().code(),
        Code::NotFound
    );
    let request = p4rt::proto::p4rt::ReadRequest {
        device_id: 9,
        ..Default::default()
    };
    assert_eq!(
        a.client.read(request).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn many_clients_come_and_go() {
    let switch = Switch::start().await;
    let mut primary = switch.primary().await;
    for round in 0..3 {
        let mut sessions = Vec::new();
        for i in 0..20 {
            let session = switch.session().await;
            session.send(hello(DEVICE_ID, "", Some(100 + i))).await;
            sessions.push(session);
        }
        for session in &mut sessions {
            session.arbitration().await;
        }
        drop(sessions); // vanish in mid-stream
        let id = 1000 + round;
        primary.send(hello(DEVICE_ID, "", Some(id))).await;
        loop {
            if primary.arbitration().await == (Code::Ok, Some(id)) {
                break;
            }
        }
    }
}
