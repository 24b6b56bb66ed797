// SPDX-License-Identifier: Apache-2.0
//! The exceptions: a refused P4Runtime call with its status, bad messages, bad requests.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
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
