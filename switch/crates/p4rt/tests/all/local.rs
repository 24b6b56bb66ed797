// SPDX-License-Identifier: Apache-2.0
//! P4Runtime without gRPC: the server's answers, at instants of virtual time.

use crate::common::*;
use crate::entities::profiles::{group, member, one_shot, points_to};
use device::{Device, DeviceConfig, Nanos, Packet, PortConfig, Transmit};
use p4rt::proto::p4rt::action_profile_group::member::WatchKind;
use p4rt::proto::p4rt::digest_entry::Config;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action as ConfigAction;
use p4rt::proto::p4rt::stream_message_request::Update as Outgoing;
use p4rt::proto::p4rt::stream_message_response::Update as Incoming;
use p4rt::proto::p4rt::table_action::Type as ActionType;
use p4rt::proto::p4rt::table_entry::IdleTimeout;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    CounterData, CounterEntry, DigestEntry, DigestList, DigestListAck, Entity,
    ForwardingPipelineConfig, Index, PacketMetadata, PacketOut, ReadRequest, RegisterEntry,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, TableEntry, Update, WriteRequest,
};
use p4rt::Local;
use prost::Message;
use tonic::{Code, Status};

const MS: Nanos = 1_000_000;

/// A device in virtual time with P4Runtime beside it; frames that leave are kept.
struct Bench {
    device: Device,
    local: Local,
    now: Nanos,
    sent: Frames,
}

#[derive(Default)]
struct Frames(Vec<(u32, Vec<u8>)>);

impl Transmit for Frames {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        self.0.push((port, packet.frame().to_vec()));
    }
}

impl Bench {
    fn without_program() -> Self {
        let mut device = Device::new(DeviceConfig::default());
        for port in 1..=4 {
            device.add_port(port, PortConfig::default()).unwrap();
        }
        Self {
            device,
            local: Local::new(Some(510)),
            now: 0,
            sent: Frames::default(),
        }
    }

    fn new() -> Self {
        let mut bench = Self::without_program();
        bench.configure(ConfigAction::VerifyAndCommit).unwrap();
        bench
    }

    fn configure(&mut self, action: ConfigAction) -> Result<(), Status> {
        let config = (action != ConfigAction::Commit).then(config);
        self.configure_with(action, config)
    }

