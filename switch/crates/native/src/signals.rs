// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C while a simulation runs: waits for the machine of real hosts look whether a handler of Python's has raised something.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// What a handler has raised (KeyboardInterrupt). Handlers run in Python's main thread only.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// Runs the handlers of signals that have come; true: one has raised something, and whoever waits is to give up.
pub fn is_interrupted() -> bool {
    let Err(error) = Python::attach(|py| py.check_signals()) else {
        return false;
    };
    *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    true
}

/// Does something without the GIL.
///
/// # Errors
/// What a signal's handler raised meanwhile.
pub fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> PyResult<R> {
    let done = py.detach(f);
    let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(Ok(done), Err)
}
