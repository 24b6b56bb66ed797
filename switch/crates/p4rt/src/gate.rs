// SPDX-License-Identifier: Apache-2.0
//! What every request passes before it is read: who may send it, how long its messages may be, how long it may take to come.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use prost::{DecodeError, Message};
use proto::weigh::{Fields, Refused, Scale};
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Body as HttpBody, Service};
use tonic::transport::server::TlsConnectInfo;
use tonic::Status;
use tower_layer::Layer;
use Does::*;

use crate::budget::{Budget, Share};
use crate::connections::{access_of, read_only, Access, Connection};
use crate::error::{bail, short, MetadataRoom};
use crate::proto::p4rt::WriteRequest;
use crate::shared::Shared;
use crate::write;

/// The request of a call with one answer, or one stream of answers, has come by then.
const WHOLE: Duration = Duration::from_secs(60);
/// Bytes of memory for requests that are being received or served at a time, all clients together, as they came and
/// decoded: of those that change something, and of the others, so that who only reads is in nobody's way who writes.
const WRITES_BYTES: usize = 1 << 30;
const READS_BYTES: usize = 128 << 20;
/// One message may take so many bytes for each of its own when it is decoded, and so many more: p4c's JSON without its
/// blanks takes 18 to 29.
const DECODED_RATIO: usize = 32;
const DECODED_FREE: usize = 8 << 20;
/// A stream's message that takes no more needs no place among the others, so that a packet-out is never refused one.
const STREAM_FREE: usize = 128 << 10;
/// Frame of a message in gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What a call does; the calls themselves look too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It changes something, and only the primary may.
    PrimaryWrites,
    /// It changes something.
    Writes,
    Reads,
    /// Its request is a stream, which goes on.
    Streams,
}

/// The end of a call's path, what it does, its longest message, and the type of its messages; those of
/// `fairlane.v1.Switch` are too short to become large.
type Known = (&'static str, Does, usize, &'static str);

const WRITE: &str = "P4Runtime/Write";
#[rustfmt::skip]
const CALLS: [Known; 12] = [
    (WRITE, PrimaryWrites, 16 << 20, "p4.v1.WriteRequest"),
    ("P4Runtime/SetForwardingPipelineConfig", PrimaryWrites, 64 << 20, "p4.v1.SetForwardingPipelineConfigRequest"),
    ("P4Runtime/Read", Reads, 256 << 10, "p4.v1.ReadRequest"),
    ("P4Runtime/StreamChannel", Streams, 256 << 10, "p4.v1.StreamMessageRequest"),
    ("P4Runtime/GetForwardingPipelineConfig", Reads, 4 << 10, "p4.v1.GetForwardingPipelineConfigRequest"),
    ("P4Runtime/Capabilities", Reads, 4 << 10, "p4.v1.CapabilitiesRequest"),
    ("gNMI/Capabilities", Reads, 64 << 10, "gnmi.CapabilityRequest"),
    ("gNMI/Get", Reads, 4 << 20, "gnmi.GetRequest"),
    ("gNMI/Set", Writes, 4 << 20, "gnmi.SetRequest"),
    ("gNMI/Subscribe", Streams, 4 << 20, "gnmi.SubscribeRequest"),
    ("Switch/Trace", Reads, 64 << 10, ""),
    ("Switch/TraceLive", Reads, 64 << 10, ""),
];
/// Any other path, which nobody serves.
const OTHER: Known = ("", Reads, 64 << 10, "");

/// Puts the gate before all services.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
    writes: Budget,
    reads: Budget,
}

impl Gate {
    /// For the switch whose primaries may change it.
    pub fn new(shared: Arc<Shared>) -> Gate {
        Gate {
            shared,
            writes: Budget::new(WRITES_BYTES),
            reads: Budget::new(READS_BYTES),
        }
    }
}

impl<S> Layer<S> for Gate {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            inner,
            gate: self.clone(),
        }
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub struct Guarded<S> {
    inner: S,
    gate: Gate,
}

