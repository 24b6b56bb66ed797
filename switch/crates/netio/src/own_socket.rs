// SPDX-License-Identifier: Apache-2.0
//! A unix-domain socket that only its owner may connect to, with one JSON object a line each way; removed at the end.

use rustix::fs::Mode;
use rustix::process::umask;
use serde_json::{json, Value};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Clients that are served at a time.
const CLIENTS_MAX: usize = 64;
/// How long another process may still have the socket: one that was killed has it until its memory is gone.
const ENDING: Duration = Duration::from_secs(2);
/// Between two looks at a process that is ending.
const LOOK: Duration = Duration::from_millis(5);

/// Removes the socket when it is dropped.
#[derive(Debug)]
pub struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits until the process that listens there has closed our connection, which one that lives does not do.
fn wait_for_end(mut other: &UnixStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    other.set_read_timeout(Some(left.max(LOOK)))?;
    let closed = match other.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(e) => e.kind() == ErrorKind::ConnectionReset,
    };
    match closed && !left.is_zero() {
        true => thread::sleep(LOOK), // its own end of the socket goes next
        false => return Err(io::Error::from(ErrorKind::AddrInUse)),
    }
    Ok(())
}

/// The bound socket, before it is served.
pub struct OwnSocket {
    listener: UnixListener,
    removal: Removal,
}

/// Binds the socket with mode 0600; call it before other threads run, as the process's file mode mask is changed for a
/// moment. A socket that a dead process left is replaced; for one that is ending it waits.
///
/// # Errors
/// The system's error; AddrInUse when another process listens there.
pub fn bind(path: &Path) -> io::Result<OwnSocket> {
    let deadline = Instant::now() + ENDING;
    loop {
        match UnixStream::connect(path) {
            Ok(other) => wait_for_end(&other, deadline)?,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                break std::fs::remove_file(path)?
            }
            Err(_) => break,
        }
    }
    let mask = umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    umask(mask);
    Ok(OwnSocket {
        listener: listener?,
        removal: Removal(path.to_owned()),
    })
}

/// The answer to a request that is refused.
pub fn refusal(error: &str) -> Value {
    json!({"ok": false, "error": error})
}

impl OwnSocket {
    /// Serves until the process ends, on threads of its own: what `answer` makes of a line, which has at most `line_max`
    /// bytes, is sent back. The socket is removed with the value returned.
    ///
    /// # Errors
    /// The system's error when a thread cannot be started.
    pub fn serve(
        self,
        line_max: u64,
        answer: impl Fn(&str) -> Value + Send + Sync + 'static,
    ) -> io::Result<Removal> {
        let (listener, answer) = (self.listener, Arc::new(answer));
        let serve = move || {
            let clients = Arc::new(());
            for stream in listener.incoming().flatten() {
                if Arc::strong_count(&clients) > CLIENTS_MAX {
                    let _ = send(
                        &stream,
                        &refusal(&format!("more than {CLIENTS_MAX} clients")),
                    );
                    continue;
                }
                let (client, answer) = (clients.clone(), answer.clone());
                // A client that cannot be served (no thread, or it went away) is closed.
                let _ = std::thread::Builder::new()
                    .name("control-client".to_owned())
                    .spawn(move || {
                        let _ = serve_client(&stream, line_max, &*answer);
                        drop(client);
                    });
            }
        };
        let thread = std::thread::Builder::new().name("control".to_owned());
        thread.spawn(serve)?;
        Ok(self.removal)
    }
}

fn serve_client(
    stream: &UnixStream,
    line_max: u64,
    answer: &dyn Fn(&str) -> Value,
) -> io::Result<()> {
    let mut input = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut input).take(line_max).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return match line.is_empty() {
                true => Ok(()),
                false => {
                    let text = format!("a request is one line of at most {line_max} bytes");
                    send(stream, &refusal(&text))
                }
            };
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let reply = match std::str::from_utf8(&line) {
            Ok(line) => answer(line),
            Err(_) => refusal("a request is UTF-8 text"),
        };
        send(stream, &reply)?;
    }
}

fn send(mut stream: &UnixStream, reply: &Value) -> io::Result<()> {
    stream.write_all(format!("{reply}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_its_owners_and_goes_with_it() {
        let path = std::env::temp_dir().join(format!("fairlane-own-{}", std::process::id()));
        let socket = bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            bind(&path).err().map(|e| e.kind()),
            Some(ErrorKind::AddrInUse)
        );
        drop(socket);
        assert!(!path.exists());
        // What a dead process left.
        drop(UnixListener::bind(&path).unwrap());
        drop(bind(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn every_line_is_answered_by_one() {
        let path = std::env::temp_dir().join(format!("fairlane-lines-{}", std::process::id()));
        let removal = bind(&path).unwrap().serve(16, |line| json!(line.len()));
        let mut client = UnixStream::connect(&path).unwrap();
        client
            .write_all(b"abc\n\n \n\xff\n01234567890123456789\n")
            .unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "4");
        assert_eq!(
            lines[1],
            r#"{"ok":false,"error":"a request is UTF-8 text"}"#
        );
        assert!(lines[2].contains("at most 16 bytes") && lines.len() == 3);
        drop(removal);
    }
}
