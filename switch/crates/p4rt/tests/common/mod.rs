// SPDX-License-Identifier: Apache-2.0
//! A switch in virtual time behind a real gRPC server on loopback, and a small client, for the server's tests.
#![allow(dead_code)] // each test binary uses its part

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc as std_mpsc, Arc, Mutex};
use std::time::Duration;

use device::{Device, DeviceConfig, DeviceHandle, Nanos, Packet, PortConfig, Transmit};
use p4rt::proto::p4info::P4Info;
use p4rt::proto::p4info_from_text;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use p4rt::proto::p4rt::p4_runtime_client::P4RuntimeClient;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action as ConfigAction;
use p4rt::proto::p4rt::stream_message_request::Update as Outgoing;
use p4rt::proto::p4rt::stream_message_response::Update as Incoming;
use p4rt::proto::p4rt::table_action::Type as ActionType;
use p4rt::proto::p4rt::update::Type as Verb;
use p4rt::proto::p4rt::{
    action::Param, Action, Entity, Error, FieldMatch, ForwardingPipelineConfig,
    MasterArbitrationUpdate, ReadRequest, Role, SetForwardingPipelineConfigRequest,
    StreamMessageRequest, StreamMessageResponse, TableAction, TableEntry, Uint128, Update,
    WriteRequest,
};
use p4rt::{Limits, Server, ServerOptions};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

pub const JSON: &[u8] = include_bytes!("../p4/entities.json");
pub const P4INFO: &str = include_str!("../p4/entities.p4info.txtpb");
pub const DEVICE_ID: u64 = 7;
/// Every wait ends after this.
pub const LIMIT: Duration = Duration::from_secs(20);

/// As a Write has it.
pub fn encoded(update: &Update) -> bytes::Bytes {
    update.encode_to_vec().into()
}

/// Waits with a time limit.
pub async fn soon<F: std::future::Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: nothing within {LIMIT:?}"))
}

/// The switch under test; its thread ends with it.
pub struct Switch {
    pub addr: std::net::SocketAddr,
    pub handle: DeviceHandle,
    clock: Arc<AtomicU64>,
    sent: Arc<Mutex<Frames>>,
    stop: Arc<AtomicBool>,
    wake: std_mpsc::Sender<()>,
    longest: Arc<AtomicU64>,
}

/// The time that this thread has run, in nanoseconds: it does not go on while the machine does something else.
fn own_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Frames that left, with their ports.
type Frames = Vec<(u32, Vec<u8>)>;

struct Collect(Arc<Mutex<Frames>>);

impl Transmit for Collect {
    fn transmit(&mut self, port: u32, packet: &mut Packet, _at: Nanos) {
        self.0.lock().unwrap().push((port, packet.frame().to_vec()));
    }
}

impl Switch {
    /// Ports 1 to 4 and the CPU port; no program yet.
    pub async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub async fn start_with(limits: Limits) -> Self {
        let clock = Arc::new(AtomicU64::new(1_000_000_000));
        let (wake, woken) = std_mpsc::channel();
        let waker = Mutex::new(wake.clone());
        let (handle, mut calls) = DeviceHandle::new(move || {
            let _ = waker.lock().unwrap().send(());
        });
        let (events, events_end) = mpsc::channel(1024);
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (thread_stop, thread_clock, collect) =
            (stop.clone(), clock.clone(), Collect(Arc::clone(&sent)));
        let longest = Arc::new(AtomicU64::new(0));
        let watchdog = longest.clone();
        std::thread::spawn(move || {
            let mut device = Device::new(DeviceConfig::default());
            for port in 1..=4 {
                device.add_port(port, PortConfig::default()).unwrap();
            }
            let mut collect = collect;
            while !thread_stop.load(Ordering::Relaxed) {
                let _ = woken.recv_timeout(Duration::from_millis(50));
                loop {
                    let begun = own_time();
                    if !calls.run_one(&mut device, |_| thread_clock.load(Ordering::Relaxed)) {
                        break;
                    }
                    watchdog.fetch_max(own_time() - begun, Ordering::Relaxed);
                }
                device.advance(thread_clock.load(Ordering::Relaxed), &mut collect);
                let mut batch = Vec::new();
                device.take_events(&mut batch);
                if !batch.is_empty() {
                    let _ = events.blocking_send(batch);
                }
            }
        });
        let options = ServerOptions {
            addr: "127.0.0.1:0".parse().unwrap(),
            device_id: DEVICE_ID,
            cpu_port: Some(510),
            program_bytes: v1model::BUDGET_BYTES,
        };
        let server = Server::bind(options, handle.clone(), events_end);
        let mut server = server.await.unwrap();
        server.limits = limits;
        let addr = server.local_addr();
        tokio::spawn(server.run(std::future::pending()));
        Self {
            addr,
            handle,
            clock,
            sent,
            stop,
            wake,
            longest,
        }
    }