    fn configure_with(
        &mut self,
        action: ConfigAction,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            action: action as i32,
            config,
            ..Default::default()
        };
        self.local.set_pipeline(&mut self.device, self.now, request)
    }

    fn write(&mut self, updates: Vec<Update>) -> Result<(), Status> {
        let request = WriteRequest {
            updates: updates.iter().map(encoded).collect(),
            ..Default::default()
        };
        self.local.write(&mut self.device, self.now, request)
    }

    fn insert(&mut self, kind: Kind) {
        self.write(vec![update(Verb::Insert, kind)]).unwrap();
    }

    fn read(&mut self, kinds: Vec<Kind>) -> Result<Vec<Kind>, Status> {
        let entities = kinds
            .into_iter()
            .map(|k| Entity { entity: Some(k) })
            .collect();
        let request = ReadRequest {
            entities,
            ..Default::default()
        };
        let responses = self.local.read(&mut self.device, self.now, request)?;
        let entities = responses.into_iter().flat_map(|r| r.entities);
        Ok(entities.filter_map(|e| e.entity).collect())
    }

    /// Time passes until `at`; what is due happens.
    fn until(&mut self, at: Nanos) {
        while let Some(due) = self.device.next_due().filter(|due| *due <= at) {
            self.device.advance(due, &mut self.sent);
        }
        self.device.advance(at, &mut self.sent);
        self.now = at;
    }

    fn receive(&mut self, at: Nanos, port: u32, frame: &[u8]) {
        self.until(at);
        self.device.receive(at, port, frame);
        self.device.advance(at, &mut self.sent);
    }

    fn messages(&mut self) -> Vec<Incoming> {
        let messages = self.local.messages(&mut self.device, self.now).unwrap();
        messages.into_iter().filter_map(|m| m.update).collect()
    }

    fn send(&mut self, message: Outgoing) {
        let message = StreamMessageRequest {
            update: Some(message),
        };
        self.local
            .send(&mut self.device, self.now, message)
            .unwrap();
    }

    fn digests_on(&mut self, max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> u32 {
        let digest_id = Ids::default().digests("learn_t");
        let config = Some(Config {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        });
        self.insert(Kind::DigestEntry(DigestEntry { digest_id, config }));
        digest_id
    }

    /// The ports by which the frames of eight sources leave that the selector's entry for kind 4 spreads; all must.
    fn spread(&mut self) -> Vec<u32> {
        self.messages(); // groups follow what ports tell
        self.sent.0.clear();
        for source in 0..8 {
            let mut frame = labelled(1, 1, 4);
            frame[11] = source;
            self.receive(self.now + MS, 1, &frame);
        }
        self.until(self.now + MS);
        assert_eq!(self.sent.0.len(), 8);
        let mut ports: Vec<u32> = self.sent.0.iter().map(|(port, _)| *port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// (timestamp, samples) of all messages, which must be digest lists.
    fn lists(&mut self) -> Vec<DigestList> {
        let list = |message| match message {
            Incoming::Digest(list) => list,
            other => panic!("not a digest list: {other:?}"),
        };
        self.messages().into_iter().map(list).collect()
    }
}

/// A frame from this source that the program learns.
fn learnable(source: u8) -> Vec<u8> {
    let mut frame = labelled(1, 1, 15);
    frame[11] = source;
    frame
}

fn counter(counter_id: u32, index: i64, packet_count: i64) -> Kind {
    Kind::CounterEntry(CounterEntry {
        counter_id,
        index: Some(Index { index }),
        data: Some(CounterData {
            packet_count,
            byte_count: 0,
        }),
    })
}

#[test]
fn without_a_program_the_server_s_words_are_said() {
    let mut bench = Bench::without_program();
    for status in [
        bench.write(vec![]).unwrap_err(),
        bench.read(vec![]).unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status
            .message()
            .starts_with("No forwarding pipeline config"));
    }
    let status = bench.configure(ConfigAction::Commit).unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[test]
fn what_is_written_is_read_and_forwards() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let dst = [2, 0, 0, 0, 0, 5];
    let entry = ids.exact(&dst, 3);
    bench.insert(Kind::TableEntry(entry.clone()));
    let ask = TableEntry {
        table_id: entry.table_id,
        ..Default::default()
    };
    assert_eq!(
        bench.read(vec![Kind::TableEntry(ask)]).unwrap(),
        [Kind::TableEntry(entry)]
    );
    bench.receive(MS, 1, &frame(dst, 0x800, b"x"));
    bench.until(2 * MS);
    assert_eq!(bench.sent.0, [(3, frame(dst, 0x800, b"x"))]);
}

#[test]
fn long_writes_and_reads_are_whole() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let register_id = ids.registers("cells"); // 5000 cells: more than one slice
    let value = |value: u8| {
        let data = p4rt::proto::p4rt::p4_data::Data::Bitstring(vec![value].into());
        Some(p4rt::proto::p4rt::P4Data { data: Some(data) })
    };
    let all = |data| {
        Kind::RegisterEntry(RegisterEntry {
            register_id,
            index: None,
            data,
        })
    };
    bench
        .write(vec![update(Verb::Modify, all(value(9)))])
        .unwrap();
    let cells = bench.read(vec![all(None)]).unwrap();
    assert_eq!(cells.len(), 5000);
    let nine = |k: &Kind| matches!(k, Kind::RegisterEntry(r) if r.data == value(9));
    assert!(cells.iter().all(nine));
    let entries = (0..3000u16).map(|i| {
        let [high, low] = i.to_be_bytes();
        update(
            Verb::Insert,
            Kind::TableEntry(ids.exact(&[2, 0, 0, 0, high + 1, low], 2)),
        )
    });
    bench.write(entries.collect()).unwrap();
    let ask = TableEntry {
        table_id: ids.tables("exact_table"),
        ..Default::default()
    };
    assert_eq!(bench.read(vec![Kind::TableEntry(ask)]).unwrap().len(), 3000);
}

