// SPDX-License-Identifier: Apache-2.0
//! The bytes of one request, given to a server of P4Runtime and gNMI over a real connection: whatever they are, and whoever
//! sends them, a request of N bytes takes at most 20 N + 16 MiB of memory, its client's part included.
//!
//! A document names the call and lists fields: `{"n": 4, "of": […], "times": 9}` a message, `varint` a number, `text`,
//! `zeros` so many bytes of 0 (a packed list), `group`.

use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::time::Duration;

use device::DeviceHandle;
use p4rt::proto::descriptors;
use p4rt::proto::p4rt::p4_runtime_client::P4RuntimeClient;
use p4rt::proto::p4rt::{SetForwardingPipelineConfigRequest, StreamMessageRequest};
use p4rt::{Server, ServerOptions};
use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{encode_key, encode_varint, skip_field, DecodeContext, WireType};
use prost::DecodeError;
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{json, Value};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::{wrappers::ReceiverStream, StreamExt};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::switch::{self, CPU_PORT};
use super::{seeds, Base, Outcome, Target};
use crate::memory;

/// Longest request that a document becomes.
const MOST: usize = 1 << 20;
/// A call that is not over by then is left: its client goes.
const LIMIT: Duration = Duration::from_millis(500);
/// A call that must be answered.
pub const LONG: Duration = Duration::from_secs(60);
pub const WRITE: &str = "/p4.v1.P4Runtime/Write";
const DEVICE_ID: u64 = 1;
const ELECTION_ID: u64 = 1;

/// What is granted of leaves has a bound of its own.
const LEAVES: usize = 256 << 20;

/// What a request of so many bytes may take.
fn bound(bytes: usize) -> usize {
    20 * bytes + (16 << 20)
}

/// All calls by their paths, with the types of their messages; those of our own service take `google.protobuf.Struct`.
fn calls() -> Vec<(String, Option<MessageDescriptor>)> {
    let pool = descriptors();
    let mut calls = Vec::new();
    for service in pool.services() {
        let path = |name: &str| format!("/{}/{name}", service.full_name());
        let methods = service.methods();
        calls.extend(methods.map(|method| (path(method.name()), Some(method.input()))));
    }
    calls.extend(["Trace", "TraceLive"].map(|name| (format!("/fairlane.v1.Switch/{name}"), None)));
    calls
}

pub fn target() -> Target {
    let (server, calls) = (TestServer::start(), calls());
    Target::new(bases(&calls), move |document| {
        let call = document["call"].as_str().unwrap_or_default();
        let is_known = calls.iter().any(|(path, _)| path == call);
        let path = if is_known { call } else { WRITE };
        run(&server, path, &document)
    })
}

fn run(server: &TestServer, path: &str, document: &Value) -> Outcome {
    // Longer ones are refused for that alone.
    let most = match path.rsplit('/').next() {
        Some("Write" | "SetForwardingPipelineConfig" | "Get" | "Set" | "Subscribe") => MOST,
        Some("Read" | "StreamChannel") => 256 << 10,
        Some("Trace" | "TraceLive") => 64 << 10,
        _ => 4 << 10,
    };
    let is_primary = document["primary"] == true;
    let mut message = if is_primary { sender() } else { Vec::new() };
    build(&document["fields"], &mut message, most);
    server.call(path, message.into(), LIMIT).map(drop)
}

/// device_id and election_id of the primary, in the two calls that change the switch.
pub fn sender() -> Vec<u8> {
    vec![0x08, DEVICE_ID as u8, 0x1a, 2, 0x10, ELECTION_ID as u8]
}

/// Appends fields, as far as there is room.
fn build(fields: &Value, out: &mut Vec<u8>, most: usize) {
    for field in fields.as_array().into_iter().flatten() {
        let number = field["n"].as_u64().unwrap_or(1).clamp(1, (1 << 29) - 1) as u32;
        let (mut one, mut inner) = (Vec::new(), Vec::new());
        let room = most.saturating_sub(out.len());
        if let Some(value) = field["varint"].as_u64() {
            encode_key(number, WireType::Varint, &mut one);
            encode_varint(value, &mut one);
        } else if field["group"].is_array() {
            encode_key(number, WireType::StartGroup, &mut one);
            build(&field["group"], &mut one, room);
            encode_key(number, WireType::EndGroup, &mut one);
        } else {
            build(&field["of"], &mut inner, room);
            inner.extend(field["text"].as_str().unwrap_or_default().bytes());
            let zeros = field["zeros"].as_u64().unwrap_or(0).min(room as u64);
            inner.resize(inner.len() + zeros as usize, 0);
            encode_key(number, WireType::LengthDelimited, &mut one);
            encode_varint(inner.len() as u64, &mut one);
            one.append(&mut inner);
        }
        let times = field["times"].as_u64().unwrap_or(1) as usize;
        let fit = room / one.len();
        out.extend(one.repeat(times.min(fit)));
    }
}

