// SPDX-License-Identifier: Apache-2.0
//! The Write call: updates are checked here, applied on the switch's thread in short slices (P4Runtime 1.5 §12).

use std::iter::Peekable;
use std::sync::{Arc, PoisonError};

use tonic::Status;

use crate::binding::Binding;
use crate::config::State;
use crate::entity::{self, Op};
use crate::error::{batch_status, MetadataRoom, Refusal};
use crate::proto::p4rt::write_request::Atomicity;
use crate::proto::p4rt::{Update, WriteRequest, WriteResponse};
use crate::shared::{gone, Shared};
use crate::target::Target;

/// What is applied between two packets, as [`Op::work`] counts it: less than 100 µs. A single update may take a bit more
/// than this, and has then a slice of its own.
const SLICE: usize = 96;
/// Updates that are checked where others are served as well.
const LONG: usize = 1_000;
/// Cells of an array that one update changes at most; the rest of it is another one.
const SLICE_CELLS: u32 = 2048;

type Results = Vec<Result<(), Refusal>>;

/// # Errors
/// As P4Runtime 1.5 §12: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION in this order, then UNKNOWN with one error
/// per update.
pub async fn write(
    shared: Arc<Shared>,
    request: WriteRequest,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    check(&shared, &request)?;
    // A task of its own: a client that hangs up does not leave half a batch behind.
    tokio::spawn(apply_batch(shared, request, metadata))
        .await
        .map_err(|e| Status::internal(format!("the write failed: {e}")))?
}

/// As `write`, without a task of its own: for a caller that waits for the end.
///
/// # Errors
/// As `write`.
pub async fn write_here(
    shared: Arc<Shared>,
    request: WriteRequest,
) -> Result<WriteResponse, Status> {
    check(&shared, &request)?;
    apply_batch(shared, request, MetadataRoom::max()).await
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

#[allow(deprecated)]
fn check_sender(shared: &Shared, request: &WriteRequest) -> Result<(), Status> {
    shared.clients().arbiter.check_primary(
        request.device_id,
        &request.role,
        request.election_id.as_ref(),
    )
}

async fn apply_batch(
    shared: Arc<Shared>,
    request: WriteRequest,
    metadata: MetadataRoom,
) -> Result<WriteResponse, Status> {
    let request = Arc::new(request);
    loop {
        let loaded = shared.state.read().await.current()?.loaded.clone();
        let (checked, updates) = (loaded.clone(), request.clone());
        let check = move || plan(&checked.binding, &updates.updates);
        // A long batch keeps no thread that serves others.
        let long = request.updates.len() > LONG && tokio::runtime::Handle::try_current().is_ok();
        let (results, ops) = match long {
            true => tokio::task::spawn_blocking(check)
                .await
                .map_err(|e| Status::internal(format!("the write failed: {e}")))?,
            false => check(),
        };
        let mut state = shared.state.clone().write_owned().await;
        check_sender(&shared, &request)?; // the primary may have changed while this write waited
        if !Arc::ptr_eq(&state.current()?.loaded, &loaded) {
            continue; // another config was set meanwhile
        }
        state.writes += 1;
        let results = apply(&shared, state, results, ops).await?;
        return batch_status("Write", &results, metadata).map(|()| WriteResponse {});
    }
}

/// The checked updates with their places in the batch.
type Ops = Vec<(usize, Op)>;

fn plan(binding: &Binding, updates: &[Update]) -> (Results, Ops) {
    let mut results = Vec::with_capacity(updates.len());
    let mut ops = Vec::with_capacity(updates.len());
    for (index, update) in updates.iter().enumerate() {
        match entity::plan(binding, update) {
            Ok(Op::Array(op)) => {
                ops.extend(
                    op.split(SLICE_CELLS)
                        .into_iter()
                        .map(|op| (index, Op::Array(op))),
                );
                results.push(Ok(()));
            }
            Ok(op) => {
                ops.push((index, op));
                results.push(Ok(()));
            }
            Err(refusal) => results.push(Err(refusal)),
        }
    }
    (results, ops)
}

async fn apply(
    shared: &Shared,
    mut state: tokio::sync::OwnedRwLockWriteGuard<State>,
    mut results: Results,
    ops: Ops,
) -> Result<Results, Status> {
    if let Some(saved) = &mut state.saved {
        if let Some(pipeline) = &mut saved.pipeline {
            let pipeline = pipeline.get_mut().unwrap_or_else(PoisonError::into_inner);
            for (index, op) in ops {
                note(
                    &mut results,
                    index,
                    entity::apply(op, &mut Target::Saved { pipeline }, &mut saved.soft, 0),
                );
            }
        }
        return Ok(results);
    }
    let mut ops = ops.into_iter().peekable();
    loop {
        let slice = next_slice(&mut ops);
        if slice.is_empty() {
            return Ok(results);
        }
        let digests = shared.digests_arc();
        let call = shared.handle.call(move |device, now| {
            let mut old = Vec::new();
            if let Some(running) = &mut state.running {
                for (index, op) in slice {
                    let mut target = Target::Running {
                        device,
                        digests: &digests,
                        old: &mut old,
                    };
                    note(
                        &mut results,
                        index,
                        entity::apply(op, &mut target, &mut running.soft, now),
                    );
                }
            }
            (state, results, old)
        });
        let old;
        (state, results, old) = call.await.map_err(gone)?;
        drop(old);
    }
}

fn next_slice(ops: &mut Peekable<impl Iterator<Item = (usize, Op)>>) -> Ops {
    let (mut slice, mut work) = (Vec::new(), 0);
    while let Some((_, op)) = ops.peek() {
        work += op.work();
        if work > SLICE && !slice.is_empty() {
            break;
        }
        slice.extend(ops.next());
    }
    slice
}

/// An update in several pieces reports its first error.
fn note(results: &mut Results, index: usize, result: Result<(), Refusal>) {
    if results[index].is_ok() {
        results[index] = result;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::array::ArrayOp;

    #[test]
    fn a_slice_holds_what_fits_between_two_packets() {
        let array = |cells| Op::Array(ArrayOp::nothing(cells));
        let works: Vec<u32> = vec![1, 1, 64, 5_000, 1, 3_000, 2_048, 32, 32, 32];
        let ops = works.iter().map(|cells| (0, array(*cells)));
        let mut ops = ops.peekable();
        let mut slices = Vec::new();
        loop {
            let slice = next_slice(&mut ops);
            if slice.is_empty() {
                break;
            }
            let work: usize = slice.iter().map(|(_, op)| op.work()).sum();
            assert!(work <= SLICE || slice.len() == 1, "{work}");
            slices.push(slice.len());
        }
        assert_eq!(slices, [3, 1, 2, 4]);
        let many = (0..1_000).map(|_| (0, array(1)));
        assert_eq!(next_slice(&mut many.peekable()).len(), SLICE);
    }
}
