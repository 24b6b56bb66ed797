// SPDX-License-Identifier: Apache-2.0
//! The service `fairlane.v1.Switch`: one packet's way through the pipeline, of a frame that the client gives, or of the
//! next real ones. It changes nothing, so every client may call it, observers too.

use std::sync::Arc;
use std::time::Duration;

use device::live_trace::{Filter, LiveTrace};
use device::trace::Trace;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{Map, Number, Value as Json};
use tokio::sync::{mpsc, Mutex};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use v1model::trace::Tracer;

use crate::error::{in_range, status, NO_PIPELINE};
use crate::pipeline::{contained, Loaded};
use crate::proto::own::switch_server::Switch;
use crate::shared::{discard, gone, Shared};

/// Longest frame.
const FRAME_BYTES_MAX: usize = 9_216;
/// Packets of one live trace.
const COUNT_MAX: u32 = 1_000;
/// A live trace ends after so long, whatever came.
const TIMEOUT_MAX_S: u32 = 3_600;

/// The service over what the P4Runtime server shares.
pub struct Service {
    shared: Arc<Shared>,
    /// The last tracer, for the next call: its state is made once. Held during a call, so that many at the same time
    /// take turns and make none twice.
    kept: Mutex<Option<Kept>>,
    live: Arc<tokio::sync::Semaphore>,
}

type Kept = (Arc<Loaded>, Tracer);

impl Service {
    pub fn new(shared: Arc<Shared>) -> Service {
        Service {
            shared,
            kept: Mutex::default(),
            live: Arc::new(tokio::sync::Semaphore::new(1)),
        }
    }

    /// A tracer of the program that runs: the one that was kept, if it still does.
    async fn tracer(&self, kept: Option<Kept>) -> Result<Kept, Status> {
        let loaded = self.shared.running();
        let loaded = loaded.ok_or_else(|| Status::failed_precondition(NO_PIPELINE))?;
        if let Some(kept) = kept.filter(|(of, _)| Arc::ptr_eq(of, &loaded)) {
            return Ok(kept);
        }
        let (what, program) = ("making the program's tracer", loaded.traced.clone());
        let make = move || contained(what, || Tracer::new(program));
        let tracer = self.shared.aside(what, make).await??;
        let tracer =
            tracer.map_err(|e| Status::internal(format!("the program cannot be traced: {e}")))?;
        Ok((loaded, tracer))
    }
}

#[tonic::async_trait]
impl Switch for Service {
    type TraceLiveStream = ReceiverStream<Result<Struct, Status>>;

    async fn trace(&self, request: Request<Struct>) -> Result<Response<Struct>, Status> {
        let given: OneFrame = read(request)?;
        let (port, frame) = (given.ingress_port, frame_of(&given.frame)?);
        let mut kept = self.kept.lock().await;
        let (loaded, mut tracer) = self.tracer(kept.take()).await?;
        let call = self.shared.handle.call(move |device, _| {
            if device.port(port).is_none() {
                let known: Vec<String> = device.ports().map(|p| p.to_string()).collect();
                let text = format!(
                    "ingress_port: there is no port {port}; there are {}",
                    known.join(", ")
                );
                return (Err(Status::not_found(text)), tracer);
            }
            let trace = device.trace(&mut tracer, port, &frame);
            let trace =
                trace.ok_or_else(|| Status::aborted("another program was loaded meanwhile"));
            (trace, tracer)
        });
        let (trace, tracer) = call.await.map_err(gone)?;
        *kept = Some((loaded, tracer));
        drop(kept);
        Ok(Response::new(message(&trace?)?))
    }

