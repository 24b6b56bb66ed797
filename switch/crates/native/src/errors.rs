// SPDX-License-Identifier: Apache-2.0
//! The exceptions: a refused P4Runtime call with its status, bad messages, bad requests, Ctrl-C while a simulation runs:
//! waits for the machine of real hosts look whether a handler of Python's has raised something.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};
use tonic::Status;

pyo3::create_exception!(
    fairlane_switch.native,
    P4RuntimeError,
    PyRuntimeError,
    "A refused call: `code` is the gRPC status code's number, `details` a serialized google.rpc.Status."
);

/// The exception of a refused call.
pub fn refused(py: Python<'_>, status: &Status) -> PyErr {
    let error = P4RuntimeError::new_err(status.message().to_owned());
    let value = error.value(py);
    let set = value
        .setattr("code", status.code() as i32)
        .and_then(|()| value.setattr("message", status.message()))
        .and_then(|()| value.setattr("details", PyBytes::new(py, status.details())));
    match set {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// A message that cannot be decoded.
pub fn undecodable(what: &str, error: &prost::DecodeError) -> PyErr {
    PyValueError::new_err(format!("not a {what} of p4.v1: {error}"))
}

/// A request or a configuration that cannot be met.
pub fn bad_value(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

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
