// SPDX-License-Identifier: Apache-2.0
//! Clients that ask for too much, take nothing, or say nothing: the others are served as if these were not there.

use std::time::Duration;

use crate::common::*;
use p4rt::proto::p4rt::action_profile_group::Member;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::p4_runtime_client::P4RuntimeClient;
use p4rt::proto::p4rt::packet_replication_engine_entry::Type as PreType;
use p4rt::proto::p4rt::replica::PortKind;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action as ConfigAction;
use p4rt::proto::p4rt::stream_message_response::Update as Incoming;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    ActionProfileGroup, ActionProfileMember, CounterData, CounterEntry, Entity,
    ForwardingPipelineConfig, MulticastGroupEntry, PacketReplicationEngineEntry, ReadRequest,
    ReadResponse, Replica, TableEntry, ValueSetEntry, ValueSetMember, WriteRequest,
};
use p4rt::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// More than fits into what a client with a small window and the server's transport hold.
const MANY: u32 = 40_000;

async fn fill(switch: &Switch) -> (Session, Ids) {
    let (ids, mut primary) = (Ids::default(), switch.primary().await);
    let numbers: Vec<u32> = (1..=MANY).collect();
    for some in numbers.chunks(4_000) {
        let entry = |n: &u32| Kind::TableEntry(ids.exact(&n.to_be_bytes(), 2));
        let updates = some.iter().map(|n| update(Verb::Insert, entry(n)));
        primary.write(updates.collect()).await.unwrap();
    }
    (primary, ids)
}

/// A client whose connection takes 64 KiB unread.
async fn narrow(switch: &Switch) -> P4RuntimeClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", switch.addr)).unwrap();
    let endpoint = endpoint
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(65_535);
    P4RuntimeClient::new(endpoint.connect().await.unwrap())
}

fn all_entries(ids: &Ids, times: usize) -> ReadRequest {
    let entry = TableEntry {
        table_id: ids.tables("exact_table"),
        ..TableEntry::default()
    };
    let entity = Entity {
        entity: Some(Kind::TableEntry(entry)),
    };
    ReadRequest {
        device_id: DEVICE_ID,
        entities: vec![entity; times],
        ..ReadRequest::default()
    }
}

