// SPDX-License-Identifier: Apache-2.0
//! The Write call: updates are checked here, applied on the switch's thread in short slices (P4Runtime 1.5 §12).

use std::sync::{Arc, PoisonError};

use tonic::Status;

use crate::binding::Binding;
use crate::config::State;
use crate::entity::{self, Op};
use crate::error::{batch_status, Refusal};
use crate::proto::p4rt::write_request::Atomicity;
use crate::proto::p4rt::{Update, WriteRequest, WriteResponse};
use crate::shared::{gone, Shared};
use crate::target::Target;

/// Updates that are applied between two packets: about 100 µs of work.
const SLICE: usize = 128;
/// Cells of an array that one slice changes at most.
const SLICE_CELLS: u32 = 4096;

type Results = Vec<Result<(), Refusal>>;

/// # Errors
/// As P4Runtime 1.5 §12: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION in this order, then UNKNOWN with one error
/// per update.
pub async fn write(shared: Arc<Shared>, request: WriteRequest) -> Result<WriteResponse, Status> {
    check(&shared, &request)?;
    // A task of its own: a client that hangs up does not leave half a batch behind.
    tokio::spawn(apply_batch(shared, request))
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
    apply_batch(shared, request).await
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

async fn apply_batch(shared: Arc<Shared>, request: WriteRequest) -> Result<WriteResponse, Status> {
    loop {
        let loaded = shared.state.read().await.current()?.loaded.clone();
        let (results, ops) = plan(&loaded.binding, &request.updates);
        let state = shared.state.clone().write_owned().await;
        check_sender(&shared, &request)?; // the primary may have changed while this write waited
        if !Arc::ptr_eq(&state.current()?.loaded, &loaded) {
            continue; // another config was set meanwhile
        }
        let results = apply(&shared, state, results, ops).await?;
        return batch_status("Write", &results).map(|()| WriteResponse {});
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
    let mut ops = ops.into_iter();
    loop {
        let slice = next_slice(&mut ops);
        if slice.is_empty() {
            return Ok(results);
        }
        let digests = shared.digests_arc();
        let call = shared.handle.call(move |device, now| {
            let Some(running) = &mut state.running else {
                return (state, results);
            };
            for (index, op) in slice {
                let mut target = Target::Running {
                    device,
                    digests: &digests,
                };
                note(
                    &mut results,
                    index,
                    entity::apply(op, &mut target, &mut running.soft, now),
                );
            }
            (state, results)
        });
        (state, results) = call.await.map_err(gone)?;
    }
}

fn next_slice(ops: &mut impl Iterator<Item = (usize, Op)>) -> Ops {
    let mut slice = Vec::with_capacity(SLICE);
    for (index, op) in ops.by_ref() {
        let long = matches!(op, Op::Array(_));
        slice.push((index, op));
        if slice.len() >= SLICE || long {
            break;
        }
    }
    slice
}

/// An update in several pieces reports its first error.
fn note(results: &mut Results, index: usize, result: Result<(), Refusal>) {
    if results[index].is_ok() {
        results[index] = result;
    }
}
