// SPDX-License-Identifier: Apache-2.0
//! The Write call: updates are checked here, applied on the switch's thread in short slices (P4Runtime 1.5 §12).

use std::iter::Peekable;
use std::sync::{Arc, PoisonError};

use bytes::{Buf, Bytes};
use prost::Message;
use proto::weigh::{Fields, Refused, Scale};
use tokio::sync::OwnedRwLockWriteGuard;
use tonic::Status;

use crate::binding::Binding;
use crate::config::State;
use crate::entity::{Op, Planner};
use crate::error::{batch_status, clip, refusal, Checked, MetadataRoom, TEXT_BYTES};
use crate::proto::p4rt::write_request::Atomicity;
use crate::proto::p4rt::{Update, WriteRequest, WriteResponse};
use crate::shared::{gone, Shared};
use crate::target::{Forwarding, Target};

/// What is applied between two packets, as [`Op::work`] counts it: less than 100 µs. A single update may take a bit more
/// than this, and has then a slice of its own.
const SLICE: usize = 96;
/// Updates that are checked at a time, and what they may take on the wire where others are served as well.
const PIECE: usize = 1_000;
const PIECE_BYTES: usize = 256 << 10;

/// The number of `updates` in a WriteRequest.
pub const UPDATES: u32 = 4;
/// What an update takes while its Write goes on, once it was applied: its result.
const RESULT_BYTES: usize = 128;
/// Refusals whose texts are kept: more than an answer has room for.
const TEXTS: usize = 4_096;

/// What a WriteRequest takes at most while it is served: updates are decoded one after another.
///
/// # Errors
/// [`Refused`] when that is more than `most`, or not a message.
pub fn weigh(message: &[u8], most: usize) -> Result<usize, Refused> {
    let scale = Scale::of("p4.v1.Update").ok_or(Refused::TooMuch)?;
    let (mut results, mut longest) = (0, 0);
    for field in Fields(message) {
        let field = field?;
        if field.number == UPDATES {
            results += RESULT_BYTES;
            longest = longest.max(scale.weigh(field.value.unwrap_or_default(), most)?);
        }
        if results + longest > most {
            return Err(Refused::TooMuch);
        }
    }
    Ok(results + longest)
}

/// The updates of a Write that were not looked at yet; each is decoded when it is its turn.
enum Updates {
    /// In a caller's own message.
    Decoded(std::vec::IntoIter<Update>),
    /// In a client's, from here on.
    Wire(Bytes),
}

impl Updates {
    /// Bytes on the wire, 0 where they are not known.
    fn bytes(&self) -> usize {
        match self {
            Updates::Decoded(_) => 0,
            Updates::Wire(rest) => rest.len(),
        }
    }
}

impl Iterator for Updates {
    type Item = Checked<Update>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = match self {
            Updates::Decoded(updates) => return updates.next().map(Ok),
            Updates::Wire(rest) => rest,
        };
        loop {
            let field = Fields(rest).next()?.ok()?; // the gate has read it to its end
            let bytes = field.whole.len();
            // Out of a slice, so that its texts are copies: else an entry would hold all of the request.
            let update = (field.number == UPDATES).then(|| {
                let update = Update::decode(field.value.unwrap_or_default());
                update.map_err(|e| refusal!("the update is malformed: {e}"))
            });
            rest.advance(bytes);
            if update.is_some() {
                return update;
            }
        }
    }
}

/// The updates stand in `wire`, the message as it came, or in the request.
///
/// # Errors
/// As P4Runtime 1.5 §12: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION in this order, then UNKNOWN with one error
/// per update.
pub async fn write(
    shared: Arc<Shared>,
    mut request: WriteRequest,
    wire: Option<Bytes>,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    check_sender(&shared, &request)?;
    if request.atomicity() != Atomicity::ContinueOnError {
        let name = request.atomicity().as_str_name();
        return Err(Status::unimplemented(format!(
            "atomicity {name} is not supported; only CONTINUE_ON_ERROR is"
        )));
    }
    let updates = match wire {
        Some(message) => Updates::Wire(message),
        None => Updates::Decoded(std::mem::take(&mut request.updates).into_iter()),
    };
    let batch = apply_batch(shared.clone(), request, updates, metadata);
    shared.finish("the write", batch).await
}

/// # Errors
/// NOT_FOUND, PERMISSION_DENIED for anyone but the primary.
#[allow(deprecated)]
pub fn check_sender(shared: &Shared, request: &WriteRequest) -> Result<(), Status> {
    let id = request.election_id.as_ref();
    shared.check_primary(request.device_id, &request.role, id)
}

async fn apply_batch(
    shared: Arc<Shared>,
    request: WriteRequest,
    updates: Updates,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    let mut state = shared.state.clone().write_owned().await;
    check_sender(&shared, &request)?; // the primary may have changed while this write waited
    let loaded = state.current()?.loaded.clone();
    state.writes += 1;
    // A long Write occupies no thread that serves others.
    let is_long = updates.bytes() > PIECE_BYTES;
    let mut batch = Batch {
        updates,
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

/// The updates that are left, and what became of the others.
struct Batch {
    updates: Updates,
    results: Vec<Checked>,
    refused: usize,
}

impl Batch {
    /// Checks the next updates.
    fn plan(mut self, binding: &Binding) -> (Batch, Vec<Op>) {
        let mut planner = Planner::new(binding);
        let bytes = self.updates.bytes();
        for _ in 0..PIECE {
            if bytes - self.updates.bytes() >= PIECE_BYTES {
                break;
            }
            let Some(update) = self.updates.next() else {
                break;
            };
            let index = self.results.len();
            self.results.push(Ok(()));
            let planned = update.and_then(|update| planner.plan(index, &update));
            self.note(index, planned);
        }
        (self, planner.ops)
    }

    fn apply(&mut self, ops: Vec<Op>, mut target: Target) {
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
            refusal
                .message
                .truncate(clip(&refusal.message, bytes).len());
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
    let mut ops = ops.into_iter().peekable();
    loop {
        let slice = next_slice(&mut ops);
        if slice.is_empty() {
            return Ok((state, batch));
        }
        let digests = shared.digests_arc();
        let call = shared.handle.call(move |device, now| {
            let mut old = Vec::new();
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
                batch.apply(slice, target);
            }
            (state, batch, old)
        });
        let old;
        (state, batch, old) = call.await.map_err(gone)?;
        drop(old);
    }
}

fn next_slice(ops: &mut Peekable<std::vec::IntoIter<Op>>) -> Vec<Op> {
    let (mut slice, mut work) = (Vec::new(), 0);
    while let Some(op) = ops.next_if(|op| slice.is_empty() || work + op.work <= SLICE) {
        work += op.work;
        slice.push(op);
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let slice = next_slice(&mut ops);
            if slice.is_empty() {
                break;
            }
            let work: usize = slice.iter().map(|op| op.work).sum();
            assert!(work <= SLICE || slice.len() == 1, "{work}");
            slices.push(slice.len());
        }
        assert_eq!(slices, [3, 1, 2, 4]);
        let many: Vec<Op> = (0..1_000).map(|_| array(1)).collect();
        assert_eq!(next_slice(&mut many.into_iter().peekable()).len(), SLICE);
    }
}
