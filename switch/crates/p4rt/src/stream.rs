// SPDX-License-Identifier: Apache-2.0
//! One client's StreamChannel: arbitration, packet-outs and digest acknowledgements come in (P4Runtime 1.5 §16).

use std::sync::Arc;
use std::time::Duration;

use tonic::{Status, Streaming};

use crate::arbitration::{StreamId, OBSERVER_ROLE};
use crate::config::Loaded;
use crate::error::{code, in_range, quote, refusal, refuse, short, Checked, NO_PIPELINE};
use crate::proto::p4rt::stream_error::Details;
use crate::proto::p4rt::stream_message_request::Update as Incoming;
use crate::proto::p4rt::stream_message_response::Update as Outgoing;
use crate::proto::p4rt::*;
use crate::shared::Shared;
use crate::tls::Access;

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
        shared.clients().send(id, Outgoing::Error(error));
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