    async fn trace_live(
        &self,
        request: Request<Struct>,
    ) -> Result<Response<Self::TraceLiveStream>, Status> {
        let given: NextFrames = read(request)?;
        let count = in_range("count", given.count, 1..=COUNT_MAX).map_err(status)?;
        let timeout_s = in_range("timeout_s", given.timeout_s, 1..=TIMEOUT_MAX_S);
        let timeout = Duration::from_secs(timeout_s.map_err(status)?.into());
        let filter = given.filter;
        let permit = self.live.clone().try_acquire_owned().map_err(|_| {
            Status::resource_exhausted("another live trace is on; one at a time is possible")
        })?;
        let kept = self.kept.lock().await.take();
        let (_, tracer) = self.tracer(kept).await?;
        let (found, mut traces) = mpsc::channel::<Trace>(count as usize);
        let live = LiveTrace {
            tracer,
            filter,
            left: count,
            tell: Box::new(move |trace| found.try_send(trace).is_ok()),
        };
        let handle = self.shared.handle.clone();
        let before = handle.call(move |device, _| device.set_live_trace(Some(Box::new(live))));
        discard(before.await.map_err(gone)?);
        let (out, stream) = mpsc::channel(16);
        tokio::spawn(async move {
            let _permit = permit;
            let timeout = tokio::time::sleep(timeout);
            tokio::pin!(timeout);
            loop {
                let trace = tokio::select! {
                    trace = traces.recv() => trace,
                    () = out.closed() => None,
                    () = &mut timeout => None,
                };
                let Some(trace) = trace else { break };
                // A client that does not read keeps others from tracing no longer than it asked for.
                tokio::select! {
                    sent = out.send(message(&trace)) => if sent.is_err() { break },
                    () = &mut timeout => break,
                }
            }
            // Its tracer's memory goes with it, even when fewer packets came.
            match handle.call(|device, _| device.set_live_trace(None)).await {
                Ok(before) => discard(before),
                Err(_) => tracing::debug!("the switch stopped while packets were traced"),
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

fn message(trace: &Trace) -> Result<Struct, Status> {
    let json = serde_json::to_value(trace)
        .map_err(|e| Status::internal(format!("the trace cannot be written: {e}")))?;
    Ok(encode([("trace".to_owned(), json)].into_iter().collect()))
}

/// The request of `Trace`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneFrame {
    ingress_port: u32,
    /// Hexadecimal digits.
    frame: String,
}

/// The request of `TraceLive`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NextFrames {
    count: u32,
    timeout_s: u32,
    #[serde(rename = "match")]
    filter: Filter,
}

impl Default for NextFrames {
    fn default() -> NextFrames {
        NextFrames {
            count: 1,
            timeout_s: 60,
            filter: Filter::default(),
        }
    }
}

/// # Errors
/// INVALID_ARGUMENT with the key, and what is expected there.
fn read<T: DeserializeOwned>(request: Request<Struct>) -> Result<T, Status> {
    let json = Json::Object(decode(request.into_inner()));
    serde_path_to_error::deserialize(json).map_err(|e| Status::invalid_argument(e.to_string()))
}

fn frame_of(text: &str) -> Result<Vec<u8>, Status> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digits).collect();
    let bytes = bytes.filter(|bytes| (1..=FRAME_BYTES_MAX).contains(&bytes.len()));
    bytes.ok_or_else(|| {
        Status::invalid_argument(format!(
            "frame: 1 to {FRAME_BYTES_MAX} bytes as hexadecimal digits are expected"
        ))
    })
}

/// A JSON object as a message.
fn encode(json: Map<String, Json>) -> Struct {
    let fields = json.into_iter();
    Struct {
        fields: fields.map(|(key, json)| (key, value(json))).collect(),
    }
}

fn value(json: Json) -> Value {
    match json {
        Json::Null => Kind::NullValue(0).into(),
        Json::Bool(b) => b.into(),
        Json::Number(n) => n.as_f64().unwrap_or_default().into(),
        Json::String(s) => s.into(),
        Json::Array(all) => all.into_iter().map(value).collect::<Vec<Value>>().into(),
        Json::Object(all) => encode(all).fields.into(),
    }
}

/// A message as JSON; whole numbers are integers.
fn decode(message: Struct) -> Map<String, Json> {
    let fields = message.fields.into_iter();
    fields.map(|(key, value)| (key, json_of(value))).collect()
}

fn json_of(value: Value) -> Json {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(b)) => b.into(),
        Some(Kind::NumberValue(n)) if n.fract() == 0.0 && n.abs() < 9e15 => (n as i64).into(),
        Some(Kind::NumberValue(n)) => Number::from_f64(n).map_or(Json::Null, Into::into),
        Some(Kind::StringValue(s)) => s.into(),
        Some(Kind::ListValue(all)) => all.values.into_iter().map(json_of).collect(),
        Some(Kind::StructValue(s)) => decode(s).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back() {
        let json = serde_json::json!({"a": [1, 2.5, null, "x", true, {"b": -3}], "c": {}});
        let json = json.as_object().unwrap();
        assert_eq!(decode(encode(json.clone())), *json);
    }
}