/// For each list at each level of each request: one that is full of nothing, below parents that are there once; and many
/// parents with one element each. Then what is no field at all.
fn bases(calls: &[(String, Option<MessageDescriptor>)]) -> Vec<Base> {
    let mut bases = Vec::new();
    for (path, message) in calls {
        let (call, primary) = (path.rsplit('/').next().unwrap_or(path), path.contains("P4"));
        let mut add = |what: &str, field: Value| {
            let document = json!({"call": path, "primary": primary, "fields": [field]});
            bases.push((format!("{call} {what}"), document));
        };
        add("unknown", json!({"n": 1000, "varint": 1, "times": MOST}));
        add("groups", json!({"n": 1000, "group": [], "times": MOST}));
        let mut deep = json!({"n": 1, "of": []});
        for _ in 0..150 {
            deep = json!({"n": 1, "of": [deep], "times": 2});
        }
        add("deep", deep);
        if let Some(message) = message {
            lists(message, &mut Vec::new(), &mut HashSet::new(), &mut add);
        }
    }
    let element = json!({"n": 1, "of": [{"n": 1, "text": "a"}, {"n": 2, "of": [{"n": 5, "of": []}]}], "times": MOST});
    let trace = json!({"call": "/fairlane.v1.Switch/Trace", "fields": [element]});
    bases.push(("Trace struct".into(), trace));
    for (what, text) in [("list", "0,"), ("lists", "[0],"), ("objects", "{\"\":0},")] {
        let text = format!("[{}0]", text.repeat(MOST / 2 / text.len()));
        // config.p4_device_config
        let config = json!([{"n": 4, "varint": 1}, {"n": 5, "of": [{"n": 1, "of": []}, {"n": 3, "text": text}]}]);
        // update.val.json_val
        let update = json!([{"n": 4, "of": [{"n": 1, "of": []}, {"n": 3, "of": [{"n": 10, "text": text}]}]}]);
        for (number, path, fields) in [
            (5, "/p4.v1.P4Runtime/SetForwardingPipelineConfig", config),
            (4, "/gnmi.gNMI/Set", update),
        ] {
            let document = json!({"call": path, "primary": number == 5, "fields": fields});
            bases.push((format!("JSON {what} {number}"), document));
        }
    }
    bases
}

/// Adds a document for each list below `message`, to which `way` leads.
fn lists(
    message: &MessageDescriptor,
    way: &mut Vec<(u32, bool)>,
    seen: &mut HashSet<String>,
    add: &mut impl FnMut(&str, Value),
) {
    for field in message.fields() {
        if !seen.insert(field.full_name().to_owned()) {
            continue;
        }
        let n = field.number();
        let repeats = field.is_list() || field.is_map();
        if repeats {
            let (one, many) = match field.kind() {
                Kind::Message(_) | Kind::String | Kind::Bytes => {
                    (json!({"n": n}), json!({"n": n, "times": MOST}))
                }
                _ => (json!({"n": n, "varint": 1}), json!({"n": n, "zeros": MOST})),
            };
            let below = |field: Value, times: usize| {
                let parents = way.iter().rev();
                parents.fold(field, |inner, (n, repeats)| {
                    let times = if *repeats { times } else { 1 };
                    json!({"n": n, "of": [inner], "times": times})
                })
            };
            add(&format!("{} long", field.full_name()), below(many, 1));
            if way.iter().any(|(_, repeats)| *repeats) {
                add(&format!("{} often", field.full_name()), below(one, MOST));
            }
        }
        if let Kind::Message(inner) = field.kind() {
            way.push((n, repeats));
            lists(&inner, way, seen, add);
            way.pop();
        }
    }
}

/// A switch with a program behind a server, and a primary.
pub struct TestServer {
    runtime: Runtime,
    channel: Channel,
    /// The primary's stream.
    _primary: mpsc::Sender<StreamMessageRequest>,
}