type Answer<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answer<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Answer<S::Error> {
        let access = access_of(request.extensions());
        request.extensions_mut().insert(access);
        let path = request.uri().path();
        let mut calls = CALLS.into_iter();
        let known = calls.find(|(end, ..)| path.ends_with(end));
        let (path, does, longest, message) = known.unwrap_or(OTHER);
        let writes = matches!(does, PrimaryWrites | Writes);
        if access == Access::ReadOnly && writes {
            let refusal = read_only().into_http();
            return Box::pin(std::future::ready(Ok(refusal)));
        }
        let held = Arc::new(Share::new(match writes {
            true => &self.gate.writes,
            false => &self.gate.reads,
        }));
        let is_stream = does == Streams;
        let incoming = |body| Incoming {
            body,
            longest,
            scale: Scale::of(message),
            primaries: (does == PrimaryWrites).then(|| self.gate.shared.clone()),
            is_write: path == WRITE,
            is_stream,
            bytes: BytesMut::new(),
            held: held.clone(),
            deadline: (!is_stream).then(|| Box::pin(tokio::time::sleep(WHOLE))),
        };
        let connection = connection_of(&request).cloned();
        let call = connection.as_ref().map(Connection::call);
        let room = MetadataRoom::from_client(connection.and_then(|c| c.headers()));
        request.extensions_mut().insert(room);
        let request = request.map(|body| Body::new(incoming(body)));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(held);
            answer.map(|mut a| {
                let kept: (_, Option<UntilSent>) = (call, a.extensions_mut().remove());
                // The call is over when its answer is.
                a.map(|body| {
                    Body::new(body.map_err(move |status| {
                        let _ = &kept;
                        status
                    }))
                })
            })
        })
    }
}

fn connection_of<T>(request: &Request<T>) -> Option<&Connection> {
    let extensions = request.extensions();
    let tls = extensions.get::<TlsConnectInfo<Connection>>();
    tls.map(TlsConnectInfo::get_ref)
        .or_else(|| extensions.get())
}

/// A request's messages: each is looked at when all of it has come, and only then decoded.
struct Incoming {
    body: Body,
    longest: usize,
    scale: Option<Scale>,
    /// Some: only the primary may send this.
    primaries: Option<Arc<Shared>>,
    is_write: bool,
    is_stream: bool,
    /// What has come of the next message.
    bytes: BytesMut,
    /// Its memory.
    held: Arc<Share>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        // Of streams HTTP/2's windows bound what waits, and no message is long.
        if !self.is_stream {
            self.hold(data.len())?;
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// # Errors
    /// RESOURCE_EXHAUSTED for too much of all.
    fn hold(&self, bytes: usize) -> Result<(), Status> {
        match self.held.take(bytes) {
            true => Ok(()),
            false => bail!(
                resource_exhausted,
                "more than {} bytes of such requests are being served; try again",
                self.held.budget.max
            ),
        }
    }

    /// The next message with its prefix, once it is whole.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, as gRPC has it, for a message that is too long, and for one that would take too much; what
    /// the arbiter says to a client that is not primary; INTERNAL, as tonic has it, for what is no message.
    fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((prefix, rest)) = self.bytes.split_at_checked(PREFIX) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if length > self.longest {
            bail!(
                resource_exhausted,
                "the message has {length} bytes; this call takes at most {}",
                self.longest
            );
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = self.bytes.split_to(PREFIX + length).freeze();
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new(); // it would hold the message's memory
        }
        // A compressed one is refused behind the gate.
        match message[0] {
            0 => self.admit(message).map(Some),
            _ => Ok(Some(message)),
        }
    }

    fn admit(&self, message: Bytes) -> Result<Bytes, Status> {
        let body = message.slice(PREFIX..);
        let not_one = |e: DecodeError| Status::internal(e.to_string());
        if let Some(shared) = &self.primaries {
            let sender = sender(&body).and_then(|sender| WriteRequest::decode(&sender[..]));
            let sender = sender.map_err(not_one)?;
            write::check_sender(shared, &sender).map_err(short)?;
        }
        let max = DECODED_RATIO * body.len() + DECODED_FREE;
        let weight = match self.is_write {
            true => write::weigh(&body, max),
            false => self.scale.map_or(Ok(0), |scale| scale.weigh(&body, max)),
        };
        let weight = weight.map_err(|refused| match refused {
            Refused::Malformed(error) => not_one(error),
            Refused::TooMuch => Status::resource_exhausted(format!(
                "the message has {} bytes and would take more than {max} when it is decoded: send fewer elements",
                body.len()
            )),
        })?;
        if !self.is_stream || weight > STREAM_FREE {
            self.hold(weight)?;
        }
        Ok(message)
    }
}