    /// The longest that packets had to wait for a call since this was asked last: time that the thread really ran.
    pub fn longest_call(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }

    /// A frame comes in.
    pub async fn receive(&self, port: u32, frame: Vec<u8>) {
        self.handle
            .call(move |device, now| device.receive(now, port, &frame))
            .await
            .unwrap();
    }

    /// Virtual time passes.
    pub fn pass(&self, ns: u64) {
        self.clock.fetch_add(ns, Ordering::Relaxed);
        let _ = self.wake.send(());
    }

    /// The next frame that left, with its port.
    pub async fn sent(&self) -> (u32, Vec<u8>) {
        soon("a frame from the switch", async {
            loop {
                let first = {
                    let mut sent = self.sent.lock().unwrap();
                    (!sent.is_empty()).then(|| sent.remove(0))
                };
                if let Some(first) = first {
                    return first;
                }
                self.pass(1_000);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
    }

    /// Is anything still to be collected, once the device has had its turn?
    pub async fn sent_nothing(&self) -> bool {
        self.pass(1_000_000);
        self.handle.call(|_, _| ()).await.unwrap();
        self.handle.call(|_, _| ()).await.unwrap();
        self.sent.lock().unwrap().is_empty()
    }

    pub async fn connect(&self) -> P4RuntimeClient<Channel> {
        let client = P4RuntimeClient::connect(format!("http://{}", self.addr))
            .await
            .unwrap();
        client.max_decoding_message_size(64 << 20)
    }

    /// A client with an open stream that has not said anything yet.
    pub async fn session(&self) -> Session {
        let mut client = self.connect().await;
        let (tx, rx) = mpsc::channel(64);
        let incoming = client
            .stream_channel(ReceiverStream::new(rx))
            .await
            .unwrap()
            .into_inner();
        Session {
            client,
            tx,
            incoming,
            election_id: 0,
            role: String::new(),
        }
    }

    /// A client that is primary with election id 1, with the program loaded.
    pub async fn primary(&self) -> Session {
        let mut session = self.session().await;
        session.become_primary(1).await;
        session.load().await;
        session
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.send(());
    }
}

/// One client.
pub struct Session {
    pub client: P4RuntimeClient<Channel>,
    pub tx: mpsc::Sender<StreamMessageRequest>,
    pub incoming: Streaming<StreamMessageResponse>,
    pub election_id: u64,
    pub role: String,
}

pub fn id(low: u64) -> Option<Uint128> {
    Some(Uint128 { high: 0, low })
}

pub fn hello(device_id: u64, role: &str, election_id: Option<u64>) -> Outgoing {
    Outgoing::Arbitration(MasterArbitrationUpdate {
        device_id,
        role: (!role.is_empty()).then(|| Role {
            name: role.into(),
            ..Default::default()
        }),
        election_id: election_id.and_then(id),
        status: None,
    })
}

impl Session {
    pub async fn send(&self, update: Outgoing) {
        self.tx
            .send(StreamMessageRequest {
                update: Some(update),
            })
            .await
            .unwrap();
    }

    /// The next message of the stream, or the status that ends it.
    pub async fn next(&mut self) -> Result<Incoming, Status> {
        let message = soon("a stream message", self.incoming.message()).await?;
        Ok(message.expect("the stream has ended").update.unwrap())
    }

    /// Status code and election id of the next message, which must be about arbitration.
    pub async fn arbitration(&mut self) -> (Code, Option<u64>) {
        match self.next().await.unwrap() {
            Incoming::Arbitration(m) => {
                assert_eq!(m.device_id, DEVICE_ID);
                (
                    Code::from(m.status.unwrap().code),
                    m.election_id.map(|i| i.low),
                )
            }
            other => panic!("not about arbitration: {other:?}"),
        }
    }

    pub async fn become_primary(&mut self, election_id: u64) {
        self.election_id = election_id;
        self.send(hello(DEVICE_ID, &self.role.clone(), Some(election_id)))
            .await;
        assert_eq!(self.arbitration().await, (Code::Ok, Some(election_id)));
    }

    pub async fn configure(
        &mut self,
        action: ConfigAction,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE_ID,
            election_id: id(self.election_id),
            role: self.role.clone(),
            action: action as i32,
            config,
            ..Default::default()
        };
        soon(
            "the config",
            self.client.set_forwarding_pipeline_config(request),
        )
        .await
        .map(drop)
    }

    pub async fn load(&mut self) {
        self.configure(ConfigAction::VerifyAndCommit, Some(config()))
            .await
            .unwrap();
    }

    pub async fn write(&mut self, updates: Vec<Update>) -> Result<(), Status> {
        let request = WriteRequest {
            device_id: DEVICE_ID,
            election_id: id(self.election_id),
            role: self.role.clone(),
            updates: updates.iter().map(encoded).collect(),
            ..Default::default()
        };
        soon("the write", self.client.write(request))
            .await
            .map(drop)
    }

    /// Writes one entity; the error is the update's own.
    pub async fn one(&mut self, verb: Verb, kind: Kind) -> Result<(), (Code, String)> {
        let status = match self.write(vec![update(verb, kind)]).await {
            Ok(()) => return Ok(()),
            Err(status) => status,
        };
        assert_eq!(status.code(), Code::Unknown, "{status:?}");
        let mut errors = errors(&status);
        assert_eq!(errors.len(), 1);
        Err(errors.remove(0))
    }

    pub async fn insert(&mut self, kind: Kind) -> Result<(), (Code, String)> {
        self.one(Verb::Insert, kind).await
    }

    pub async fn modify(&mut self, kind: Kind) -> Result<(), (Code, String)> {
        self.one(Verb::Modify, kind).await
    }

    pub async fn delete(&mut self, kind: Kind) -> Result<(), (Code, String)> {
        self.one(Verb::Delete, kind).await
    }

    pub async fn read(&mut self, kinds: Vec<Kind>) -> Result<Vec<Kind>, Status> {
        let request = ReadRequest {
            device_id: DEVICE_ID,
            entities: kinds
                .into_iter()
                .map(|k| Entity { entity: Some(k) })
                .collect(),
            ..Default::default()
        };
        let mut stream = soon("the read", self.client.read(request))
            .await?
            .into_inner();
        let mut entities = Vec::new();
        while let Some(message) = soon("a read response", stream.message()).await? {
            assert!(message.entities.len() <= 1024);
            assert!(message.encoded_len() < 4 << 20);
            entities.extend(message.entities.into_iter().map(|e| e.entity.unwrap()));
        }
        Ok(entities)
    }
}

pub fn update(verb: Verb, kind: Kind) -> Update {
    Update {
        r#type: verb as i32,
        entity: Some(Entity { entity: Some(kind) }),
    }
}

/// (code, text) of each update in a batch's status.
pub fn errors(status: &Status) -> Vec<(Code, String)> {
    let details = p4rt::proto::rpc::Status::decode(status.details()).unwrap();
    assert_eq!(details.code, status.code() as i32);
    assert_eq!(details.message, status.message());
    let decode = |any: prost_types::Any| {
        assert!(any.type_url.ends_with("/p4.v1.Error"), "{}", any.type_url);
        let error = Error::decode(any.value.as_slice()).unwrap();
        (Code::from(error.canonical_code), error.message)
    };
    details.details.into_iter().map(decode).collect()
}

pub fn config() -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(p4info_from_text(P4INFO).unwrap()),
        p4_device_config: JSON.into(),
        cookie: Some(p4rt::proto::p4rt::forwarding_pipeline_config::Cookie {
            cookie: 0xfeed_beef,
        }),
    }
}