/// Reads to the end; how many entities came, and the status.
async fn rest(mut stream: Streaming<ReadResponse>) -> (usize, Option<Status>) {
    let mut count = 0;
    loop {
        match soon("a read response", stream.message()).await {
            Ok(Some(message)) => count += message.entities.len(),
            Ok(None) => return (count, None),
            Err(status) => return (count, Some(status)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_stops_nobody() {
    let switch = Switch::start().await;
    let (mut primary, ids) = fill(&switch).await;
    let mut reader = narrow(&switch).await;
    let stream = reader.read(all_entries(&ids, 1)).await.unwrap();
    // Writes, arbitration, other reads: all while the reader takes nothing.
    primary
        .insert(Kind::TableEntry(ids.exact(&[7, 0, 0, 0, 0], 3)))
        .await
        .unwrap();
    primary.become_primary(2).await;
    let mut other = switch.session().await;
    let read = other
        .read(vec![Kind::TableEntry(ids.exact(&[7, 0, 0, 0, 0], 3))])
        .await
        .unwrap();
    assert_eq!(read.len(), 1);
    // It gets what was there when it asked, and all of it.
    let (count, status) = rest(stream.into_inner()).await;
    assert_eq!((count, status.map(|s| s.code())), (MANY as usize, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_too_long_to_keep_ends_when_something_is_written() {
    let limits = Limits {
        unread_bytes: 1 << 20,
        ..Limits::default()
    };
    let switch = Switch::start_with(limits).await;
    let (mut primary, ids) = fill(&switch).await;
    let mut reader = narrow(&switch).await;
    // Without a write it is read to its end, however slowly.
    let stream = reader.read(all_entries(&ids, 3)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (count, status) = rest(stream.into_inner()).await;
    assert_eq!((count, status.map(|s| s.code())), (3 * MANY as usize, None));
    let mut stream = reader
        .read(all_entries(&ids, 3))
        .await
        .unwrap()
        .into_inner();
    let first = soon("the first entries", stream.message()).await.unwrap();
    let first = first.unwrap().entities.len();
    primary
        .insert(Kind::TableEntry(ids.exact(&[7, 0, 0, 0, 0], 3)))
        .await
        .unwrap();
    let (count, status) = rest(stream).await;
    let status = status.expect("it saw the state before and after a write");
    assert_eq!(status.code(), Code::Aborted, "{status}");
    assert!(status.message().starts_with("something was written while"));
    assert!(first + count < 3 * MANY as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_has_an_end() {
    let limits = Limits {
        read: Duration::from_millis(500),
        ..Limits::default()
    };
    let switch = Switch::start_with(limits).await;
    let (mut primary, ids) = fill(&switch).await;
    let mut reader = narrow(&switch).await;
    let stream = reader.read(all_entries(&ids, 1)).await.unwrap();
    tokio::time::sleep(2 * limits.read).await;
    let (count, status) = rest(stream.into_inner()).await;
    let status = status.expect("it took nothing in time");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status
        .message()
        .starts_with("the read was not done after 0.5 s"));
    assert!(count < MANY as usize);
    let entry = Kind::TableEntry(ids.exact(&[0, 0, 0, 1], 2));
    assert_eq!(primary.read(vec![entry]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_for_too_much_is_refused_before_it_is_read() {
    let switch = Switch::start().await;
    let mut primary = switch.primary().await;
    let read = |count| {
        let request = ReadRequest {
            device_id: DEVICE_ID,
            entities: vec![Entity::default(); count],
            ..ReadRequest::default()
        };
        let mut client = primary.client.clone();
        async move { soon("an answer", client.read(request)).await.unwrap_err() }
    };
    let status = read(4_097).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "the request has 4097 entities; at most 4096 are allowed"
    );
    let status = read(1 << 20).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    let text = status.message();
    assert!(text.starts_with("the message has 2097"), "{text}");
    assert!(
        text.ends_with(" bytes; this call takes at most 262144"),
        "{text}"
    );
    let request = WriteRequest {
        device_id: DEVICE_ID,
        role: "x".repeat(18 << 20),
        ..WriteRequest::default()
    };
    let status = soon("an answer", primary.client.write(request)).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    // The connection goes on.
    let tables = primary.read(vec![Kind::TableEntry(TableEntry::default())]);
    assert!(tables.await.is_ok());
}

#[tokio::test]
async fn a_batch_of_400_with_one_refused_tells_which() {
    let switch = Switch::start().await;
    let (ids, mut primary) = (Ids::default(), switch.primary().await);
    for refused in [0, 200, 399] {
        let entry = |n: usize| match n == refused {
            true => TableEntry::default(),
            false => ids.exact(&(refused * 1_000 + n + 1).to_be_bytes()[2..], 2),
        };
        let updates = (0..400).map(|n| update(Verb::Insert, Kind::TableEntry(entry(n))));
        let status = primary.write(updates.collect()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unknown, "{status}");
        let text = format!("Write: 1 of 400 refused; first [{refused}]: table id 0 is a wildcard");
        assert!(status.message().starts_with(&text), "{status}");
        let errors = errors(&status);
        for (index, (code, _)) in errors.iter().enumerate() {
            assert_eq!(*code == Code::InvalidArgument, index == refused);
        }
        assert!(errors.len() > refused || status.message().ends_with("; refused are 399"));
    }
}

/// Reads until the server has closed the connection.
async fn end_of(stream: &mut TcpStream) {
    let mut bytes = [0; 64];
    soon("the end of an idle connection", async {
        while !matches!(stream.read(&mut bytes).await, Ok(0) | Err(_)) {}
    })
    .await;
}

#[tokio::test]
async fn connections_that_say_nothing_lock_nobody_out() {
    let limits = Limits {
        connections: 20,
        ..Limits::default()
    };
    let switch = Switch::start_with(limits).await;
    let mut primary = switch.primary().await;
    let mut idle = Vec::new();
    for _ in 0..60 {
        idle.push(TcpStream::connect(switch.addr).await.unwrap());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    // A new client finds a place, and the one that is there keeps its own.
    let mut other = switch.session().await;
    other.become_primary(1_000).await;
    primary.election_id = 1_001;
    primary.send(hello(DEVICE_ID, "", Some(1_001))).await;
    soon("the first client's election", async {
        while primary.write(vec![]).await.is_err() {}
    })
    .await;
    // The first of the idle ones were closed for it.
    end_of(&mut idle[0]).await;
}

#[tokio::test]
async fn connections_without_a_call_are_closed() {
    let limits = Limits {
        idle: Duration::from_millis(50),
        ..Limits::default()
    };
    let switch = Switch::start_with(limits).await;
    let mut primary = switch.primary().await; // its stream is a call
    let mut silent = TcpStream::connect(switch.addr).await.unwrap();
    end_of(&mut silent).await;
    primary.load().await;
    // A client whose connection was closed gets another one.
    let mut client = switch.connect().await;
    for _ in 0..2 {
        let answer = soon(
            "capabilities",
            client.capabilities(p4rt::proto::p4rt::CapabilitiesRequest::default()),
        );
        if let Err(status) = answer.await {
            assert_eq!(status.code(), Code::Unavailable, "{status}");
        }
        tokio::time::sleep(Duration::from_millis(2_200)).await;
    }
    let request = p4rt::proto::p4rt::CapabilitiesRequest::default();
    soon("capabilities", client.capabilities(request))
        .await
        .unwrap();
}

/// What a client sends that opens a stream channel: its greeting, settings, and the headers of the call (RFC 7541, 9113).
fn stream_channel() -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        [&head, payload].concat()
    };
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let headers = [
        vec![0x83, 0x86, 0x04], // :method POST, :scheme http, :path
        text("/p4.v1.P4Runtime/StreamChannel"),
        vec![0x01], // :authority
        text("switch"),
        vec![0x0f, 0x10], // content-type
        text("application/grpc"),
        vec![0x00],
        text("te"),
        text("trailers"),
    ];
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &headers.concat()),
    ]
    .concat()
}

#[tokio::test]
async fn a_client_that_is_gone_with_its_call_open_is_noticed() {
    let limits = Limits {
        keepalive: Duration::from_millis(100),
        ..Limits::default()
    };
    let switch = Switch::start_with(limits).await;
    let mut there = switch.primary().await;
    let mut gone = TcpStream::connect(switch.addr).await.unwrap();
    gone.write_all(&stream_channel()).await.unwrap();
    let mut bytes = Vec::new();
    let end = gone.read_to_end(&mut bytes);
    let _ = soon("the end of a connection without answers", end).await; // it may be a reset
    let ping: &[u8] = &[0, 0, 8, 6, 0];
    assert!(bytes.windows(5).any(|some| some == ping), "{bytes:?}");
    assert!(there.write(vec![]).await.is_ok());
    // By its call alone it could stay.
    let switch = Switch::start().await;
    let mut kept = TcpStream::connect(switch.addr).await.unwrap();
    kept.write_all(&stream_channel()).await.unwrap();
    let end = tokio::time::timeout(Duration::from_millis(500), end_of(&mut kept));
    assert!(end.await.is_err(), "the call was no call");
}

#[tokio::test]
async fn roles_are_bounded_in_length_and_in_number() {
    let switch = Switch::start().await;
    let long = switch.session().await;
    long.send(hello(DEVICE_ID, &"r".repeat(10_000), Some(1)))
        .await;
    let mut long = long;
    let status = long.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status
            .message()
            .ends_with("\"... (10000 bytes) is too long; at most 200 bytes are allowed"),
        "{status}"
    );
    // Roles that nobody has any more make room for new ones.
    for n in 0..200 {
        let mut session = switch.session().await;
        session.role = format!("role {n}");
        session.become_primary(1).await;
    }
    let mut primary = switch.primary().await;
    assert!(primary.write(vec![]).await.is_ok());
}

#[allow(deprecated)]
fn group(id: u32, replicas: u32) -> Kind {
    let replica = |n: u32| Replica {
        port_kind: Some(PortKind::EgressPort(n % 500)),
        instance: n / 500,
        ..Replica::default()
    };
    let group = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: (0..replicas).map(replica).collect(),
        ..MulticastGroupEntry::default()
    };
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::MulticastGroupEntry(group)),
    })
}

#[tokio::test]
async fn a_multicast_group_has_at_most_1024_replicas() {
    let switch = Switch::start().await;
    let mut primary = switch.primary().await;
    let refused = primary.insert(group(1, 20_000)).await.unwrap_err();
    let text = "multicast group 1: 20000 replicas; at most 1024 are possible";
    assert_eq!(refused, (Code::ResourceExhausted, text.to_owned()));
    primary.insert(group(1, 1_024)).await.unwrap();
    // All together are bounded as well.
    for first in (2..256).step_by(64) {
        let ids = first..(first + 64).min(257);
        let updates = ids.map(|id| update(Verb::Insert, group(id, 1_024)));
        primary.write(updates.collect()).await.unwrap();
    }
    let refused = primary.insert(group(1_000, 1)).await.unwrap_err();
    assert_eq!(refused.0, Code::ResourceExhausted, "{refused:?}");
    primary.delete(group(7, 0)).await.unwrap();
    primary.insert(group(1_000, 1_024)).await.unwrap();
}

/// What packets wait for: 100 µs of an optimised program.
const LONGEST_CALL: Duration = match cfg!(debug_assertions) {
    true => Duration::from_millis(2),
    false => Duration::from_micros(100),
};

#[tokio::test(flavor = "multi_thread")]
async fn packets_do_not_wait_for_clients() {
    let switch = Switch::start().await;
    let (mut primary, ids) = fill(&switch).await;
    let all = || vec![Kind::TableEntry(TableEntry::default())];
    // What is long by itself is long each time; what the machine makes long once is not.
    let mut shortest = [Duration::MAX; 4];
    for round in 0..5 {
        switch.longest_call();
        let groups = (1..64).map(|id| update(Verb::Insert, group(id, 1_024)));
        primary.write(groups.collect()).await.unwrap();
        let groups = (1..64).map(|id| update(Verb::Delete, group(id, 0)));
        primary.write(groups.collect()).await.unwrap();
        let of_groups = switch.longest_call();
        let entry =
            |n: u32| Kind::TableEntry(ids.exact(&[8, round, 0, (n >> 8) as u8, n as u8], 2));
        let entries = (0..4_000).map(|n| update(Verb::Insert, entry(n)));
        primary.write(entries.collect()).await.unwrap();
        let of_entries = switch.longest_call();
        assert!(primary.read(all()).await.unwrap().len() > MANY as usize);
        let of_reads = switch.longest_call();
        // Another program that keeps the entries, and the old one dropped.
        let done = primary.configure(ConfigAction::ReconcileAndCommit, Some(config()));
        done.await.unwrap();
        let of_programs = switch.longest_call();
        let took = [of_groups, of_entries, of_reads, of_programs];
        println!("groups, entries, reads, programs: {took:?}");
        shortest
            .iter_mut()
            .zip(took)
            .for_each(|(s, t)| *s = t.min(*s));
    }
    assert!(shortest.iter().all(|t| *t < LONGEST_CALL), "{shortest:?}");
}

/// A Write holds the state; what ports tell waits for it, and packet-ins do not.
#[tokio::test(flavor = "multi_thread")]
async fn packet_ins_wait_for_no_write() {
    let switch = Switch::start().await;
    let (ids, mut primary) = (Ids::default(), switch.primary().await);
    let entries = (1..=MANY).map(|n| ids.exact(&n.to_be_bytes(), 2));
    let request = WriteRequest {
        device_id: DEVICE_ID,
        election_id: id(primary.election_id),
        updates: entries
            .map(|entry| encoded(&update(Verb::Insert, Kind::TableEntry(entry))))
            .collect(),
        ..WriteRequest::default()
    };
    let mut client = primary.client.clone();
    let write = tokio::spawn(async move { client.write(request).await });
    let begun = |device: &mut device::Device| {
        let pipeline = device.pipeline()?;
        let table = pipeline.find_table("EntitiesIngress.exact_table")?;
        Some(pipeline.table(table).entries()).filter(|entries| *entries > 0)
    };
    soon("the first entries", async {
        while switch
            .handle
            .call(move |device, _| begun(device))
            .await
            .unwrap()
            .is_none()
        {}
    })
    .await;
    let mut seen = 0;
    for up in [false, true].repeat(5) {
        let flap = switch.handle.call(move |device, now| {
            device.set_port_up(4, up);
            device.receive(now, 1, &frame([2, 0, 0, 0, 0, 1], 0x88cc, b"lldp"));
        });
        flap.await.unwrap();
        switch.pass(1_000);
        assert!(matches!(primary.next().await, Ok(Incoming::Packet(_))));
        let entries = switch.handle.call(move |device, _| begun(device)).await;
        seen += u32::from(entries.unwrap() < Some(MANY as usize));
    }
    // The first one comes before its port's change; those after it would wait.
    assert!(seen > 1, "packet-ins came when the Write was over");
    soon("the write", write).await.unwrap().unwrap();
    let missed = switch
        .handle
        .call(|device, _| device.stats().dropped(device::DropReason::PacketInMissed));
    assert_eq!(missed.await.unwrap(), 0);
}

const MEMBERS: u32 = 4_000;
const VALUES: u16 = 1_000;
const CELLS: u32 = 1 << 20;

/// The test's program with a profile, a value set and a counter that hold as much as a client may put into one of them.
fn large_config() -> ForwardingPipelineConfig {
    let mut json: serde_json::Value = serde_json::from_slice(JSON).unwrap();
    json["pipelines"][0]["action_profiles"][1]["max_size"] = MEMBERS.into();
    json["parse_vsets"][0]["max_size"] = VALUES.into();
    json["counter_arrays"][1]["size"] = CELLS.into();
    let mut config = ForwardingPipelineConfig {
        p4_device_config: json.to_string().into_bytes().into(),
        ..config()
    };
    let info = config.p4info.as_mut().unwrap();
    info.action_profiles[1].size = MEMBERS.into();
    info.action_profiles[1].max_group_size = 0;
    info.value_sets[0].size = VALUES.into();
    info.counters[0].size = CELLS.into();
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_do_not_wait_for_profiles_value_sets_and_counters() {
    let switch = Switch::start().await;
    let (ids, mut primary) = (Ids::default(), switch.session().await);
    primary.become_primary(1).await;
    let done = primary.configure(ConfigAction::VerifyAndCommit, Some(large_config()));
    done.await.unwrap();
    let profile = ids.action_profiles("spread");
    let member = |id: u32| {
        Kind::ActionProfileMember(ActionProfileMember {
            action_profile_id: profile,
            member_id: id,
            action: Some(ids.call("forward", &[&[(id % 4) as u8 + 1]])),
        })
    };
    let group = |id: u32| {
        let members = (0..512).map(|n| Member {
            member_id: (id * 500 + n) % MEMBERS + 1,
            weight: 1 + n as i32 % 3,
            watch_kind: None,
        });
        Kind::ActionProfileGroup(ActionProfileGroup {
            action_profile_id: profile,
            group_id: id,
            members: members.collect(),
            max_size: 0,
        })
    };
    let values = |first: u16| {
        let members = (0..VALUES).map(|n| ValueSetMember {
            r#match: vec![exact(1, &(first + n).to_be_bytes())],
        });
        Kind::ValueSetEntry(ValueSetEntry {
            value_set_id: ids.value_sets("label_types"),
            members: members.collect(),
        })
    };
    let counters = || {
        Kind::CounterEntry(CounterEntry {
            counter_id: ids.counters("port_counter"),
            index: None,
            data: Some(CounterData {
                packet_count: 1,
                byte_count: 1,
            }),
        })
    };
    let mut shortest = [Duration::MAX; 4];
    for round in 0..5 {
        switch.longest_call();
        let all = (1..=MEMBERS).map(|id| update(Verb::Insert, member(id)));
        primary.write(all.collect()).await.unwrap();
        let of_members = switch.longest_call();
        for verb in [Verb::Insert, Verb::Modify] {
            let all = (1..64).map(|id| update(verb, group(id)));
            primary.write(all.collect()).await.unwrap();
        }
        let all = vec![
            Kind::ActionProfileMember(ActionProfileMember::default()),
            Kind::ActionProfileGroup(ActionProfileGroup::default()),
        ];
        let read = primary.read(all).await.unwrap();
        assert_eq!(read.len(), MEMBERS as usize + 63);
        let all = (1..64).map(|id| update(Verb::Delete, group(id)));
        primary.write(all.collect()).await.unwrap();
        let all = (1..=MEMBERS).map(|id| update(Verb::Delete, member(id)));
        primary.write(all.collect()).await.unwrap();
        let of_groups = switch.longest_call();
        let all = (0..8).map(|n| update(Verb::Modify, values(0x1000 + round * 8 + n)));
        primary.write(all.collect()).await.unwrap();
        let all = vec![Kind::ValueSetEntry(ValueSetEntry::default())];
        assert_eq!(
            primary.read(all).await.unwrap(),
            [values(0x1000 + round * 8 + 7)]
        );
        let of_values = switch.longest_call();
        let all = vec![update(Verb::Modify, counters())];
        primary.write(all).await.unwrap();
        let of_counters = switch.longest_call();
        let took = [of_members, of_groups, of_values, of_counters];
        println!("members, groups, value sets, counters: {took:?}");
        shortest
            .iter_mut()
            .zip(took)
            .for_each(|(s, t)| *s = t.min(*s));
    }
    assert!(shortest.iter().all(|t| *t < LONGEST_CALL), "{shortest:?}");
}

/// The others of its Write are made.
#[tokio::test]
async fn a_malformed_update_is_refused_by_itself() {
    let switch = Switch::start().await;
    let (ids, primary) = (Ids::default(), switch.primary().await);
    let good = encoded(&update(Verb::Insert, Kind::TableEntry(ids.exact(&[7], 2))));
    let cut_off = good.slice(..good.len() - 1);
    let request = WriteRequest {
        device_id: DEVICE_ID,
        election_id: id(primary.election_id),
        updates: vec![cut_off, good],
        ..WriteRequest::default()
    };
    let status = primary.client.clone().write(request).await.unwrap_err();
    let errors = errors(&status);
    let codes: Vec<Code> = errors.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [Code::InvalidArgument, Code::Ok]);
    assert!(
        errors[0].1.starts_with("the update is malformed: "),
        "{errors:?}"
    );
}
