// SPDX-License-Identifier: Apache-2.0
//! The two errors of this crate: a program that cannot be loaded, and a control-plane request that is refused.
//!
//! A fault of ours while a client's program is loaded is an error for that client, and not the end of the switch.
//!
//! Malformed programs are refused by checks; this is the net below them. Nothing but loading may use it: the packet path
//! changes state that is not whole again after a fault.

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::bits::BitsError;

/// A BMv2 JSON that cannot be loaded; `path` is the JSON pointer (RFC 6901) of the culprit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct LoadError {
    /// Where in the JSON, e.g. `/actions/3/primitives/0/op`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl LoadError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> LoadError {
        LoadError {
            path: path.into(),
            message: shortened(message.into()),
        }
    }
}

/// A text with its middle left out where it is long, as a name of the program may be: what is wrong stands at its beginning, what is
/// allowed at its end.
fn shortened(text: String) -> String {
    const FIRST: usize = 300;
    const LAST: usize = 150;
    let count = text.chars().count();
    if count <= FIRST + LAST {
        return text;
    }
    let first: String = text.chars().take(FIRST).collect();
    let last: String = text.chars().skip(count - LAST).collect();
    format!(
        "{first} ... ({} characters left out) ... {last}",
        count - FIRST - LAST
    )
}

/// Machine-readable kind of a refused request; p4rt maps each to the gRPC code of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such object or entry.
    NotFound,
    /// An entry with this key, or a member or group with this id, exists.
    AlreadyExists,
    /// The table, profile or group is full.
    ResourceExhausted,
    /// The request is malformed.
    InvalidArgument,
    /// The program forbids it (const table, const default action, @tableonly, @defaultonly).
    PermissionDenied,
    /// Not supported here.
    Unimplemented,
    /// An index or a value is out of its range.
    OutOfRange,
    /// Refused in the present state, e.g. a member still in use.
    FailedPrecondition,
}

/// A refused control-plane request; nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ControlError {
    /// Stable kind.
    pub kind: ErrorKind,
    /// What was attempted, where, and what is allowed.
    pub message: String,
}

/// Result of a control-plane request.
pub type ControlResult<T = ()> = Result<T, ControlError>;

/// A refusal; its kind is INVALID_ARGUMENT where none is named: `refusal!("index {index} is negative")`,
/// `refusal!(NotFound, "…")`.
#[macro_export]
macro_rules! refusal {
    ($text:literal $($rest:tt)*) => { $crate::refusal!(InvalidArgument, $text $($rest)*) };
    ($kind:ident, $($text:tt)+) => {
        $crate::ControlError::new($crate::ErrorKind::$kind, format!($($text)+))
    };
}

/// Returns with this refusal.
#[macro_export]
macro_rules! refuse {
    ($($text:tt)+) => { return Err($crate::refusal!($($text)+).into()) };
}

/// Puts the place in front of what may be refused: `table I.t: …`.
pub trait At {
    #[must_use]
    fn at(self, place: impl std::fmt::Display) -> Self;
}

impl<T> At for Result<T, ControlError> {
    fn at(self, place: impl std::fmt::Display) -> Self {
        self.map_err(|refusal| refusal.at(place))
    }
}

impl ControlError {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ControlError {
        ControlError {
            kind,
            message: message.into(),
        }
    }

    /// The same error with the place in front: `table I.t: …`.
    pub fn at(mut self, place: impl std::fmt::Display) -> ControlError {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl From<BitsError> for ControlError {
    fn from(error: BitsError) -> ControlError {
        ControlError::new(ErrorKind::OutOfRange, error.to_string())
    }
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// A panic that was caught, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(String);

/// Runs `f`, which may not leave anything half changed when it panics.
///
/// # Errors
/// The panic's message.
pub fn contained<R>(f: impl FnOnce() -> R) -> Result<R, Fault> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    CONTAINED.set(before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Fault(text.unwrap_or_else(|| "a panic without a message".to_string()))
    })
}

/// True on a thread that runs in `contained`: a process that ends at panics goes on after this one.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_flag_is_as_before() {
        assert!(!is_contained());
        let fault = contained(|| {
            assert!(contained(is_contained).unwrap() && is_contained());
            panic!("number {}", 7)
        });
        assert_eq!(fault, Err::<(), _>(Fault("number 7".to_string())));
        assert!(!is_contained());
    }
}