/// A config whose JSON is that of the test's program after `change`.
pub fn with_json(change: impl FnOnce(&mut serde_json::Value)) -> ForwardingPipelineConfig {
    let mut json = serde_json::from_slice(JSON).unwrap();
    change(&mut json);
    ForwardingPipelineConfig {
        p4_device_config: json.to_string().into_bytes().into(),
        ..config()
    }
}

/// A config with the test's P4Info after `change`.
pub fn with_info(change: impl FnOnce(&mut P4Info)) -> ForwardingPipelineConfig {
    let mut config = config();
    change(config.p4info.as_mut().unwrap());
    config
}

/// A config of another program, which has no action profiles.
pub fn errors_config() -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(p4info_from_text(include_str!("../p4/errors.p4info.txtpb")).unwrap()),
        p4_device_config: include_bytes!("../p4/errors.json").as_slice().into(),
        cookie: None,
    }
}

/// P4Info ids by alias.
pub struct Ids(pub P4Info);

impl Default for Ids {
    fn default() -> Self {
        Self(p4info_from_text(P4INFO).unwrap())
    }
}

macro_rules! ids {
    ($($name:ident),*) => {$(
        pub fn $name(&self, alias: &str) -> u32 {
            let found = self.0.$name.iter().filter_map(|o| o.preamble.as_ref()).find(|p| p.alias == alias);
            found.unwrap_or_else(|| panic!("no {alias} in {}", stringify!($name))).id
        }
    )*};
}

