// SPDX-License-Identifier: Apache-2.0
//! Files that settings name: the only thing that this crate reads, and never while frames are carried.

use super::trace::{Trace, OPPORTUNITIES_MAX};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Longest file that is read: as many lines as a trace may have, as long as they get.
const FILE_BYTES_MAX: u64 = 12 * OPPORTUNITIES_MAX as u64;

/// What a file was when it was read.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    modified: Option<SystemTime>,
    len: u64,
}

/// By path. Only the configuration and the control socket come here, never a frame.
static READ: Mutex<BTreeMap<String, (Version, Arc<Trace>)>> = Mutex::new(BTreeMap::new());

/// The version of a file that can be read.
///
/// # Errors
/// A sentence with the path: a pipe or a device would keep frames waiting.
fn version(path: &str) -> Result<Version, String> {
    let file = std::fs::metadata(path).map_err(|e| format!("{path}: cannot be read: {e}"))?;
    if !file.is_file() {
        return Err(format!("{path}: is not a regular file"));
    }
    if file.len() > FILE_BYTES_MAX {
        return Err(format!(
            "{path}: {} bytes are too long for a trace; allowed: {FILE_BYTES_MAX}",
            file.len()
        ));
    }
    Ok(Version {
        modified: file.modified().ok(),
        len: file.len(),
    })
}

/// The text of a file.
///
/// # Errors
/// A sentence with the path.
pub(super) fn text(path: &str) -> Result<String, String> {
    version(path)?;
    std::fs::read_to_string(path).map_err(|e| format!("{path}: cannot be read: {e}"))
}

/// The delivery trace of a file: as it was read before, unless it has changed since, so that a change to it later does not
/// keep frames waiting.
///
/// # Errors
/// A sentence with the path: it cannot be read, or is no trace.
pub fn trace(path: &str) -> Result<Arc<Trace>, String> {
    let version = version(path)?;
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, trace)) = read.get(path) {
        if *known == version && version.modified.is_some() {
            return Ok(trace.clone());
        }
    }
    let trace = Trace::parse(path, &text(path)?).map_err(|e| format!("{path}: {e}"))?;
    let trace = Arc::new(trace);
    read.insert(path.to_owned(), (version, trace.clone()));
    Ok(trace)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_again_when_it_has_changed() {
        let path = std::env::temp_dir().join(format!("wire-traces-{}.trace", std::process::id()));
        let name = path.to_str().unwrap();
        std::fs::write(&path, "1\n").unwrap();
        let first = trace(name).unwrap();
        assert!(Arc::ptr_eq(&first, &trace(name).unwrap()));
        std::fs::write(&path, "1\n2\n").unwrap();
        let second = trace(name).unwrap();
        assert_eq!((first.opportunities(), second.opportunities()), (1, 2));
        std::fs::write(&path, "1\nx\n2\n").unwrap();
        let bad = trace(name).unwrap_err();
        assert!(bad.contains(": line 2: \"x\" is not a time"), "{bad}");
        std::fs::remove_file(&path).unwrap();
        let gone = trace(name).unwrap_err();
        assert!(gone.contains("cannot be read: No such file"), "{gone}");
    }

    #[test]
    fn what_never_ends_is_not_read() {
        assert_eq!(
            trace("/dev/zero").unwrap_err(),
            "/dev/zero: is not a regular file"
        );
        let path = std::env::temp_dir().join(format!("wire-traces-{}.long", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap(); // a hole: nothing is written
        let long = trace(path.to_str().unwrap()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(
            long.ends_with(": 48000001 bytes are too long for a trace; allowed: 48000000"),
            "{long}"
        );
    }
}
