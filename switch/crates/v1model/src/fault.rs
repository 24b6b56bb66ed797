// SPDX-License-Identifier: Apache-2.0
//! A fault of ours while a client's program is loaded is an error for that client, and not the end of the switch.
//!
//! Malformed programs are refused by checks; this is the net below them. Nothing but loading may use it: the packet path
//! changes state that is not whole again after a fault.

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

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