/// The same batch to the server and here gives the same status, to the byte.
#[tokio::test]
async fn errors_are_the_server_s() {
    let switch = Switch::start().await;
    let (ids, mut client, mut bench) = (Ids::default(), switch.primary().await, Bench::new());
    let id = ids.counters("port_counter");
    let batch = vec![
        update(Verb::Modify, counter(id, 3, 1)),
        update(Verb::Modify, counter(id, 64, 1)),
        update(Verb::Insert, counter(id, 3, 1)),
        update(
            Verb::Delete,
            Kind::TableEntry(ids.exact(&[2, 0, 0, 0, 0, 5], 2)),
        ),
        update(
            Verb::Insert,
            Kind::TableEntry(ids.exact(&[2, 0, 0, 0, 0, 5], 2)),
        ),
    ];
    let there = client.write(batch.clone()).await.unwrap_err();
    let here = bench.write(batch).unwrap_err();
    assert_eq!(errors(&here).iter().filter(|e| e.0 != Code::Ok).count(), 3);
    assert_eq!(
        (here.code(), here.message(), here.details()),
        (there.code(), there.message(), there.details())
    );
    let ask = vec![counter(id, 64, 0), counter(id, 3, 0)];
    let there = client.read(ask.clone()).await.unwrap_err();
    let here = bench.read(ask).unwrap_err();
    assert_eq!(
        (here.code(), here.message(), here.details()),
        (there.code(), there.message(), there.details())
    );
}

#[test]
fn a_saved_config_is_committed_and_state_is_reconciled() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let id = ids.counters("port_counter");
    bench.configure(ConfigAction::VerifyAndSave).unwrap();
    bench
        .write(vec![update(Verb::Modify, counter(id, 1, 5))])
        .unwrap();
    bench.configure(ConfigAction::Commit).unwrap();
    bench.configure(ConfigAction::ReconcileAndCommit).unwrap();
    assert_eq!(
        bench.read(vec![counter(id, 1, 0)]).unwrap(),
        [counter(id, 1, 5)]
    );
    bench.configure(ConfigAction::VerifyAndCommit).unwrap();
    assert_eq!(
        bench.read(vec![counter(id, 1, 0)]).unwrap(),
        [counter(id, 1, 0)]
    );
}

/// The next program has the profile of a one-shot in another place, or not at all.
#[test]
fn a_one_shot_finds_its_profile_in_the_next_program() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let entry = |ports: &[u8]| points_to(&ids, "selector_table", 4, one_shot(&ids, ports));
    bench.insert(entry(&[2, 3]));
    let swapped = with_json(|json| {
        let profiles = json["pipelines"][0]["action_profiles"].as_array_mut();
        profiles.unwrap().swap(0, 1);
    });
    let reconcile = ConfigAction::ReconcileAndCommit;
    bench.configure_with(reconcile, Some(swapped)).unwrap();
    let delete = vec![update(Verb::Delete, entry(&[]))];
    bench.write(delete).unwrap();
    bench.insert(entry(&[2, 3]));
    let without = Some(errors_config());
    bench.configure_with(reconcile, without).unwrap();
    bench.device.set_port_up(2, false);
    assert_eq!(bench.messages(), []);
}

#[test]
fn a_group_has_its_members_also_while_their_ports_are_down() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let mut pair = group(&ids, 1, &[(1, 1), (2, 1)]);
    for (own, port) in pair.members.iter_mut().zip([2, 3]) {
        bench.insert(member(&ids, "spread", own.member_id, port));
        own.watch_kind = Some(WatchKind::WatchPort(vec![0, port].into()));
    }
    bench.insert(Kind::ActionProfileGroup(pair.clone()));
    for (own, port) in pair.members.iter_mut().zip([2, 3]) {
        own.watch_kind = Some(WatchKind::WatchPort(vec![port].into()));
    }
    let pair = Kind::ActionProfileGroup(pair);
    assert_eq!(bench.read(vec![pair.clone()]).unwrap(), [pair]);
    let to = ActionType::ActionProfileGroupId(1);
    bench.insert(points_to(&ids, "selector_table", 4, to));
    assert_eq!(bench.spread(), [2, 3]);
    bench.device.set_port_up(3, false);
    assert_eq!(bench.spread(), [2]);
    let delete = update(Verb::Delete, member(&ids, "spread", 2, 3));
    let status = bench.write(vec![delete]).unwrap_err();
    assert_eq!(errors(&status)[0].0, Code::FailedPrecondition);
    bench.configure(ConfigAction::ReconcileAndCommit).unwrap();
    assert_eq!(bench.spread(), [2]);
    bench.device.set_port_up(3, true);
    assert_eq!(bench.spread(), [2, 3]);
}