impl TestServer {
    /// # Panics
    /// When there is no loopback.
    pub fn start() -> TestServer {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let (wake, woken) = channel();
        let (handle, mut calls) = DeviceHandle::new(move || wake.send(()).unwrap_or_default());
        let mut bed = switch::bed();
        std::thread::spawn(move || {
            while woken.recv().is_ok() {
                while calls.run_one(&mut bed.device, |_| 0) {}
                bed.pass(0);
            }
        });
        let (channel, primary) = runtime.block_on(serve(handle));
        TestServer {
            runtime,
            channel,
            _primary: primary,
        }
    }

    /// The status of one request, which is sent as it is; None when it is OK, or not over after `limit`.
    ///
    /// # Errors
    /// When it took more memory than it may.
    pub fn call(
        &self,
        path: &str,
        message: Bytes,
        limit: Duration,
    ) -> Result<Option<Status>, String> {
        let bytes = message.len();
        let mut client = Grpc::new(self.channel.clone()).max_decoding_message_size(1 << 30);
        let call = async move {
            let ready = client.ready().await;
            ready.map_err(|e| Status::unavailable(e.to_string()))?;
            let path = PathAndQuery::try_from(path).expect("the path of a call");
            let request = Request::new(Raw(message));
            let codec = ProstCodec::<Raw, ()>::default();
            let answer = client.server_streaming(request, path, codec).await?;
            let mut answers = answer.into_inner();
            while answers.try_next().await?.is_some() {}
            Ok::<(), Status>(())
        };
        let call = async { tokio::time::timeout(limit, call).await };
        let (status, peak) = memory::peak_of(|| self.runtime.block_on(call));
        let refused = matches!(status, Ok(Err(_)));
        let most = match path {
            "/gnmi.gNMI/Get" | "/gnmi.gNMI/Subscribe" if !refused => bound(bytes) + LEAVES,
            _ => bound(bytes),
        };
        if peak > most {
            let code = status.map(|answer| answer.map_err(|status| status.code()));
            let text = format!("{path}: {bytes} bytes took {peak}; {most} are allowed ({code:?})");
            return Err(text);
        }
        Ok(status.ok().and_then(Result::err))
    }
}

async fn serve(handle: DeviceHandle) -> (Channel, mpsc::Sender<StreamMessageRequest>) {
    let options = ServerOptions {
        addr: ([127, 0, 0, 1], 0).into(),
        device_id: DEVICE_ID,
        cpu_port: Some(CPU_PORT),
        program_bytes: v1model::BUDGET_BYTES,
    };
    let (_, no_events) = mpsc::channel(1);
    let server = Server::bind(options, handle.clone(), no_events);
    let mut server = server.await.expect("loopback has room");
    server.routes = switch::gnmi(handle, server.port_changes()).into_routes();
    let address = format!("http://{}", server.local_addr());
    tokio::spawn(server.run(std::future::pending()));
    let channel = Channel::from_shared(address).expect("an address");
    let channel = channel.connect().await.expect("the server listens");
    let mut client = P4RuntimeClient::new(channel.clone());
    let by = json!({"device_id": DEVICE_ID, "election_id": {"low": ELECTION_ID}});
    let message = seeds::message("p4.v1.StreamMessageRequest", &json!({"arbitration": by}));
    let (to, messages) = mpsc::channel(1);
    let sent = to.send(message.expect("a message")).await;
    sent.expect("the stream is open");
    let stream = client.stream_channel(ReceiverStream::new(messages)).await;
    let mut stream = stream.expect("a stream").into_inner();
    stream.message().await.expect("an election");
    tokio::spawn(async move { while let Ok(Some(_)) = stream.message().await {} });
    let mut set = by;
    set["action"] = json!("VERIFY_AND_COMMIT");
    let set = seeds::message("p4.v1.SetForwardingPipelineConfigRequest", &set);
    let set = SetForwardingPipelineConfigRequest {
        config: Some(switch::config("entities")),
        ..set.expect("a request")
    };
    let set = client.set_forwarding_pipeline_config(set).await;
    set.expect("the program is good");
    (channel, to)
}

/// A message that is sent as it is; of answers nothing is kept.
#[derive(Debug, Default)]
struct Raw(Bytes);

impl prost::Message for Raw {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        number: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, number, buffer, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {}
}
