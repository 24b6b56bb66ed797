// SPDX-License-Identifier: Apache-2.0
//! Saying that the switch serves: on standard output, to a file, to a file descriptor.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::FromRawFd;
use std::path::Path;

/// The line that says so.
pub fn line(grpc: SocketAddr, device_id: u64) -> String {
    format!("fairlane-switch: ready grpc={grpc} device={device_id}\n")
}

/// Writes the line everywhere it is wanted; a file appears with its whole content at once.
///
/// # Errors
/// A sentence naming the file or descriptor that could not be written.
pub fn tell(line: &str, file: Option<&Path>, fd: Option<i32>) -> Result<(), String> {
    if let Some(path) = file {
        let new = path.with_extension("new");
        std::fs::write(&new, line)
            .and_then(|()| std::fs::rename(&new, path))
            .map_err(|e| format!("cannot write the ready file {}: {e}", path.display()))?;
    }
    if let Some(fd) = fd {
        // SAFETY: the starter gave us this descriptor for this use; it is closed after it.
        let mut pipe = unsafe { File::from_raw_fd(fd) };
        pipe.write_all(b"ready\n")
            .map_err(|e| format!("cannot write to the ready descriptor {fd}: {e}"))?;
    }
    // Whoever started us may not read our standard output any more; that is no reason to stop.
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    Ok(())
}