#[test]
fn a_digest_list_is_due_at_its_instant() {
    let mut bench = Bench::new();
    bench.digests_on(5 * MS as i64, 0, 0);
    bench.receive(7 * MS, 3, &learnable(1));
    assert!(bench.messages().is_empty());
    assert_eq!(bench.local.next_due(), Some(12 * MS));
    bench.receive(9 * MS, 3, &learnable(2));
    bench.until(12 * MS - 1);
    assert!(bench.messages().is_empty());
    bench.until(12 * MS);
    bench
        .local
        .take_events(&mut bench.device, bench.now)
        .unwrap();
    assert!(bench.local.has_messages());
    let lists = bench.lists();
    assert_eq!((lists.len(), lists[0].data.len()), (1, 2));
    assert_eq!(lists[0].timestamp, 12 * MS as i64);
    assert_eq!(bench.local.next_due(), None);
}

#[test]
fn it_does_not_matter_when_digests_are_looked_at() {
    let run = |look_each_time: bool| {
        let mut bench = Bench::new();
        bench.digests_on(5 * MS as i64, 3, 20 * MS as i64);
        let mut lists = Vec::new();
        for (at, source) in [
            (1, 1),
            (2, 2),
            (7, 3),
            (7, 4),
            (7, 5),
            (9, 1),
            (21, 2),
            (22, 3),
            (28, 1),
            (40, 9),
        ] {
            bench.receive(at * MS, 3, &learnable(source));
            if look_each_time {
                lists.extend(bench.lists());
            }
        }
        bench.until(100 * MS);
        lists.extend(bench.lists());
        lists
    };
    let (often, once) = (run(true), run(false));
    assert_eq!(often, once);
    let shape: Vec<_> = once
        .iter()
        .map(|l| (l.list_id, l.timestamp / MS as i64, l.data.len()))
        .collect();
    // 1 and 2 wait 5 ms from 1; 3, 4, 5 fill a list; what was not acknowledged within 20 ms is reported again.
    assert_eq!(shape, [(1, 6, 2), (2, 7, 3), (3, 33, 1), (4, 45, 1)]);
}

#[test]
fn an_acknowledged_sample_is_told_again() {
    let mut bench = Bench::new();
    let digest_id = bench.digests_on(0, 1, 1000 * MS as i64);
    bench.receive(MS, 3, &learnable(1));
    let list_id = bench.lists()[0].list_id;
    bench.receive(2 * MS, 3, &learnable(1));
    assert!(bench.messages().is_empty());
    bench.receive(3 * MS, 3, &learnable(1)); // before the acknowledgement: not told, though it is looked at after
    bench.send(Outgoing::DigestAck(DigestListAck { digest_id, list_id }));
    assert!(bench.messages().is_empty());
    bench.receive(4 * MS, 3, &learnable(1));
    assert_eq!(bench.lists().len(), 1);
}

#[test]
fn more_digests_than_a_stream_holds_are_all_told() {
    let mut bench = Bench::new();
    bench.digests_on(0, 1, 0);
    for i in 0..6000 {
        bench.receive(i, 3, &learnable(1));
    }
    assert_eq!(bench.lists().len(), 6000);
}

/// Who takes no events finds the entries that are idle, and not each of them a hundred times.
#[test]
fn idle_entries_that_nobody_hears_of_stay_due() {
    let mut bench = Bench::new();
    let ids = Ids::default();
    let entry = |n: u32| TableEntry {
        idle_timeout_ns: 1_000_000,
        ..ids.exact(&n.to_be_bytes(), 2)
    };
    let entries = (1..=12_000).map(|n| update(Verb::Insert, Kind::TableEntry(entry(n))));
    bench.write(entries.collect()).unwrap();
    let told = |bench: &mut Bench, calls: u64| {
        for _ in 0..calls {
            bench.now += 100 * MS;
            bench.device.advance(bench.now, &mut bench.sent);
        }
        let mut events = Vec::new();
        bench.device.take_events(&mut events);
        events.len()
    };
    // A call looks at 1,024 alarms.
    let most = DeviceConfig::default().events_max;
    let first = told(&mut bench, 100);
    assert!((most..most + 1_024).contains(&first), "{first}");
    assert!(
        told(&mut bench, 100) >= most,
        "they are told when there is room again"
    );
}

