// SPDX-License-Identifier: Apache-2.0
//! What every request passes before it is read: who may send it, how long its messages may be, how long it may take to come.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Body as HttpBody, Service};
use tonic::transport::server::TlsConnectInfo;
use tonic::{Code, Status};
use tower_layer::Layer;

use crate::access::Access;
use crate::connections::{Call, Connection};
use crate::error::MetadataRoom;
use crate::tls;

/// The request of a call with one answer, or one stream of answers, has come by then.
const WHOLE: Duration = Duration::from_secs(60);
/// Bytes of requests that are being received or served at a time, all clients together: of those that change something,
/// and of the others, so that who only reads is in nobody's way who writes.
const WRITES_BYTES: usize = 256 << 20;
const READS_BYTES: usize = 64 << 20;
/// Frame of a message in gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Longest message of a call, by the end of its path; other paths take what gNMI does.
const LONGEST: [(&str, usize); 8] = [
    ("P4Runtime/Write", 16 << 20),
    ("P4Runtime/SetForwardingPipelineConfig", 64 << 20),
    ("P4Runtime/Read", 256 << 10),
    ("P4Runtime/StreamChannel", 256 << 10),
    ("P4Runtime/GetForwardingPipelineConfig", 4 << 10),
    ("P4Runtime/Capabilities", 4 << 10),
    ("Switch/Trace", 64 << 10),
    ("Switch/TraceLive", 64 << 10),
];
const LONGEST_ELSE: usize = 4 << 20;
/// What only reads may not do; the calls themselves look too.
const WRITES: [&str; 3] = [
    "P4Runtime/Write",
    "P4Runtime/SetForwardingPipelineConfig",
    "gNMI/Set",
];
/// Calls whose requests are streams: these go on.
const STREAMS: [&str; 2] = ["P4Runtime/StreamChannel", "gNMI/Subscribe"];

/// Puts the gate before all services.
#[derive(Clone, Default)]
pub struct Gate {
    writes: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
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
        let access = tls::access_of(request.extensions());
        request.extensions_mut().insert(access);
        let path = request.uri().path();
        let is = |end: &&str| path.ends_with(end);
        let writes = WRITES.iter().any(is);
        if access == Access::ReadOnly && writes {
            let refusal = tls::read_only().into_http();
            return Box::pin(std::future::ready(Ok(refusal)));
        }
        let longest = LONGEST.iter().find(|(end, _)| is(end));
        let whole = !STREAMS.iter().any(is);
        let (all, most) = match writes {
            true => (&self.gate.writes, WRITES_BYTES),
            false => (&self.gate.reads, READS_BYTES),
        };
        let held = Arc::new(Held {
            own: AtomicUsize::new(0),
            all: all.clone(),
            most,
        });
        let incoming = |body| Incoming {
            body,
            longest: longest.map_or(LONGEST_ELSE, |(_, bytes)| *bytes),
            prefix: [0; PREFIX],
            prefix_len: 0,
            rest: 0,
            // A stream's messages are served one by one; what of them waits is bounded by HTTP/2's windows.
            held: whole.then(|| held.clone()),
            deadline: whole.then(|| Box::pin(tokio::time::sleep(WHOLE))),
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
                let _kept = a.extensions_mut().remove();
                let _call = call;
                a.map(|body| Body::new(Outgoing { body, _call, _kept }))
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

/// The bytes of one request, among those of all.
struct Held {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
    most: usize,
}

impl Held {
    /// False when there is no room.
    fn take(&self, bytes: usize) -> bool {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let own = self.own.load(Ordering::Relaxed);
        self.all.fetch_sub(own, Ordering::Relaxed);
    }
}

/// A request's messages, looked at as they come.
struct Incoming {
    body: Body,
    longest: usize,
    prefix: [u8; PREFIX],
    prefix_len: usize,
    /// Bytes of the message that are still to come.
    rest: usize,
    held: Option<Arc<Held>>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    /// # Errors
    /// RESOURCE_EXHAUSTED, as gRPC has it, for a message that is too long, and for too much of all.
    fn look_at(&mut self, mut data: &[u8]) -> Result<(), Status> {
        if let Some(held) = self.held.as_ref().filter(|held| !held.take(data.len())) {
            return Err(Status::resource_exhausted(format!(
                "more than {} bytes of such requests are being served; try again",
                held.most
            )));
        }
        while !data.is_empty() {
            if self.rest > 0 {
                let some = self.rest.min(data.len());
                self.rest -= some;
                data = &data[some..];
                continue;
            }
            self.prefix[self.prefix_len] = data[0];
            self.prefix_len += 1;
            data = &data[1..];
            if self.prefix_len == PREFIX {
                let [_, length @ ..] = self.prefix;
                self.rest = u32::from_be_bytes(length) as usize;
                self.prefix_len = 0;
                if self.rest > self.longest {
                    return Err(Status::resource_exhausted(format!(
                        "the message has {} bytes; this call takes at most {}",
                        self.rest, self.longest
                    )));
                }
            }
        }
        Ok(())
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            if let Some(data) = frame.data_ref().cloned() {
                if let Err(status) = self.look_at(&data) {
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
        if let (Poll::Pending, Some(deadline)) = (&frame, &mut self.deadline) {
            if deadline.as_mut().poll(cx).is_ready() {
                let text = format!("the request had not come after {} s", WHOLE.as_secs());
                return Poll::Ready(Some(Err(Status::new(Code::DeadlineExceeded, text))));
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// An answer; the call is over when it is.
struct Outgoing {
    body: Body,
    _call: Option<Call>,
    _kept: Option<UntilSent>,
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

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incoming(longest: usize) -> Incoming {
        Incoming {
            body: Body::empty(),
            longest,
            prefix: [0; PREFIX],
            prefix_len: 0,
            rest: 0,
            held: None,
            deadline: None,
        }
    }

    #[test]
    fn the_length_of_each_message_is_looked_at_however_it_is_cut() {
        let messages: &[u8] = &[
            0, 0, 0, 0, 3, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 9, 9, 9, 9, 0, 0, 0, 1, 0,
        ];
        for step in 1..messages.len() {
            let mut body = incoming(4);
            let mut pieces = messages.chunks(step);
            let refused = pieces.find_map(|piece| body.look_at(piece).err());
            let status = refused.expect("the last message has 256 bytes");
            assert_eq!(status.code(), Code::ResourceExhausted);
            assert_eq!(
                status.message(),
                "the message has 256 bytes; this call takes at most 4"
            );
            let mut body = incoming(256);
            assert!(messages
                .chunks(step)
                .all(|piece| body.look_at(piece).is_ok()));
            assert_eq!(body.rest, 256);
        }
    }

    #[test]
    fn all_requests_together_are_bounded_and_what_ends_is_given_back() {
        let all = Arc::new(AtomicUsize::new(0));
        let held = |bytes| {
            let held = Held {
                own: AtomicUsize::new(0),
                all: all.clone(),
                most: 1_000,
            };
            let room = held.take(bytes);
            (held, room)
        };
        let (first, room) = held(999);
        assert!(room);
        assert!(!held(2).1);
        assert!(held(1).1);
        drop(first);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
