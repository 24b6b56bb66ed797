// SPDX-License-Identifier: Apache-2.0
//! Errors of single updates and of whole calls, and how they travel in a gRPC status (P4Runtime 1.5 §10, §12.3).

use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};
use v1model::{ControlError, ErrorKind};

use crate::proto::{p4rt, rpc};

/// finsy and other clients look for "no … forwarding pipeline config" in a FAILED_PRECONDITION.
pub const NO_PIPELINE: &str = "No forwarding pipeline config set for this device";

/// Bytes of one status: clients refuse trailers beyond their metadata limit (finsy: 64 KiB, which is 48 KiB before
/// base64). The codes of all updates go first; texts fill what is left, those of the first errors.
const DETAILS_BYTES: usize = 46 * 1024;
/// Bytes that one update takes without its text.
const BARE_ERROR_BYTES: usize = 45;
/// Bytes of texts that even a huge batch gets.
const MIN_TEXT_BYTES: usize = 1024;

/// Why one update or one read request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(Code::OutOfRange, message)
    }

    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Code::PermissionDenied, message)
    }

    pub fn exists(message: impl Into<String>) -> Self {
        Self::new(Code::AlreadyExists, message)
    }

    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// The same refusal with the place in front: `table I.t: …`.
    #[must_use]
    pub fn at(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let code = match error.kind {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::AlreadyExists,
            ErrorKind::ResourceExhausted => Code::ResourceExhausted,
            ErrorKind::InvalidArgument => Code::InvalidArgument,
            ErrorKind::PermissionDenied => Code::PermissionDenied,
            ErrorKind::FailedPrecondition => Code::FailedPrecondition,
            ErrorKind::Unimplemented => Code::Unimplemented,
            ErrorKind::OutOfRange => Code::OutOfRange,
        };
        Self::new(code, error.message)
    }
}

impl From<v1model::bits::BitsError> for Refusal {
    fn from(error: v1model::bits::BitsError) -> Self {
        Self::out_of_range(error.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Status::new(refusal.code, refusal.message)
    }
}

/// The status of a batch: `OK` when all went well, else `UNKNOWN` with one `p4.v1.Error` per request, in order.
///
/// # Errors
/// `UNKNOWN` when at least one request was refused.
pub fn batch_status(call: &str, results: &[Result<(), Refusal>]) -> Result<(), Status> {
    let failed = results.iter().filter(|r| r.is_err()).count();
    if failed == 0 {
        return Ok(());
    }
    let first = results.iter().enumerate().find_map(|(i, r)| match r {
        Ok(()) => None,
        Err(refusal) => Some((i, refusal)),
    });
    let message = match first {
        Some((index, refusal)) => {
            let text = clip(&refusal.message, 512);
            format!(
                "{call}: {failed} of {} refused; first [{index}]: {text}",
                results.len()
            )
        }
        None => String::new(),
    };
    let mut budget = DETAILS_BYTES
        .saturating_sub(results.len() * BARE_ERROR_BYTES)
        .max(MIN_TEXT_BYTES);
    let details = results.iter().map(|r| any_error(r, &mut budget)).collect();
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details,
    };
    Err(Status::with_details(
        Code::Unknown,
        message,
        Bytes::from(status.encode_to_vec()),
    ))
}

fn any_error(result: &Result<(), Refusal>, budget: &mut usize) -> prost_types::Any {
    let error = match result {
        Ok(()) => p4rt::Error::default(),
        Err(refusal) => {
            let message = clip(&refusal.message, *budget);
            *budget -= message.len();
            p4rt::Error {
                canonical_code: refusal.code as i32,
                message,
                ..Default::default()
            }
        }
    };
    prost_types::Any {
        type_url: "type.googleapis.com/p4.v1.Error".into(),
        value: error.encode_to_vec(),
    }
}

/// The first `max_bytes` of a text, cut between two characters.
fn clip(text: &str, max_bytes: usize) -> String {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_good_is_ok() {
        assert!(batch_status("Write", &[Ok(()), Ok(())]).is_ok());
    }

    #[test]
    fn one_error_per_update_in_order() {
        let results = [
            Ok(()),
            Err(Refusal::not_found("table id 7 is unknown")),
            Ok(()),
        ];
        let status = batch_status("Write", &results).unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        assert_eq!(
            status.message(),
            "Write: 1 of 3 refused; first [1]: table id 7 is unknown"
        );
        let details = rpc::Status::decode(status.details()).unwrap();
        assert_eq!(
            (details.code, details.message.as_str()),
            (2, status.message())
        );
        let codes: Vec<i32> = details
            .details
            .iter()
            .map(|any| {
                p4rt::Error::decode(any.value.as_slice())
                    .unwrap()
                    .canonical_code
            })
            .collect();
        assert_eq!(codes, [0, Code::NotFound as i32, 0]);
    }

    #[test]
    fn a_thousand_long_texts_fit_in_trailers() {
        let results = vec![Err(Refusal::invalid("x".repeat(400))); 1000];
        let status = batch_status("Write", &results).unwrap_err();
        assert!(
            status.details().len() * 4 / 3 < 64 * 1024,
            "{} bytes",
            status.details().len()
        );
    }
}