#[test]
fn an_idle_entry_is_told_at_its_time() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let entry = TableEntry {
        idle_timeout_ns: 2_000_000_000,
        metadata: b"flow 5".as_slice().into(),
        ..ids.exact(&[2, 0, 0, 0, 0, 5], 2)
    };
    bench.insert(Kind::TableEntry(entry.clone()));
    bench.receive(1_000 * MS, 1, &frame([2, 0, 0, 0, 0, 5], 0x800, b"x"));
    bench.until(2_950 * MS);
    assert!(bench.messages().is_empty());
    while bench.messages().is_empty() && bench.now < 4_000 * MS {
        let next = bench.now + 10 * MS;
        bench.until(next);
        let mut told = bench.messages();
        if let Some(Incoming::IdleTimeoutNotification(note)) = told.pop() {
            assert_eq!(note.table_entry, [entry]);
            // Looked for each 100 ms.
            assert!((3_000..=3_110).contains(&(bench.now / MS)), "{}", bench.now);
            assert_eq!(note.timestamp, bench.now as i64);
            return;
        }
    }
    panic!("no idle timeout");
}

#[test]
fn entries_of_a_saved_config_age_from_its_commit_on() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    bench.until(10_000 * MS);
    bench.configure(ConfigAction::VerifyAndSave).unwrap();
    let mut entry = TableEntry {
        idle_timeout_ns: 2_000 * MS as i64,
        ..ids.exact(&[5], 2)
    };
    bench.insert(Kind::TableEntry(entry.clone()));
    bench.configure(ConfigAction::Commit).unwrap();
    bench.until(11_000 * MS);
    assert_eq!(bench.messages(), []);
    let elapsed_ns = 1_000 * MS as i64;
    entry.time_since_last_hit = Some(IdleTimeout { elapsed_ns });
    let read = bench.read(vec![Kind::TableEntry(entry.clone())]).unwrap();
    assert_eq!(read, [Kind::TableEntry(entry)]);
    bench.until(12_200 * MS);
    assert_eq!(bench.messages().len(), 1);
}

#[test]
fn idle_entries_are_told_in_messages_that_clients_take() {
    let (ids, mut bench) = (Ids::default(), Bench::new());
    let entry = |n: u32| TableEntry {
        idle_timeout_ns: MS as i64,
        metadata: vec![1; 4_096].into(),
        ..ids.exact(&n.to_be_bytes(), 2)
    };
    let entries = (1..=1_024).map(|n| update(Verb::Insert, Kind::TableEntry(entry(n))));
    bench.write(entries.collect()).unwrap();
    bench.until(150 * MS);
    let mut told = 0;
    for message in bench.messages() {
        let Incoming::IdleTimeoutNotification(note) = message else {
            panic!("{message:?}");
        };
        assert!(note.encoded_len() < 2 << 20);
        told += note.table_entry.len();
    }
    assert_eq!(told, 1_024);
}

#[test]
fn packets_go_out_and_come_in() {
    let mut bench = Bench::new();
    let meta = |metadata_id, value: u8| PacketMetadata {
        metadata_id,
        value: vec![value].into(),
    };
    let payload = frame([2, 0, 0, 0, 0, 1], 0x800, b"out");
    let packet = |metadata| {
        Outgoing::Packet(PacketOut {
            payload: payload.clone().into(),
            metadata,
        })
    };
    bench.send(packet(vec![meta(1, 3), meta(2, 0)]));
    bench.until(MS);
    assert_eq!(bench.sent.0, [(3, payload.clone())]);
    bench.send(packet(vec![meta(1, 3), meta(7, 0)]));
    match bench.messages().as_slice() {
        [Incoming::Error(e)] => assert_eq!(
            e.message,
            "metadata id 0x7 is unknown; known: 0x1 egress_port, 0x2 _pad"
        ),
        other => panic!("no stream error: {other:?}"),
    }
    let lldp = frame([1, 0x80, 0xc2, 0, 0, 0x0e], 0x88cc, b"hello");
    bench.receive(2 * MS, 2, &lldp);
    bench.until(3 * MS);
    match bench.messages().as_slice() {
        [Incoming::Packet(p)] => assert_eq!((&p.payload[..], p.metadata.len()), (&lldp[..], 2)),
        other => panic!("no packet-in: {other:?}"),
    }
}

#[test]
fn the_caller_is_always_primary() {
    let mut bench = Bench::without_program();
    bench.send(hello(99, "somebody", None));
    match bench.messages().as_slice() {
        [Incoming::Arbitration(m)] => assert_eq!(m.status.as_ref().unwrap().code, Code::Ok as i32),
        other => panic!("no answer: {other:?}"),
    }
    bench.configure(ConfigAction::VerifyAndCommit).unwrap();
}
