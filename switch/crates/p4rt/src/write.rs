// SPDX-License-Identifier: Apache-2.0
//! The Write call: updates are checked here, applied on the switch's thread in short slices (P4Runtime 1.5 §12).

use std::iter::Peekable;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use prost::Message;
use proto::weigh::{Fields, Refused, Scale};
use tokio::sync::OwnedRwLockWriteGuard;
use tonic::Status;

use crate::binding::Binding;
use crate::entity::{Op, Planner};
use crate::error::{bail, batch_status, clip, refusal, Checked, MetadataRoom, TEXT_BYTES};
use crate::pipeline::State;
use crate::proto::p4rt::write_request::Atomicity;
use crate::proto::p4rt::{Update, WriteRequest, WriteResponse};
use crate::shared::{gone, Shared};
use crate::soft::{Forwarding, Target};

/// What is applied between two packets, as [`Op::work`] counts it: less than 100 µs. A single update may take a bit more
/// than this, and has then a slice of its own.
const SLICE: usize = 96;
/// Updates that are checked at a time, and what they may take on the wire where others are served as well.
const PIECE: usize = 1_000;
const PIECE_BYTES: usize = 256 << 10;

/// The number of `updates` in a WriteRequest.
const UPDATES: u32 = 4;
/// What an update takes while its Write goes on, beside its bytes: its place among the others, and its result.
const UPDATE_BYTES: usize = 224;
/// An update that is no longer than this is not weighed: decoded it takes no more than `SHORT_TAKES`.
const SHORT: usize = 512;
const SHORT_TAKES: usize = SHORT << 8;
/// Refusals whose texts are kept: more than an answer has room for.
const TEXTS: usize = 4_096;

/// What a WriteRequest takes at most while it is served: updates are decoded one after another.
///
/// # Errors
/// [`Refused`] when that is more than `most`, or not a message.
pub fn weigh(message: &[u8], most: usize) -> Result<usize, Refused> {
    let scale = Scale::of("p4.v1.Update").ok_or(Refused::TooMuch)?;
    let (mut updates, mut longest) = (0, 0);
    for field in Fields(message) {
        let field = field?;
        if field.number == UPDATES {
            updates += UPDATE_BYTES;
            let update = field.value.unwrap_or_default();
            longest = longest.max(match update.len() {
                ..=SHORT => SHORT_TAKES,
                _ => scale.weigh(update, most)?,
            });
        }
        if updates + longest > most {
            return Err(Refused::TooMuch);
        }
    }
    Ok(updates + longest)
}

/// # Errors
/// As P4Runtime 1.5 §12: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION in this order, then UNKNOWN with one error
/// per update.
pub async fn write(
    shared: Arc<Shared>,
    request: WriteRequest,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    check_sender(&shared, &request)?;
    if request.atomicity() != Atomicity::ContinueOnError {
        let name = request.atomicity().as_str_name();
        bail!(
            unimplemented,
            "atomicity {name} is not supported; only CONTINUE_ON_ERROR is"
        );
    }
    let batch = apply_batch(shared.clone(), request, metadata);
    shared.finish("the write", batch).await
}

/// # Errors
/// NOT_FOUND, PERMISSION_DENIED for anyone but the primary.
pub fn check_sender(shared: &Shared, request: &WriteRequest) -> Result<(), Status> {
    let id = request.election_id.as_ref();
    shared.check_primary(request.device_id, &request.role, id)
}

async fn apply_batch(
    shared: Arc<Shared>,
    mut request: WriteRequest,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    let mut state = shared.state.clone().write_owned().await;
    check_sender(&shared, &request)?; // the primary may have changed while this write waited
    let loaded = state.current()?.loaded.clone();
    state.writes += 1;
    // A long Write occupies no thread that serves others.
    let is_long = request.updates.iter().map(Bytes::len).sum::<usize>() > PIECE_BYTES;
    let mut batch = Batch {
        updates: std::mem::take(&mut request.updates).into_iter(),
        results: Vec::new(),
        refused: 0,
    };
    loop {
        let (done, checked) = (batch.results.len(), loaded.clone());
        let plan = move || batch.plan(&checked.binding);
        let ops;
        (batch, ops) = match is_long {
            true => shared.aside("the write", plan).await?,
            false => plan(),
        };
        if batch.results.len() == done {
            break;
        }
        (state, batch) = apply(&shared, state, batch, ops).await?;
    }
    batch_status("Write", &batch.results, metadata).map(|()| WriteResponse {})
}

/// The updates that are left, as they came, and what became of the others.
struct Batch {
    updates: std::vec::IntoIter<Bytes>,
    results: Vec<Checked>,
    refused: usize,
}

impl Batch {
    /// Checks the next updates.
    fn plan(mut self, binding: &Binding) -> (Batch, Vec<Op>) {
        let (mut planner, mut bytes) = (Planner::new(binding), 0);
        for index in (self.results.len()..).take(PIECE) {
            let Some(update) = self.updates.next() else {
                break;
            };
            self.results.push(Ok(()));
            // Out of a slice, so that its texts are copies: else an entry would hold all of the request.
            let decoded = Update::decode(&update[..]);
            let decoded = decoded.map_err(|e| refusal!("the update is malformed: {e}"));
            let planned = decoded.and_then(|update| planner.plan(index, &update));
            self.note(index, planned);
            bytes += update.len();
            if bytes >= PIECE_BYTES {
                break;
            }
        }
        (self, planner.ops)
    }

