// SPDX-License-Identifier: Apache-2.0
//! The service `fairlane.v1.Switch`: one packet's way through the pipeline, of a frame that the client gives, or of the
//! next real ones. It changes nothing, so every client may call it, observers too.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use device::live_trace::{Filter, LiveTrace};
use device::trace::Trace;
use prost_types::Struct;
use serde_json::{json, Map, Value};
use tokio::sync::{mpsc, Mutex};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use v1model::trace::Tracer;

use crate::config::{self, Loaded};
use crate::error::{quote, NO_PIPELINE};
use crate::proto::own::switch_server::Switch;
use crate::shared::{discard, gone, Shared};
use crate::structs;

/// Longest frame.
const FRAME_BYTES_MAX: usize = 9_216;
/// Packets of one live trace.
const COUNT_MAX: i64 = 1_000;
/// A live trace ends after so long, whatever came.
const TIMEOUT_MAX_S: i64 = 3_600;

/// The service over what the P4Runtime server shares.
pub struct Service {
    shared: Arc<Shared>,
    /// The last tracer, for the next call: the program is compiled for it once. Held during a call, so that many at
    /// the same time take turns and compile nothing twice.
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
        let loaded = self
            .shared
            .running()
            .ok_or_else(|| Status::failed_precondition(NO_PIPELINE))?;
        if let Some(kept) = kept.filter(|(of, _)| Arc::ptr_eq(of, &loaded)) {
            return Ok(kept);
        }
        let program = loaded.config.p4_device_config.clone();
        let compile = move || Tracer::from_json(&config::json(&program));
        let compiled = tokio::task::spawn_blocking(move || {
            config::contained("compiling the program for traces", compile)
        });
        let tracer = compiled
            .await
            .map_err(|e| Status::internal(format!("compiling the program failed: {e}")))??
            .map_err(|e| Status::internal(format!("the program cannot be traced: {e}")))?;
        Ok((loaded, tracer))
    }
}

#[tonic::async_trait]
impl Switch for Service {
    type TraceLiveStream = ReceiverStream<Result<Struct, Status>>;

    async fn trace(&self, request: Request<Struct>) -> Result<Response<Struct>, Status> {
        let mut keys = structs::decode(request.into_inner());
        let port = needed(port_of(&mut keys, "ingress_port")?, "ingress_port")?;
        let frame = frame_of(&mut keys)?;
        nothing_else(&keys, "ingress_port, frame")?;
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
        let mut keys = structs::decode(request.into_inner());
        let count = integer(&mut keys, "count", 1, COUNT_MAX)?.unwrap_or(1) as u32;
        let timeout_s = integer(&mut keys, "timeout_s", 1, TIMEOUT_MAX_S)?.unwrap_or(60);
        let filter = match keys.shift_remove("match") {
            None => Filter::default(),
            Some(Value::Object(fields)) => filter_of(fields)?,
            Some(other) => return Err(bad(format!("match: {other} is no object"))),
        };
        nothing_else(&keys, "count, timeout_s, match")?;
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
            let timeout = tokio::time::sleep(Duration::from_secs(timeout_s as u64));
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
    Ok(structs::encode(json!({ "trace": json })))
}

fn bad(text: impl Into<String>) -> Status {
    Status::invalid_argument(text)
}

fn nothing_else(keys: &Map<String, Value>, known: &str) -> Result<(), Status> {
    match keys.keys().next() {
        None => Ok(()),
        Some(key) => Err(bad(format!("unknown key {}; known: {known}", quote(key)))),
    }
}

fn needed<T>(value: Option<T>, key: &str) -> Result<T, Status> {
    value.ok_or_else(|| bad(format!("{key} is missing")))
}

fn integer(
    keys: &mut Map<String, Value>,
    key: &str,
    low: i64,
    high: i64,
) -> Result<Option<i64>, Status> {
    let Some(value) = keys.shift_remove(key) else {
        return Ok(None);
    };
    match value.as_i64() {
        Some(n) if (low..=high).contains(&n) => Ok(Some(n)),
        _ => Err(bad(format!(
            "{key}: {value} is no integer from {low} to {high}"
        ))),
    }
}

fn port_of(keys: &mut Map<String, Value>, key: &str) -> Result<Option<u32>, Status> {
    let port = integer(keys, key, 0, i64::from(device::config::PORT_MAX))?;
    Ok(port.map(|p| p as u32))
}

fn frame_of(keys: &mut Map<String, Value>) -> Result<Vec<u8>, Status> {
    let value = needed(keys.shift_remove("frame"), "frame")?;
    let text = value.as_str().unwrap_or_default();
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let digits: Option<Vec<u32>> = text.as_bytes().iter().map(digit).collect();
    let bytes = text.len() / 2;
    match digits {
        Some(digits) if text.len().is_multiple_of(2) && (1..=FRAME_BYTES_MAX).contains(&bytes) => {
            let pairs = digits.chunks_exact(2);
            Ok(pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
        }
        _ => Err(bad(format!(
            "frame: 1 to {FRAME_BYTES_MAX} bytes as hexadecimal digits are expected"
        ))),
    }
}

fn filter_of(mut keys: Map<String, Value>) -> Result<Filter, Status> {
    let mut address = |key: &str| -> Result<Option<IpAddr>, Status> {
        let Some(value) = keys.shift_remove(key) else {
            return Ok(None);
        };
        let address = value.as_str().and_then(|text| text.parse().ok());
        let text = || bad(format!("match: {key}: {value} is no IP address"));
        address.ok_or_else(text).map(Some)
    };
    let (src, dst) = (address("src")?, address("dst")?);
    let port = |keys: &mut Map<String, Value>, key| -> Result<Option<u16>, Status> {
        Ok(integer(keys, key, 0, 65_535)?.map(|p| p as u16))
    };
    let filter = Filter {
        ingress_port: port_of(&mut keys, "ingress_port")?,
        src,
        dst,
        protocol: integer(&mut keys, "protocol", 0, 255)?.map(|p| p as u8),
        sport: port(&mut keys, "sport")?,
        dport: port(&mut keys, "dport")?,
    };
    nothing_else(&keys, "ingress_port, src, dst, protocol, sport, dport")?;
    Ok(filter)
}
