// SPDX-License-Identifier: Apache-2.0
//! A unix-domain socket that only its owner may connect to, and that is removed at the end.

use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Removes the socket when it is dropped.
#[derive(Debug)]
pub struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Binds the socket with mode 0600; call it before other threads run, as the process's file mode mask is changed for a
/// moment. A socket that a dead process left is replaced.
///
/// # Errors
/// The system's error; AddrInUse when another process listens there.
pub fn bind(path: &Path) -> io::Result<(UnixListener, Removal)> {
    match UnixStream::connect(path) {
        Ok(_) => return Err(io::Error::from(ErrorKind::AddrInUse)),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    // SAFETY: plain system call; the mask is put back at once.
    let listener = unsafe {
        let mask = libc::umask(0o177);
        let listener = UnixListener::bind(path);
        libc::umask(mask);
        listener?
    };
    Ok((listener, Removal(path.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_its_owners_and_goes_with_it() {
        let path = std::env::temp_dir().join(format!("fairlane-own-{}", std::process::id()));
        let (listener, removal) = bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(listener);
        // What a dead process left.
        let (_listener, _removal) = bind(&path).unwrap();
        drop(removal);
        assert!(!path.exists());
    }
}
