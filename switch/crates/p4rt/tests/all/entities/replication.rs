// SPDX-License-Identifier: Apache-2.0
//! Multicast groups and clone sessions.

use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use p4rt::proto::p4rt::replica::PortKind;
use p4rt::proto::p4rt::{
    CloneSessionEntry, MulticastGroupEntry, PacketReplicationEngineEntry, Replica,
};
use tonic::Code;

fn replicas(copies: &[(u8, u32)]) -> Vec<Replica> {
    let replica = |(port, instance): &(u8, u32)| Replica {
        port_kind: Some(PortKind::Port(vec![*port].into())),
        instance: *instance,
        ..Default::default()
    };
    copies.iter().map(replica).collect()
}

fn multicast(id: u32, copies: &[(u8, u32)]) -> Kind {
    let entry = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas(copies),
        metadata: b"why".as_slice().into(),
    };
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::MulticastGroupEntry(entry)),
    })
}

fn clone_session(id: u32, copies: &[(u8, u32)]) -> Kind {
    let entry = CloneSessionEntry {
        session_id: id,
        replicas: replicas(copies),
        class_of_service: 2,
        packet_length_bytes: 100,
    };
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::CloneSessionEntry(entry)),
    })
}

#[tokio::test]
async fn multicast_groups_and_clone_sessions() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    a.insert(multicast(5, &[(1, 1), (2, 1)])).await.unwrap();
    a.insert(clone_session(9, &[(3, 1)])).await.unwrap();
    let all = |r#type| Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type });
    assert_eq!(
        a.read(vec![all(None)]).await.unwrap(),
        [multicast(5, &[(1, 1), (2, 1)]), clone_session(9, &[(3, 1)])]
    );
    let groups = all(Some(PreType::MulticastGroupEntry(Default::default())));
    assert_eq!(
        a.read(vec![groups]).await.unwrap(),
        [multicast(5, &[(1, 1), (2, 1)])]
    );
    let ports = switch
        .handle
        .call(|d, _| {
            d.replication()
                .group(5)
                .unwrap()
                .replicas
                .iter()
                .map(|r| r.port)
                .collect::<Vec<_>>()
        })
        .await;
    assert_eq!(ports.unwrap(), [1, 2]);
    a.modify(multicast(5, &[(4, 0)])).await.unwrap();
    assert_eq!(
        a.insert(multicast(5, &[])).await.unwrap_err(),
        (
            Code::AlreadyExists,
            "multicast group 5 exists already".into()
        )
    );
    assert_eq!(
        a.modify(multicast(6, &[])).await.unwrap_err(),
        (Code::NotFound, "multicast group 6 does not exist".into())
    );
    assert_eq!(
        a.delete(clone_session(8, &[])).await.unwrap_err(),
        (Code::NotFound, "clone session 8 does not exist".into())
    );
    for (kind, code, text) in [
        (
            multicast(0, &[]),
            Code::InvalidArgument,
            "multicast group 0: the number must be 1 to 65535",
        ),
        (
            multicast(7, &[(1, 1), (1, 1)]),
            Code::InvalidArgument,
            "multicast group 7: replica (port 1, instance 1) is there twice",
        ),
        (
            multicast(7, &[(1, 70_000)]),
            Code::InvalidArgument,
            "multicast group 7: replica 0: instance 70000 is not within 0 to 65535",
        ),
        (
            clone_session(0, &[]),
            Code::InvalidArgument,
            "clone session id 0 is not within 1 to 32767",
        ),
    ] {
        assert_eq!(a.insert(kind).await.unwrap_err(), (code, text.to_owned()));
    }
    a.delete(multicast(5, &[])).await.unwrap();
    a.delete(clone_session(9, &[])).await.unwrap();
    assert_eq!(a.read(vec![all(None)]).await.unwrap(), []);
    assert!(switch
        .handle
        .call(|d, _| d.replication().group(5).is_none() && d.replication().session(9).is_none())
        .await
        .unwrap());
    // The controller's port has a number of its own in P4Runtime.
    let mut cpu = CloneSessionEntry {
        session_id: 3,
        replicas: replicas(&[(1, 0)]),
        ..Default::default()
    };
    cpu.replicas[0].port_kind = Some(PortKind::Port(vec![0xff, 0xff, 0xff, 0xfd].into()));
    let cpu = all(Some(PreType::CloneSessionEntry(cpu)));
    a.insert(cpu.clone()).await.unwrap();
    assert_eq!(a.read(vec![all(None)]).await.unwrap(), [cpu]);
    let port = switch
        .handle
        .call(|d, _| d.replication().session(3).unwrap().replicas[0].port)
        .await
        .unwrap();
    assert_eq!(port, 510);
    // Ports are read as the shortest strings, however long they were written, and metadata have a limit.
    let group = |port: &[u8], metadata| {
        let mut replicas = replicas(&[(0, 1)]);
        replicas[0].port_kind = Some(PortKind::Port(port.to_vec().into()));
        all(Some(PreType::MulticastGroupEntry(MulticastGroupEntry {
            multicast_group_id: 8,
            replicas,
            metadata: vec![1; metadata].into(),
        })))
    };
    a.insert(group(&[0, 0, 5], 4_096)).await.unwrap();
    let short = group(&[5], 4_096);
    assert_eq!(a.read(vec![short.clone()]).await.unwrap(), [short]);
    let (code, text) = a.modify(group(&[5], 4_097)).await.unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            Code::InvalidArgument,
            "multicast group 8: bytes of metadata 4097 is not within 0 to 4096"
        )
    );
}

/// In p4runtime.proto before 1.4 `egress_port` was no oneof: port 0, a port as any other in v1model, is nothing on the wire.
#[tokio::test]
async fn a_replica_of_an_old_client_without_a_port_is_for_port_0() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    let mut group = MulticastGroupEntry {
        multicast_group_id: 7,
        replicas: vec![Replica::default(), replicas(&[(1, 0)]).remove(0)],
        ..Default::default()
    };
    let kind = |group: &MulticastGroupEntry| {
        let r#type = Some(PreType::MulticastGroupEntry(group.clone()));
        Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type })
    };
    a.insert(kind(&group)).await.unwrap();
    assert_eq!(a.read(vec![kind(&group)]).await.unwrap(), [kind(&group)]);
    group.replicas.extend(replicas(&[(0, 0)]));
    let (code, text) = a.modify(kind(&group)).await.unwrap_err();
    assert_eq!(
        (
            code,
            text.contains("replica (port 0, instance 0) is there twice")
        ),
        (tonic::Code::InvalidArgument, true),
        "{text}"
    );
}
