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
use crate::entity::{self, Op};
use crate::error::{batch_status, refusal, MetadataRoom, Refusal};
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

type Results = Vec<Result<(), Refusal>>;

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

/// The updates of a Write that were not looked at yet.
enum Updates {
    /// In a caller's own message.
    Decoded(std::vec::IntoIter<Update>),
    /// In a client's, from here on.
    Wire(Bytes),
}

/// One of them.
enum One {
    Decoded(Box<Update>),
    Wire(Bytes),
}

impl Updates {
    /// The next one with its bytes on the wire, 0 where they are not known.
    fn next(&mut self) -> Option<(One, usize)> {
        let rest = match self {
            Updates::Decoded(updates) => {
                let update = Box::new(updates.next()?);
                return Some((One::Decoded(update), 0));
            }
            Updates::Wire(rest) => rest,
        };
        loop {
            let field = Fields(rest).next()?.ok()?; // the gate has read it to its end
            let (number, bytes) = (field.number, field.whole.len());
            let value = rest.slice_ref(field.value.unwrap_or_default());
            rest.advance(bytes);
            if number == UPDATES {
                return Some((One::Wire(value), bytes));
            }
        }
    }
}

impl One {
    /// # Errors
    /// INVALID_ARGUMENT when it is none.
    fn decode(self) -> Result<Update, Refusal> {
        match self {
            One::Decoded(update) => Ok(*update),
            // Out of a slice, so that its texts are copies: else an entry would keep all of the request.
            One::Wire(bytes) => Update::decode(&bytes[..])
                .map_err(|e| refusal!(invalid, "the update is malformed: {e}")),
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
    check(&shared, &request)?;
    let updates = match wire {
        Some(message) => Updates::Wire(message),
        None => Updates::Decoded(std::mem::take(&mut request.updates).into_iter()),
    };
    let batch = apply_batch(shared.clone(), request, updates, metadata);
    shared.finish("the write", batch).await
}

fn check(shared: &Shared, request: &WriteRequest) -> Result<(), Status> {
    check_sender(shared, request)?;
    if request.atomicity() != Atomicity::ContinueOnError {
        return Err(Status::unimplemented(format!(
            "atomicity {} is not supported; only CONTINUE_ON_ERROR is",
            request.atomicity().as_str_name()
        )));
    }
    Ok(())
}

/// # Errors
/// NOT_FOUND, PERMISSION_DENIED for anyone but the primary.
#[allow(deprecated)]
pub fn check_sender(shared: &Shared, request: &WriteRequest) -> Result<(), Status> {
    shared.clients().arbiter.check_primary(
        request.device_id,
        &request.role,
        request.election_id.as_ref(),
    )
}

async fn apply_batch(
    shared: Arc<Shared>,
    request: WriteRequest,
    mut updates: Updates,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    let mut state = shared.state.clone().write_owned().await;
    check_sender(&shared, &request)?; // the primary may have changed while this write waited
    let loaded = state.current()?.loaded.clone();
    state.writes += 1;
    let mut batch = Batch::default();
    loop {
        let piece = Piece::next(&mut updates);
        if piece.updates.is_empty() {
            break;
        }
        let (checked, piece_bytes) = (loaded.clone(), piece.bytes);
        let plan = move || batch.plan(&checked.binding, piece.updates);
        // A long update keeps no thread that serves others.
        let ops;
        (batch, ops) = match piece_bytes > PIECE_BYTES {
            true => shared.aside("the write", plan).await?,
            false => plan(),
        };
        (state, batch) = apply(&shared, state, batch, ops).await?;
    }
    batch_status("Write", &batch.results, metadata).map(|()| WriteResponse {})
}

/// Updates that are checked at a time.
#[derive(Default)]
struct Piece {
    updates: Vec<One>,
    /// On the wire.
    bytes: usize,
}

impl Piece {
    fn next(updates: &mut Updates) -> Piece {
        let mut piece = Piece::default();
        while piece.updates.len() < PIECE && piece.bytes < PIECE_BYTES {
            let Some((update, bytes)) = updates.next() else {
                break;
            };
            piece.updates.push(update);
            piece.bytes += bytes;
        }
        piece
    }
}

/// The checked updates with their places in the batch.
type Ops = Vec<(usize, Op)>;

/// What became of the updates so far.
#[derive(Default)]
struct Batch {
    results: Results,
    refused: usize,
}

impl Batch {
    fn plan(mut self, binding: &Binding, updates: Vec<One>) -> (Batch, Ops) {
        let mut ops = Vec::with_capacity(updates.len());
        for update in updates {
            let index = self.results.len();
            self.results.push(Ok(()));
            let mut add = |op| ops.push((index, op));
            let decoded = update.decode();
            let planned = decoded.and_then(|update| entity::plan(binding, &update, &mut add));
            self.note(index, planned);
        }
        (self, ops)
    }

    fn apply(&mut self, ops: Ops, mut target: Target) {
        for (index, op) in ops {
            self.note(index, (op.apply)(&mut target));
        }
    }

    /// An update in several pieces reports its first error.
    fn note(&mut self, index: usize, result: Result<(), Refusal>) {
        if self.results[index].is_err() {
            return;
        }
        self.results[index] = result.map_err(|mut refusal| {
            self.refused += 1;
            if self.refused > TEXTS {
                refusal.message = String::new();
            }
            refusal
        });
    }
}

async fn apply(
    shared: &Shared,
    mut state: OwnedRwLockWriteGuard<State>,
    mut batch: Batch,
    ops: Ops,
) -> Result<(OwnedRwLockWriteGuard<State>, Batch), Status> {
    if let Some(saved) = &mut state.saved {
        if let Some(pipeline) = &mut saved.pipeline {
            let pipeline = pipeline.get_mut().unwrap_or_else(PoisonError::into_inner);
            let binding = &saved.loaded.binding;
            let (soft, state) = (&mut saved.soft, Forwarding::Saved(pipeline));
            batch.apply(
                ops,
                Target {
                    binding,
                    soft,
                    state,
                    now: 0,
                },
            );
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
                let (digests, old) = (&digests, &mut old);
                let (binding, soft) = (&running.loaded.binding, &mut running.soft);
                let state = Forwarding::Running {
                    device,
                    digests,
                    old,
                };
                batch.apply(
                    slice,
                    Target {
                        binding,
                        soft,
                        state,
                        now,
                    },
                );
            }
            (state, batch, old)
        });
        let old;
        (state, batch, old) = call.await.map_err(gone)?;
        drop(old);
    }
}

fn next_slice(ops: &mut Peekable<impl Iterator<Item = (usize, Op)>>) -> Ops {
    let (mut slice, mut work) = (Vec::new(), 0);
    while let Some((_, op)) = ops.peek() {
        work += op.work;
        if work > SLICE && !slice.is_empty() {
            break;
        }
        slice.extend(ops.next());
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_holds_what_fits_between_two_packets() {
        let array = |cells: u32| Op::new(1 + cells as usize / 32, |_: &mut Target| Ok(()));
        let works: Vec<u32> = vec![1, 1, 64, 5_000, 1, 3_000, 2_048, 32, 32, 32];
        let ops = works.iter().map(|cells| (0, array(*cells)));
        let mut ops = ops.peekable();
        let mut slices = Vec::new();
        loop {
            let slice = next_slice(&mut ops);
            if slice.is_empty() {
                break;
            }
            let work: usize = slice.iter().map(|(_, op)| op.work).sum();
            assert!(work <= SLICE || slice.len() == 1, "{work}");
            slices.push(slice.len());
        }
        assert_eq!(slices, [3, 1, 2, 4]);
        let many = (0..1_000).map(|_| (0, array(1)));
        assert_eq!(next_slice(&mut many.peekable()).len(), SLICE);
    }
}
