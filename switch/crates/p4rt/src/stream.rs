// SPDX-License-Identifier: Apache-2.0
//! One client's StreamChannel: arbitration, packet-outs and digest acknowledgements come in (P4Runtime 1.5 §16).

use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status, Streaming};

use crate::access::Access;
use crate::arbitration::{StreamId, OBSERVER_ROLE};
use crate::error::{quote, refusal, refuse, short, Refusal, NO_PIPELINE};
use crate::proto::p4rt::stream_error::Details;
use crate::proto::p4rt::stream_message_request::Update as Incoming;
use crate::proto::p4rt::stream_message_response::Update as Outgoing;
use crate::proto::p4rt::{
    DigestListAck, DigestListAckError, PacketOut, PacketOutError, Role, StreamError,
    StreamMessageRequest, StreamOtherError,
};
use crate::shared::{gone, Shared};

/// Longest frame of a packet-out, header included.
const MAX_FRAME_BYTES: usize = 65_535;
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
    match message.update {
        Some(Incoming::Arbitration(update)) => {
            // Waits for updates that are being applied: they belong to the present primary.
            let _gate = shared.state.write().await;
            let mut clients = shared.clients();
            let was = clients.arbiter.is_primary(id);
            let notices = clients.arbiter.update(id, &update)?;
            if !was && clients.arbiter.is_primary(id) {
                shared.digests().new_client();
            }
            clients.tell(notices);
            Ok(())
        }
        Some(Incoming::Packet(packet)) => {
            if let Err(refusal) = packet_out(shared, id, &packet).await {
                let details = Details::PacketOut(PacketOutError {
                    packet_out: Some(packet),
                });
                report(shared, id, refusal, details);
            }
            Ok(())
        }
        Some(Incoming::DigestAck(ack)) => {
            if let Err(refusal) = digest_ack(shared, id, &ack) {
                let details = Details::DigestListAck(DigestListAckError {
                    digest_list_ack: Some(ack),
                });
                report(shared, id, refusal, details);
            }
            Ok(())
        }
        Some(Incoming::Other(other)) => {
            let refusal = refusal!(
                unimplemented,
                "messages of the type {} are not supported",
                quote(&other.type_url)
            );
            report(
                shared,
                id,
                refusal,
                Details::Other(StreamOtherError { other: Some(other) }),
            );
            Ok(())
        }
        None => {
            let refusal = Refusal::invalid(
                "the stream message is empty; known: arbitration, packet, digest_ack",
            );
            report(
                shared,
                id,
                refusal,
                Details::Other(StreamOtherError { other: None }),
            );
            Ok(())
        }
    }
}

fn report(shared: &Shared, id: StreamId, refusal: Refusal, details: Details) {
    let error = StreamError {
        canonical_code: refusal.code as i32,
        message: refusal.message,
        details: Some(details),
        ..Default::default()
    };
    shared.clients().send(id, Outgoing::Error(error));
}

fn check_primary(shared: &Shared, id: StreamId, what: &str) -> Result<(), Refusal> {
    let arbiter = &shared.clients().arbiter;
    match arbiter.is_primary(id) {
        true => Ok(()),
        false => Err(refusal!(
            denied,
            "{} (only the primary may send {what})",
            arbiter.why_not_primary(id)
        )),
    }
}

async fn packet_out(shared: &Shared, id: StreamId, packet: &PacketOut) -> Result<(), Refusal> {
    check_primary(shared, id, "a packet-out")?;
    let loaded = shared
        .running()
        .ok_or_else(|| Refusal::new(Code::FailedPrecondition, NO_PIPELINE))?;
    let frame = match &loaded.binding.packet_out {
        Some(header) => header
            .encode(&packet.metadata, &packet.payload)
            .map_err(|e| Refusal::invalid(e.message))?,
        None if packet.metadata.is_empty() => packet.payload.to_vec(),
        None => {
            refuse!(
                invalid,
                "metadata is given, but P4Info has no packet_out header"
            )
        }
    };
    if frame.len() > MAX_FRAME_BYTES {
        refuse!(
            invalid,
            "the packet has {} bytes; at most {MAX_FRAME_BYTES} are allowed",
            frame.len()
        );
    }
    let sent = shared
        .handle
        .call(move |device, now| device.packet_out(now, &frame))
        .await;
    sent.map_err(|e| Refusal::new(Code::Unavailable, gone(e).message()))
}

fn digest_ack(shared: &Shared, id: StreamId, ack: &DigestListAck) -> Result<(), Refusal> {
    check_primary(shared, id, "a digest acknowledgement")?;
    let loaded = shared
        .running()
        .ok_or_else(|| Refusal::new(Code::FailedPrecondition, NO_PIPELINE))?;
    loaded
        .binding
        .digests
        .get(ack.digest_id)
        .map_err(|e| Refusal::invalid(e.message))?;
    shared.digests().ack(ack.digest_id, ack.list_id);
    Ok(())
}
