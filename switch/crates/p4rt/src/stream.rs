// SPDX-License-Identifier: Apache-2.0
//! One client's StreamChannel: arbitration, packet-outs and digest acknowledgements come in (P4Runtime 1.5 §16).
//!
//! The open streams: what is to be sent to each, arbitration first, packets and digests as far as there is room.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message;
use tokio::sync::{mpsc, OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::arbitration::{Arbiter, Notices, StreamId, OBSERVER_ROLE};
use crate::connections::Access;
use crate::error::{bail, code, in_range, quote, refusal, refuse, short, Checked, NO_PIPELINE};
use crate::pipeline::Loaded;
use crate::proto::p4rt::stream_error::Details;
use crate::proto::p4rt::stream_message_request::Update as Incoming;
use crate::proto::p4rt::stream_message_response::Update;
use crate::proto::p4rt::*;
use crate::shared::Shared;

/// Longest frame of a packet-out, header included.
const MAX_FRAME_BYTES: u32 = 65_535;
/// A stream that has not sent an arbitration by then is ended.
const FIRST: Duration = Duration::from_secs(30);

/// Serves a stream until either side ends it.
pub async fn serve(
    shared: Arc<Shared>,
    id: StreamId,
    access: Access,
    mut incoming: Streaming<StreamMessageRequest>,
) {
    let speak = async {
        loop {
            let mut message = match incoming.message().await {
                Ok(Some(message)) => message,
                Ok(None) => return None,
                Err(status) => {
                    tracing::debug!(stream = id.0, %status, "a client's stream broke");
                    return None;
                }
            };
            if access == Access::ReadOnly {
                observe(&mut message);
            }
            if let Err(status) = handle(&shared, id, message).await {
                return Some(short(status));
            }
        }
    };
    let silent = async {
        tokio::time::sleep(FIRST).await;
        if shared.clients().arbiter.knows(id) {
            std::future::pending::<()>().await;
        }
    };
    let status = tokio::select! {
        status = speak => status,
        () = silent => Some(Status::deadline_exceeded(format!(
            "no arbitration came in the stream's first {} s",
            FIRST.as_secs()
        ))),
    };
    let _gate = shared.state.write().await;
    shared.clients().close(id, status);
}

/// Whatever role a client asks for: it gets the one that its certificate allows.
fn observe(message: &mut StreamMessageRequest) {
    if let Some(Incoming::Arbitration(update)) = &mut message.update {
        update.role = Some(Role {
            name: OBSERVER_ROLE.to_owned(),
            ..Default::default()
        });
    }
}

/// # Errors
/// The status that ends the stream.
pub async fn handle(
    shared: &Arc<Shared>,
    id: StreamId,
    message: StreamMessageRequest,
) -> Result<(), Status> {
    let (refused, details) = match message.update {
        Some(Incoming::Arbitration(update)) => {
            // Waits for updates that are being applied: they belong to the present primary.
            let _gate = shared.state.write().await;
            let mut clients = shared.clients();
            let was = clients.arbiter.is_primary(id);
            let notices = clients.arbiter.update(id, &update)?;
            if !was && clients.arbiter.is_primary(id) {
                shared.digests().new_client();
            }
            clients.notify(notices);
            return Ok(());
        }
        Some(Incoming::Packet(packet)) => {
            let refused = packet_out(shared, id, &packet).await;
            let packet_out = Some(packet);
            (refused, Details::PacketOut(PacketOutError { packet_out }))
        }
        Some(Incoming::DigestAck(ack)) => (
            digest_ack(shared, id, &ack),
            Details::DigestListAck(DigestListAckError {
                digest_list_ack: Some(ack),
            }),
        ),
        other => {
            let (refused, other) = match other {
                Some(Incoming::Other(other)) => {
                    let kind = quote(&other.type_url);
                    let refused = refusal!(
                        Unimplemented,
                        "messages of the type {kind} are not supported"
                    );
                    (refused, Some(other))
                }
                _ => {
                    let known = "arbitration, packet, digest_ack";
                    (
                        refusal!("the stream message is empty; known: {known}"),
                        None,
                    )
                }
            };
            (Err(refused), Details::Other(StreamOtherError { other }))
        }
    };
    if let Err(refusal) = refused {
        let error = StreamError {
            canonical_code: code(&refusal) as i32,
            message: refusal.message,
            details: Some(details),
            ..Default::default()
        };
        shared.clients().send(id, Update::Error(error));
    }
    Ok(())
}

/// The program that a primary's message is for.
///
/// # Errors
/// PERMISSION_DENIED for any other client, FAILED_PRECONDITION when there is none.
fn program(shared: &Shared, id: StreamId, what: &str) -> Checked<Arc<Loaded>> {
    let arbiter = &shared.clients().arbiter;
    if !arbiter.is_primary(id) {
        let why = arbiter.why_not_primary(id);
        refuse!(PermissionDenied, "{why} (only the primary may send {what})");
    }
    let loaded = shared.running();
    loaded.ok_or_else(|| refusal!(FailedPrecondition, "{NO_PIPELINE}"))
}

async fn packet_out(shared: &Shared, id: StreamId, packet: &PacketOut) -> Checked {
    let loaded = program(shared, id, "a packet-out")?;
    let frame = match &loaded.binding.packet_out {
        Some(header) => header
            .encode(&packet.metadata, &packet.payload)
            .map_err(|e| refusal!("{e}"))?,
        None if packet.metadata.is_empty() => packet.payload.to_vec(),
        None => refuse!("metadata is given, but P4Info has no packet_out header"),
    };
    in_range("bytes of the packet", frame.len(), 0..=MAX_FRAME_BYTES)?;
    let call = shared
        .handle
        .call(move |device, now| device.packet_out(now, &frame));
    call.await.map_err(|e| refusal!(FailedPrecondition, "{e}"))
}

fn digest_ack(shared: &Shared, id: StreamId, ack: &DigestListAck) -> Checked {
    let loaded = program(shared, id, "a digest acknowledgement")?;
    let digest = loaded.binding.digests.get(ack.digest_id);
    digest.map_err(|e| refusal!("{e}"))?;
    shared.digests().ack(ack.digest_id, ack.list_id);
    Ok(())
}

/// Arbitration messages that a client may leave unread; a client with more is cut off.
const CONTROL_QUEUE: usize = 1024;
/// Packets, digests and notifications that a client may leave unread; more are dropped and counted.
const DATA_QUEUE: usize = 4096;
/// Bytes of them; and of errors, which tell a client of what it sent itself.
const DATA_BYTES: usize = 8 << 20;
const ERROR_BYTES: usize = 256 << 10;
/// Streams that may be open at a time, all roles together.
const MAX_STREAMS: usize = 512;

type Item = Result<StreamMessageResponse, Status>;

/// All streams of the device.
pub struct Clients {
    pub arbiter: Arbiter,
    senders: HashMap<StreamId, Sender>,
    last_id: u64,
    /// Messages that were dropped because a client did not read fast enough.
    pub dropped: AtomicU64,
}

struct Sender {
    control: mpsc::Sender<Item>,
    data: mpsc::Sender<Waiting>,
    /// Bytes for what waits in `data`.
    room: Arc<Semaphore>,
}

/// A message and the bytes that it takes while it waits.
type Waiting = (StreamMessageResponse, OwnedSemaphorePermit);

impl Clients {
    pub fn new(device_id: u64) -> Self {
        Self {
            arbiter: Arbiter::new(device_id),
            senders: HashMap::new(),
            last_id: 0,
            dropped: AtomicU64::new(0),
        }
    }

    /// A new stream, and what its client will get.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when there are too many.
    pub fn open(&mut self) -> Result<(StreamId, Outgoing), Status> {
        if self.senders.len() >= MAX_STREAMS {
            bail!(
                resource_exhausted,
                "{MAX_STREAMS} streams are open; no more are taken"
            );
        }
        self.last_id += 1;
        let id = StreamId(self.last_id);
        let (control, control_end) = mpsc::channel(CONTROL_QUEUE);
        let (data, data_end) = mpsc::channel(DATA_QUEUE);
        let room = Arc::new(Semaphore::new(DATA_BYTES));
        let sender = Sender {
            control,
            data,
            room,
        };
        self.senders.insert(id, sender);
        let (control, data) = (control_end, data_end);
        Ok((id, Outgoing { control, data }))
    }

    /// Ends a stream, with a status when it was the client's fault, and tells the others.
    pub fn close(&mut self, id: StreamId, status: Option<Status>) {
        if let (Some(sender), Some(status)) = (self.senders.remove(&id), status) {
            let _ = sender.control.try_send(Err(status)); // a full queue ends as well: the sender is gone
        }
        let notices = self.arbiter.disconnect(id);
        self.notify(notices);
    }

    /// Sends notices; a client that reads none of them is cut off.
    pub fn notify(&mut self, notices: Notices) {
        let mut deaf = Vec::new();
        for (id, message) in notices {
            let update = Some(Update::Arbitration(message));
            let item = Ok(StreamMessageResponse { update });
            let sender = self.senders.get(&id);
            if sender.is_some_and(|s| s.control.try_send(item).is_err()) {
                deaf.push(id);
            }
        }
        for id in deaf {
            tracing::warn!(
                stream = id.0,
                "a client does not read its stream; it is cut off"
            );
            self.close(id, None);
        }
    }

    /// Sends to one stream; false when there was no room or no stream.
    pub fn send(&self, id: StreamId, update: Update) -> bool {
        let max = match update {
            Update::Error(_) => ERROR_BYTES,
            _ => DATA_BYTES,
        };
        let message = StreamMessageResponse {
            update: Some(update),
        };
        let sent = self.senders.get(&id).is_some_and(|s| s.put(message, max));
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// Sends to the primary of each role; false when nobody got it.
    pub fn send_to_primaries(&self, update: &Update) -> bool {
        let sent = self
            .arbiter
            .primaries()
            .map(|id| self.send(id, update.clone()));
        sent.fold(false, |any, sent| any | sent)
    }
}

impl Sender {
    /// False when there is no room, or when more than `max` bytes would wait.
    fn put(&self, message: StreamMessageResponse, max: usize) -> bool {
        let bytes = message.encoded_len();
        let waiting = DATA_BYTES - self.room.available_permits();
        if waiting > 0 && waiting + bytes > max {
            return false;
        }
        let permits = bytes.min(DATA_BYTES) as u32;
        let permit = self.room.clone().try_acquire_many_owned(permits);
        permit.is_ok_and(|permit| self.data.try_send((message, permit)).is_ok())
    }
}

/// The messages to one client, arbitration before everything else.
pub struct Outgoing {
    control: mpsc::Receiver<Item>,
    data: mpsc::Receiver<Waiting>,
}

impl Outgoing {
    /// Moves what waits to `out`, arbitration first.
    pub fn take(&mut self, out: &mut VecDeque<StreamMessageResponse>) {
        // An error would end the stream: only `Clients::close` sends one.
        while let Ok(Ok(message)) = self.control.try_recv() {
            out.push_back(message);
        }
        while let Ok((message, _)) = self.data.try_recv() {
            out.push_back(message);
        }
    }
}

impl Stream for Outgoing {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if let Poll::Ready(item) = self.control.poll_recv(cx) {
            return Poll::Ready(item);
        }
        match self.data.poll_recv(cx) {
            Poll::Ready(Some((message, _))) => Poll::Ready(Some(Ok(message))),
            // Both senders go together; the end of `control` ends the stream.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_streams_are_refused_and_one_that_ends_makes_room() {
        let mut clients = Clients::new(1);
        let open: Vec<_> = (0..MAX_STREAMS).map(|_| clients.open().unwrap()).collect();
        let refused = clients.open().err().unwrap();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert_eq!(refused.message(), "512 streams are open; no more are taken");
        clients.close(open[0].0, None);
        assert!(clients.open().is_ok());
        assert!(clients.open().is_err());
    }

    #[test]
    fn a_client_that_does_not_read_keeps_so_many_bytes_and_no_more() {
        use crate::proto::p4rt::{PacketIn, StreamError};
        let mut clients = Clients::new(1);
        let (id, mut outgoing) = clients.open().unwrap();
        let packet = || {
            Update::Packet(PacketIn {
                payload: vec![0; 100_000].into(),
                ..PacketIn::default()
            })
        };
        let error = || {
            Update::Error(StreamError {
                message: "x".repeat(10_000),
                ..StreamError::default()
            })
        };
        let errors = (0..100).take_while(|_| clients.send(id, error())).count();
        assert!((1..=ERROR_BYTES / 10_000).contains(&errors), "{errors}");
        let packets = (0..200).take_while(|_| clients.send(id, packet())).count();
        let room = DATA_BYTES - errors * 10_000;
        assert!((1..=room / 100_000).contains(&packets), "{packets}");
        assert_eq!(clients.dropped.load(Ordering::Relaxed), 2);
        // What was read makes room.
        let mut out = VecDeque::new();
        outgoing.take(&mut out);
        assert_eq!(out.len(), errors + packets);
        assert!(clients.send(id, packet()));
    }
}