/// Of a message that changes the switch the fields that name its sender: device_id, election_id and role have the same
/// numbers in both.
///
/// # Errors
/// prost's, for what is no message.
fn sender(message: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut sender = Vec::new();
    for field in Fields(message) {
        let field = field?;
        if matches!(field.number, 1 | 3 | 6) {
            sender.extend_from_slice(field.whole);
        }
    }
    Ok(sender)
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_stream {
            self.held.set(0); // who asks for the next message is done with the last one
        }
        loop {
            if let Some(message) = self.next().transpose() {
                return Poll::Ready(Some(message.map(Frame::data)));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.take(&data)?,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                // A message that was cut off: that is an error behind the gate.
                Poll::Ready(None) if !self.bytes.is_empty() => {
                    let rest = std::mem::take(&mut self.bytes).freeze();
                    return Poll::Ready(Some(Ok(Frame::data(rest))));
                }
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {
                    let deadline = self.deadline.as_mut();
                    if deadline.is_some_and(|d| d.as_mut().poll(cx).is_ready()) {
                        let text = format!("the request had not come after {} s", WHOLE.as_secs());
                        return Poll::Ready(Some(Err(Status::deadline_exceeded(text))));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && self.body.is_end_stream()
    }
}

/// An extension of a response: what is kept until the client has taken all of it, or has gone.
#[derive(Clone)]
pub struct UntilSent {
    _kept: Arc<dyn Any + Send + Sync>,
}

impl UntilSent {
    pub fn new(what: impl Send + Sync + 'static) -> UntilSent {
        UntilSent {
            _kept: Arc::new(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4rt::{ForwardingPipelineConfig, SetForwardingPipelineConfigRequest};
    use tonic::Code;

    fn incoming(longest: usize, scale: Option<Scale>) -> Incoming {
        Incoming {
            body: Body::empty(),
            longest,
            scale,
            primaries: None,
            is_write: false,
            is_stream: false,
            bytes: BytesMut::new(),
            held: Arc::new(Share::new(&Budget::new(usize::MAX))),
            deadline: None,
        }
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
    }

    #[test]
    fn each_message_is_passed_on_whole_however_it_is_cut() {
        let messages: &[u8] = &[
            0, 0, 0, 0, 3, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 9, 9, 9, 9, 0, 0, 0, 1, 0,
        ];
        for step in 1..messages.len() {
            let (mut body, mut whole, mut refused) = (incoming(4, None), Vec::new(), None);
            for piece in messages.chunks(step) {
                body.take(piece).unwrap();
                loop {
                    match body.next() {
                        Ok(Some(message)) => whole.push(message),
                        Ok(None) => break,
                        Err(status) => {
                            refused.get_or_insert(status);
                            break;
                        }
                    }
                }
            }
            assert_eq!(whole, [&messages[..8], &messages[8..13], &messages[13..22]]);
            let status = refused.expect("the last message has 256 bytes");
            assert_eq!(status.code(), Code::ResourceExhausted);
            assert_eq!(
                status.message(),
                "the message has 256 bytes; this call takes at most 4"
            );
        }
    }

    #[test]
    fn what_would_take_too_much_is_refused_before_it_is_decoded() {
        let mut body = incoming(1 << 20, Scale::of("p4.v1.ReadRequest"));
        body.take(&framed(&[0x12, 0].repeat(1_000))).unwrap();
        assert!(body.next().unwrap().is_some());
        let weight = body.held.own();
        assert!(weight > 1_000 * 1_000, "{weight}");
        body.take(&framed(&[0x12, 0].repeat(100_000))).unwrap();
        let status = body.next().unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(
            status.message(),
            "the message has 200000 bytes and would take more than 14788608 when it is decoded: send fewer elements"
        );
        body.take(&framed(&[0x12, 7])).unwrap();
        assert_eq!(body.next().unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn a_program_without_blanks_is_not_too_dense() {
        let program = include_bytes!("../tests/p4/entities.json");
        let program: serde_json::Value = serde_json::from_slice(program).unwrap();
        let programs = serde_json::to_vec(&vec![program; 300]).unwrap();
        let config = ForwardingPipelineConfig {
            p4_device_config: programs.into(),
            ..Default::default()
        };
        let request = SetForwardingPipelineConfigRequest {
            config: Some(config),
            ..Default::default()
        };
        let message = request.encode_to_vec();
        let mut body = incoming(
            64 << 20,
            Scale::of("p4.v1.SetForwardingPipelineConfigRequest"),
        );
        body.take(&framed(&message)).unwrap();
        assert!(body.next().unwrap().is_some(), "{} bytes", message.len());
    }

    /// A call that were not known here would be taken for one that only reads.
    #[test]
    fn every_call_that_changes_something_is_known_as_one() {
        for service in proto::descriptors().services() {
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                let known = CALLS.into_iter().find(|(end, ..)| path.ends_with(end));
                let (_, does, ..) = known.expect(&path);
                let changes = ["Write", "SetForwardingPipelineConfig", "Set"];
                let writes = matches!(does, PrimaryWrites | Writes);
                assert_eq!(writes, changes.contains(&method.name()), "{path}");
            }
        }
        assert!(proto::descriptors().services().len() > 1);
    }
}