impl Ids {
    ids!(
        tables,
        actions,
        action_profiles,
        counters,
        meters,
        registers,
        digests,
        value_sets
    );

    /// A call with the parameters in order.
    pub fn call(&self, alias: &str, args: &[&[u8]]) -> Action {
        let params = (1..)
            .zip(args)
            .map(|(param_id, v)| Param {
                param_id,
                value: v.to_vec().into(),
            })
            .collect();
        Action {
            action_id: self.actions(alias),
            params,
        }
    }

    pub fn action(&self, alias: &str, args: &[&[u8]]) -> Option<TableAction> {
        Some(TableAction {
            r#type: Some(ActionType::Action(self.call(alias, args))),
        })
    }

    /// An entry of the exact table: this destination goes to this port.
    pub fn exact(&self, dst_addr: &[u8], port: u8) -> TableEntry {
        TableEntry {
            table_id: self.tables("exact_table"),
            r#match: vec![exact(1, dst_addr)],
            action: self.action("measure", &[&[port]]),
            ..Default::default()
        }
    }
}

fn field(field_id: u32, kind: FieldMatchType) -> FieldMatch {
    FieldMatch {
        field_id,
        field_match_type: Some(kind),
    }
}

pub fn exact(id: u32, value: &[u8]) -> FieldMatch {
    field(
        id,
        FieldMatchType::Exact(Exact {
            value: value.to_vec().into(),
        }),
    )
}

pub fn lpm(id: u32, value: &[u8], prefix_len: i32) -> FieldMatch {
    field(
        id,
        FieldMatchType::Lpm(Lpm {
            value: value.to_vec().into(),
            prefix_len,
        }),
    )
}

pub fn ternary(id: u32, value: &[u8], mask: &[u8]) -> FieldMatch {
    field(
        id,
        FieldMatchType::Ternary(Ternary {
            value: value.to_vec().into(),
            mask: mask.to_vec().into(),
        }),
    )
}

pub fn range(id: u32, low: &[u8], high: &[u8]) -> FieldMatch {
    field(
        id,
        FieldMatchType::Range(Range {
            low: low.to_vec().into(),
            high: high.to_vec().into(),
        }),
    )
}

pub fn optional(id: u32, value: &[u8]) -> FieldMatch {
    field(
        id,
        FieldMatchType::Optional(Optional {
            value: value.to_vec().into(),
        }),
    )
}

/// An Ethernet frame; kind 0x1234 is followed by a label.
pub fn frame(dst: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = dst.to_vec();
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A frame with a label: value, 12 bits, 4 bits.
pub fn labelled(value: u32, small: u16, kind: u8) -> Vec<u8> {
    let mut payload = value.to_be_bytes().to_vec();
    payload.extend((small << 4 | u16::from(kind)).to_be_bytes());
    frame([2, 0, 0, 0, 0, 1], 0x1234, &payload)
}
