// SPDX-License-Identifier: Apache-2.0
//! What a binary does at a panic.

/// From now on a panic on any thread is reported and ends the process: one that is half dead would be worse than one that
/// is gone. One in the loading of a program is only reported: it leaves nothing half done. For binaries only; what is
/// linked into another program must not do it.
pub fn end_at_a_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !v1model::error::is_contained() {
            std::process::abort();
        }
    }));
}