    fn apply(&mut self, ops: impl IntoIterator<Item = Op>, mut target: Target) {
        for op in ops {
            self.note(op.index, (op.apply)(&mut target));
        }
    }

    /// An update in several pieces reports its first error.
    fn note(&mut self, index: usize, result: Checked) {
        if self.results[index].is_err() {
            return;
        }
        self.results[index] = result.map_err(|mut refusal| {
            self.refused += 1;
            let bytes = if self.refused > TEXTS { 0 } else { TEXT_BYTES };
            // A copy: a text that is only cut keeps its memory.
            refusal.message = clip(&refusal.message, bytes).to_owned();
            refusal
        });
    }
}

async fn apply(
    shared: &Shared,
    mut state: OwnedRwLockWriteGuard<State>,
    mut batch: Batch,
    ops: Vec<Op>,
) -> Result<(OwnedRwLockWriteGuard<State>, Batch), Status> {
    if let Some(saved) = &mut state.saved {
        if let Some(pipeline) = &mut saved.pipeline {
            let (pipeline, replication) =
                pipeline.get_mut().unwrap_or_else(PoisonError::into_inner);
            let target = Target {
                binding: &saved.loaded.binding,
                soft: &mut saved.soft,
                state: Forwarding::Saved(pipeline, replication),
                now: 0,
            };
            batch.apply(ops, target);
        }
        return Ok((state, batch));
    }
    let (digests, mut ops) = (shared.digests_arc(), ops.into_iter().peekable());
    let (mut old, mut work) = (Vec::new(), Some((state, batch)));
    let call = shared.handle.call_in_pieces(move |device, now| {
        let (mut state, mut batch) = work.take()?;
        if let Some(running) = &mut state.running {
            let target = Target {
                binding: &running.loaded.binding,
                soft: &mut running.soft,
                state: Forwarding::Running {
                    device,
                    digests: &digests,
                    old: &mut old,
                },
                now,
            };
            batch.apply(slice(&mut ops), target);
        }
        let is_done = state.running.is_none() || ops.peek().is_none();
        work = Some((state, batch));
        // What is no longer needed is dropped where no packets wait.
        work.take_if(|_| is_done)
            .map(|(state, batch)| (state, batch, std::mem::take(&mut old)))
    });
    let (state, batch, _) = call.await.map_err(gone)?;
    Ok((state, batch))
}

/// The next ops that fit between two packets, but at least one.
fn slice(ops: &mut Peekable<impl Iterator<Item = Op>>) -> impl Iterator<Item = Op> + '_ {
    let mut work = 0;
    std::iter::from_fn(move || {
        let op = ops.next_if(|op| work == 0 || work + op.work <= SLICE)?;
        work += op.work;
        Some(op)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with a message in it.
    fn field(number: u32, message: &[u8]) -> Vec<u8> {
        let mut field = Vec::new();
        prost::encoding::encode_key(
            number,
            prost::encoding::WireType::LengthDelimited,
            &mut field,
        );
        prost::encoding::encode_varint(message.len() as u64, &mut field);
        field.extend_from_slice(message);
        field
    }

    #[test]
    fn a_short_update_takes_no_more_than_is_counted_for_it() {
        let update = proto::descriptors().get_message_by_name("p4.v1.Update");
        let mut places = vec![(update.unwrap(), Vec::new())];
        let mut heaviest = 0;
        // The heaviest that few bytes can hold: a list of empty messages, at each place of an update that has one.
        while let Some((message, above)) = places.pop() {
            for each in message.fields() {
                let kind = each.kind();
                let Some(inner) = kind.as_message().filter(|_| above.len() < 7) else {
                    continue;
                };
                let list = field(each.number(), &[]).repeat(SHORT / 2);
                let outer = above.iter().rev();
                let update = outer.fold(list, |inside, number| field(*number, &inside));
                let weight = Scale::of("p4.v1.Update")
                    .unwrap()
                    .weigh(&update, usize::MAX);
                heaviest = heaviest.max(weight.unwrap());
                places.push((inner.clone(), [&above[..], &[each.number()]].concat()));
            }
        }
        assert!(
            (SHORT_TAKES / 2..=SHORT_TAKES).contains(&heaviest),
            "{heaviest}"
        );
    }

    #[test]
    fn a_slice_holds_what_fits_between_two_packets() {
        let array = |cells: u32| Op {
            index: 0,
            work: 1 + cells as usize / 32,
            apply: Box::new(|_: &mut Target| Ok(())),
        };
        let works: Vec<u32> = vec![1, 1, 64, 5_000, 1, 3_000, 2_048, 32, 32, 32];
        let ops: Vec<Op> = works.iter().map(|cells| array(*cells)).collect();
        let mut ops = ops.into_iter().peekable();
        let mut slices = Vec::new();
        loop {
            let slice: Vec<Op> = slice(&mut ops).collect();
            if slice.is_empty() {
                break;
            }
            let work: usize = slice.iter().map(|op| op.work).sum();
            assert!(work <= SLICE || slice.len() == 1, "{work}");
            slices.push(slice.len());
        }
        assert_eq!(slices, [3, 1, 2, 4]);
        let many: Vec<Op> = (0..1_000).map(|_| array(1)).collect();
        assert_eq!(slice(&mut many.into_iter().peekable()).count(), SLICE);
    }
}
